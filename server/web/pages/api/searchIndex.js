import { areasOf } from './apiDocument.js';

/** @import { OpenApiDocument } from '../../../api/openapi/document.ts' */
/** @import { Schema } from '../../../api/openapi/example.ts' */
/** @import { Described } from './apiDocument.js' */

/**
 * `text` is what an operation says about itself; `names` are its fields, headers, statuses and reasons, each with a word for what it is.
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
 * field, a header, a status or a reason; `why` tells which.
 * @param {Entry[]} index
 * @param {string[]} words in lower case
 */
export function findOperations(index, words) {
  const wanted = words.map((word) => meaningsOf(index, word));
  const found = index.flatMap(({ operation, noun, text, names }) => {
    const others = wanted
      .filter((meanings) => !meanings.some((word) => text.includes(word)))
      .map((meanings) => meanings.flatMap((word) => nearest(names, word) ?? [])[0]);
    if (others.includes(undefined)) return [];
    return { operation, noun, why: [...new Set(others)].join(', ') };
  });
  return [...found.filter(({ why }) => why === ''), ...found.filter(({ why }) => why !== '')];
}

/**
 * Words of other services, in the words of this one.
 * @type {Record<string, string[]>}
 */
const SYNONYMS = {
  archive: ['delete'],
  assign: ['owner_id'],
  assignee: ['owner_id'],
  bulk: ['many'],
  deadline: ['due_date'],
  label: ['tag'],
};
const LEAST_LETTERS = 4;

/**
 * A word, what it means here, or, if nothing has it, the words that differ from it by one letter.
 * @param {Entry[]} index
 * @param {string} word
 */
function meaningsOf(index, word) {
  const meanings = [word, ...(SYNONYMS[word] ?? [])];
  const isKnown = index.some(({ text, names }) =>
    meanings.some((one) => text.includes(one) || names.some(({ name }) => name.toLowerCase().includes(one))),
  );
  if (isKnown || word.length < LEAST_LETTERS) return meanings;
  const all = index.flatMap(({ text, names }) => [text, ...names.map(({ name }) => name.toLowerCase())]);
  const known = new Set(all.flatMap((text) => text.split(/[^a-z0-9]+/)));
  return [...known].filter((one) => isNear(one, word)).toSorted((one, other) => one.length - other.length);
}

/**
 * Whether one letter is missing, too many, another one, or changes places with the next.
 * @param {string} one
 * @param {string} other
 */
function isNear(one, other) {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  const [left, right] = [one.slice(at), other.slice(at)];
  const isSwapped = left[0] === right[1] && left[1] === right[0] && left.slice(2) === right.slice(2);
  return isSwapped || [left.slice(1), left].includes(right.slice(1)) || left.slice(1) === right;
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
    ...namesOf('status', Object.keys(responses)),
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
