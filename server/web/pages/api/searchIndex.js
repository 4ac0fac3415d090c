import { areasOf } from './apiDocument.js';

/** @import { OpenApiDocument } from '../../../api/openapi/document.ts' */
/** @import { Schema } from '../../../api/openapi/example.ts' */
/** @import { Described } from './apiDocument.js' */

/**
 * `text` is what an operation says about itself; `names` are its fields, headers and reasons, each with a word for what it is.
 * @typedef {{ operation: Described, noun: string, text: string, names: { name: string, kind: string }[] }} Entry
 */

/**
 * @param {OpenApiDocument} document
 * @returns {Entry[]}
 */
export function searchIndex(document) {
  const all = namesOf('reason', document['x-error-reasons']);
  return areasOf(document).flatMap(({ nouns }) =>
    nouns.flatMap(({ name: noun, operations }) =>
      operations.map((operation) => {
        const { summary, path, description, operationId } = operation;
        const text = [noun, summary, path, description, operationId].join(' ').toLowerCase();
        return { operation, noun, text, names: [...partsOf(operation, document), ...all] };
      }),
    ),
  );
}

/**
 * The operations with all of these words: first those that have them in their own text, then those that have them in the name of a
 * field, a header or a reason; `why` tells which.
 * @param {Entry[]} index
 * @param {string[]} words in lower case
 */
export function findOperations(index, words) {
  const found = index.flatMap(({ operation, noun, text, names }) => {
    const others = words.filter((word) => !text.includes(word)).map((word) => nearest(names, word));
    if (others.includes(undefined)) return [];
    return { operation, noun, why: [...new Set(others)].join(', ') };
  });
  return [...found.filter(({ why }) => why === ''), ...found.filter(({ why }) => why !== '')];
}

/**
 * Says which name has the word: the word itself, else one that begins with it, else any.
 * @param {Entry['names']} names
 * @param {string} word
 */
function nearest(names, word) {
  const having = names.filter(({ name }) => name.toLowerCase().includes(word));
  const rank = (/** @type {{ name: string }} */ { name }) => {
    const at = name.toLowerCase().indexOf(word);
    return name.length === word.length ? 0 : at === 0 ? 1 : 2;
  };
  const [best] = having.toSorted((one, other) => rank(one) - rank(other));
  return best && `${best.kind} ${best.name}`;
}

/**
 * @param {Described} operation
 * @param {OpenApiDocument} document
 */
function partsOf(
  { requestBody, parameters = [], responses, ...operation },
  { components: { schemas, responses: shared } },
) {
  const answers = Object.values(responses).map(
    (response) => /** @type {Described['responses']} */ (shared)[nameIn(response.$ref)] ?? response,
  );
  const successes = Object.entries(responses).filter(([status]) => Number(status) < 400);
  const answered = successes.flatMap(([, { content }]) => (content ? [content['application/json'].schema] : []));
  const sent = requestBody ? [requestBody.content['application/json'].schema] : [];
  return [
    ...namesOf('field', fieldNames(sent, schemas)),
    ...namesOf(
      'field',
      parameters.filter((one) => one.in === 'query').map(({ name }) => name),
    ),
    ...namesOf('answer field', fieldNames(answered, schemas)),
    ...namesOf(
      'header',
      parameters.filter((one) => one.in === 'header').map(({ name }) => name),
    ),
    ...namesOf('header', [...new Set(answers.flatMap(({ headers = {} }) => Object.keys(headers)))]),
    ...namesOf('reason', operation['x-error-reasons']),
  ];
}

/**
 * @param {string} kind
 * @param {unknown} names
 */
const namesOf = (kind, names) => /** @type {string[]} */ (names).map((name) => ({ kind, name }));

/** @param {string | undefined} reference */
const nameIn = (reference) => reference?.split('/').at(-1) ?? '';

/**
 * The names of all fields, also of nested objects.
 * @param {Schema[]} roots
 * @param {Record<string, Schema>} schemas
 */
function fieldNames(roots, schemas) {
  const names = new Set();
  const waiting = [...roots];
  const seen = new Set(waiting);
  for (const { $ref, properties = {}, items, anyOf = [], contentSchema } of waiting) {
    for (const name of Object.keys(properties)) names.add(name);
    const inner = [schemas[nameIn($ref)], items, contentSchema, ...anyOf, ...Object.values(properties)];
    for (const schema of /** @type {(Schema | undefined)[]} */ (inner)) {
      if (!schema || seen.has(schema)) continue;
      seen.add(schema);
      waiting.push(schema);
    }
  }
  return [...names];
}
