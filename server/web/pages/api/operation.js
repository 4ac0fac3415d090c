import { copyButton } from '../copy.js';
import { areasOf, isSpecified, linkTo, SPECIFIED } from './apiDocument.js';
import { element, inline, paragraphs } from './dom.js';
import { codeBlock } from './highlight.js';
import { fieldsOf, typeOf } from './schema.js';
import { badgeOf } from './sidebar.js';
import { tryIt } from './tryIt.js';

/** @import { OpenApiDocument } from '../../../api/openapi/document.ts' */
/** @import { Schema } from '../../../api/openapi/example.ts' */
/** @import { Described } from './apiDocument.js' */

/**
 * Everything about one operation, and a form to try it.
 * @param {Described} operation
 * @param {OpenApiDocument} document
 */
export function operationView(operation, document) {
  const { schemas, responses: shared } = document.components;
  const { summary, path, description, requestBody, responses, deprecated } = operation;
  const body = requestBody?.content['application/json'].schema;
  const about = element(
    'div',
    {},
    element('p', { class: 'hint' }, placeOf(operation, document)),
    element('h1', {}, summary, ...(deprecated ? [' ', element('small', { class: 'ending' }, 'deprecated')] : [])),
    isSpecified(operation) ? element('p', { class: 'hint' }, badgeOf(), ` ${SPECIFIED}`) : undefined,
    element(
      'p',
      { class: 'path' },
      element('span', { class: 'method' }, 'POST'),
      element('code', {}, `/api${path}`),
      copyButton(() => `${location.origin}/api${path}`),
    ),
    ...paragraphs(description),
    element('p', {}, ...inline(callersOf(operation))),
    ...(body ? [element('h2', {}, 'Body'), fieldsOf(body, schemas)] : []),
    ...parametersOf(operation, schemas),
    element('h2', {}, 'Responses'),
    ...Object.entries(responses).map(([status, response]) =>
      responseOf(status, resolved(response, /** @type {Described['responses']} */ (shared)), schemas),
    ),
    reasonsOf(operation),
  );
  return element('div', { class: 'operation' }, about, tryIt(operation));
}

/**
 * @param {Described} operation
 * @param {OpenApiDocument} document
 */
function placeOf({ operationId }, document) {
  const places = areasOf(document).flatMap(({ name, nouns }) => nouns.map((noun) => ({ area: name, ...noun })));
  const place = places.find(({ operations }) => operations.some((one) => one.operationId === operationId));
  return `${place?.area} · ${place?.name}`;
}

/** @param {Described} operation */
function callersOf({ security = [], 'x-client-call': clientCall }) {
  const key = /** @type {{ ApiKey?: string[] } | undefined} */ (security.find((scheme) => 'ApiKey' in scheme));
  const scopes = key?.ApiKey?.map((scope) => `\`${scope}\``).join(' and ');
  const withKey = scopes ? `, or an API key with ${scopes}` : '';
  const isForTokens = security.some((scheme) => 'Authorization' in scheme);
  const token = isForTokens ? `Needs a token${withKey}.` : 'Needs an API key.';
  const needed = security.length === 0 ? 'Needs no token.' : token;
  return `${needed} In the typed client: \`client.${clientCall}\`.`;
}

/**
 * @param {Described} operation
 * @param {Record<string, Schema>} schemas
 */
function parametersOf({ parameters = [] }, schemas) {
  if (parameters.length === 0) return [];
  const items = parameters.map(({ name, in: place, description = '', schema }) =>
    element(
      'li',
      {},
      element('code', { class: 'name' }, name),
      ` ${place === 'query' ? 'in the query string' : 'header'}, `,
      element('span', { class: 'type' }, typeOf(/** @type {Schema} */ (schema), schemas)),
      element('p', {}, ...inline(description)),
    ),
  );
  return [element('h2', {}, 'Optional parameters'), element('ul', { class: 'fields' }, ...items)];
}

/**
 * @param {Described['responses'][string]} response
 * @param {Described['responses']} shared
 */
const resolved = (response, shared) =>
  (response.$ref ? shared[response.$ref.split('/').at(-1) ?? ''] : response) ?? response;

/**
 * @param {string} status
 * @param {Described['responses'][string]} response
 * @param {Record<string, Schema>} schemas
 */
function responseOf(status, { description, content, headers = {} }, schemas) {
  const json = content?.['application/json'];
  const isGood = Number(status) < 400;
  const details = element(
    'details',
    { class: 'status', open: isGood },
    element('summary', {}, element('strong', { class: isGood ? 'good' : 'bad' }, status), ' ', ...inline(description)),
    json && codeBlock(JSON.stringify(json.example, null, 2)),
    json && element('details', {}, element('summary', {}, 'Fields'), fieldsOf(json.schema, schemas)),
    element('p', { class: 'hint' }, `Headers: ${Object.keys(headers).join(', ')}`),
  );
  return details;
}

/** @param {Described} operation */
const reasonsOf = ({ 'x-error-reasons': reasons }) =>
  element(
    'details',
    { class: 'status' },
    element('summary', {}, 'Reasons of errors'),
    element('p', { class: 'hint' }, ...inline(reasons.map((reason) => `\`${reason}\``).join(', '))),
    element('p', {}, element('a', { href: '/docs/guides/errors#reasons' }, 'What they mean, and what to do')),
  );

/**
 * What the document says about the whole, and its areas.
 * @param {OpenApiDocument} document
 */
export function introduction(document) {
  const { info } = document;
  const areas = areasOf(document).flatMap(({ name, nouns }) => [
    element('h2', {}, name),
    element(
      'ul',
      { class: 'areas' },
      ...nouns.map((noun) =>
        element('li', {}, element('h3', {}, noun.name), element('ul', {}, ...noun.operations.map(itemOf))),
      ),
    ),
  ]);
  return element(
    'div',
    { class: 'introduction' },
    element('h1', {}, `${info.title} API `, element('small', {}, info.version)),
    ...paragraphs(String(info.description ?? '')),
    element(
      'p',
      {},
      element('a', { href: '/openapi.json' }, 'The OpenAPI document'),
      ' describes it for generators and tools.',
    ),
    element('p', {}, badgeOf(), ` ${SPECIFIED}`),
    ...areas,
  );
}

/** @param {Described} operation */
const itemOf = (operation) =>
  element(
    'li',
    {},
    element('a', { href: linkTo(operation) }, operation.summary),
    ...(isSpecified(operation) ? [' ', badgeOf()] : []),
  );
