import { element, inline } from './dom.js';

/** @import { Schema } from '../../../api/openapi/example.ts' */
/** @typedef {Record<string, Schema>} Schemas */

/**
 * The fields of an object, nested ones folded.
 * @param {Schema} schema
 * @param {Schemas} schemas
 * @returns {HTMLElement}
 */
export function fieldsOf(schema, schemas) {
  const { properties = {}, required = [] } = resolve(schema, schemas);
  const entries = Object.entries(properties).map(([name, part]) =>
    element(
      'li',
      {},
      element('code', { class: 'name' }, name),
      ' ',
      element('span', { class: 'type' }, typeOf(part, schemas)),
      required.includes(name) ? element('strong', { class: 'required' }, 'required') : undefined,
      element('p', {}, ...inline([part.description, limitsOf(part)].filter(Boolean).join(' '))),
      nestedOf(part, schemas),
    ),
  );
  return element('ul', { class: 'fields' }, ...entries);
}

/**
 * @param {Schema} schema
 * @param {Schemas} schemas
 */
function nestedOf(schema, schemas) {
  const inner = objectIn(schema, schemas);
  if (!inner) return undefined;
  const details = element('details', {}, element('summary', {}, 'Fields'));
  // Filled when it is opened: a model may contain itself.
  details.addEventListener('toggle', () => details.append(fieldsOf(inner, schemas)), { once: true });
  return details;
}

/**
 * The object whose fields people want to see: of a list its items, of a text with JSON its content.
 * @param {Schema} schema
 * @param {Schemas} schemas
 * @returns {Schema | undefined}
 */
function objectIn(schema, schemas) {
  const resolved = resolve(schema, schemas);
  if (resolved.properties) return resolved;
  const inner = resolved.items ?? /** @type {Schema | undefined} */ (resolved.contentSchema);
  if (inner) return objectIn(inner, schemas);
  return resolved.anyOf?.map((part) => objectIn(part, schemas)).find(Boolean);
}

/**
 * @param {Schema} schema
 * @param {Schemas} schemas
 * @returns {string}
 */
export function typeOf(schema, schemas) {
  if (schema.$ref) return schema.$ref.split('/').at(-1) ?? '';
  if (schema.anyOf) return [...new Set(schema.anyOf.map((part) => typeOf(part, schemas)))].join(' or ');
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' or ');
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.items) return `list of ${typeOf(schema.items, schemas)}`;
  if (schema.contentSchema) return `text with JSON: ${typeOf(/** @type {Schema} */ (schema.contentSchema), schemas)}`;
  const types = [schema.type ?? 'any value'].flat().map((type) => (type === 'string' ? textType(schema) : type));
  return types.join(' or ');
}

/** @param {Schema} schema */
const textType = ({ format }) => (format ? `text (${format})` : 'text');

/** @param {Schema} schema */
function limitsOf(schema) {
  const parts = [schema, ...(schema.anyOf ?? [])];
  /** @param {string} name */
  const limit = (name) => parts.map((part) => part[name]).find((value) => value !== undefined);
  const [shortest, longest, least, most] = ['minLength', 'maxLength', 'minimum', 'maximum'].map(limit);
  return [
    longest !== undefined && `${shortest ? `${shortest} to` : 'At most'} ${longest} characters.`,
    least !== undefined && most !== LARGEST_ID && most !== undefined && `From ${least} to ${most}.`,
    limit('pattern') !== undefined && `Matches \`${limit('pattern')}\`.`,
    limit('default') !== undefined && `Default: \`${JSON.stringify(limit('default'))}\`.`,
  ]
    .filter(Boolean)
    .join(' ');
}

/** The int4 maximum: not worth showing as a limit. */
const LARGEST_ID = 2147483647;

/**
 * @param {Schema} schema
 * @param {Schemas} schemas
 * @returns {Schema}
 */
const resolve = (schema, schemas) =>
  schema.$ref ? /** @type {Schema} */ (schemas[schema.$ref.split('/').at(-1) ?? '']) : schema;
