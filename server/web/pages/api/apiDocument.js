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
 * The operations by area and noun. The specified operations name the areas: all operations whose paths begin alike belong there.
 * The noun of a specified operation is that of the others with the same name in the typed client.
 * @param {OpenApiDocument} document
 */
export function areasOf(document) {
  const operations = operationsOf(document);
  const [specified, others] = [operations.filter(isSpecified), operations.filter((one) => !isSpecified(one))];
  /** @param {Described} operation */
  const areaOf = (operation) => tagOf(specified.find((one) => startOf(one) === startOf(operation)) ?? operation);
  /** @param {Described} operation */
  const nounOf = (operation) => tagOf(others.find((one) => routerOf(one) === routerOf(operation)) ?? operation);
  return grouped(operations, areaOf).map(([name, inArea]) => ({
    name,
    nouns: grouped(inArea, nounOf).map(([noun, ofNoun]) => ({ name: noun, operations: ofNoun })),
  }));
}

/**
 * @param {Described[]} operations
 * @param {(operation: Described) => string} nameOf
 */
const grouped = (operations, nameOf) => [...Map.groupBy(operations, nameOf)];

/** @param {Described} operation */
const tagOf = ({ tags: [tag = ''] }) => tag;

/** @param {Described} operation */
const startOf = ({ path }) => /^(\/services\/\w+)?\/v1\/(admin\/)?/.exec(path)?.[0];

/** @param {Described} operation */
const routerOf = (operation) => operation['x-client-call'].split('.')[0];

/** @param {Described} operation */
export const isSpecified = (operation) => !operation['x-beyond-specification'];

/** What the badge of these operations means. */
export const SPECIFIED = 'Fixed by the specification: its path, fields, statuses and messages never change.';

/** @param {Described} operation */
export const linkTo = ({ operationId }) => `#/${operationId}`;

/** @param {Described} operation */
export const needsSignIn = ({ security = [] }) => security.length > 0;
