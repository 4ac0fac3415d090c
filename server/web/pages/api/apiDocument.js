import { reach } from '../reach.js';

/** @import { OpenApiDocument, Operation } from '../../../api/openapi/document.ts' */
/** @typedef {Operation & { path: string }} Described */

export async function loadDocument() {
  const { response, text } = await reach('/openapi.json');
  if (!response.ok) throw new Error(`The OpenAPI document could not be loaded: ${response.status}.`);
  return /** @type {OpenApiDocument} */ (JSON.parse(text));
}

/**
 * @param {OpenApiDocument} document
 * @returns {Described[]}
 */
export const operationsOf = ({ paths }) =>
  Object.entries(paths).flatMap(([path, { post, get }]) => (get ? [] : { path, ...post }));

/**
 * The groups of the sidebar, each with its areas and their operations.
 * @param {OpenApiDocument} document
 */
export function groupsOf(document) {
  const operations = operationsOf(document);
  const groups = /** @type {{ name: string, tags: string[] }[]} */ (document['x-tagGroups']);
  return groups.map(({ name, tags }) => ({
    name,
    areas: tags.map((tag) => ({
      name: tag,
      description: document.tags.find((other) => other.name === tag)?.description ?? '',
      operations: operations.filter((operation) => operation.tags.includes(tag)),
    })),
  }));
}

/** @param {Described} operation */
export const linkTo = ({ operationId }) => `#/${operationId}`;

/** @param {Described} operation */
export const needsSignIn = ({ security = [] }) => security.length > 0;
