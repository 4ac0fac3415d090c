import { describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { type OpenApiDocument, type Operation, operationsOf } from '../../server/api/openapi/document.ts';
import type { Schema } from '../../server/api/openapi/example.ts';
import { breakingChanges } from '../../server/contract/documentChanges.ts';
import { document } from '../../server/contract/violations.ts';
import { isNamedBy, namedIn, readBaseline, readChangelog, unnamedBreaks } from '../harness/baseline.ts';

describe('the document', () => {
  const { paths } = document;
  const withSchema = (name: string, schema: Schema): OpenApiDocument => ({
    ...document,
    components: { ...document.components, schemas: { ...document.components.schemas, [name]: schema } },
  });

  it('has no breaking change since the last release that the changelog does not list', () => {
    expect(unnamedBreaks(document), 'List these in docs/changelog.md under "Unreleased", or undo them.').toEqual([]);
  });

  it('was saved to docs/openapi.json with all operations when this version was released', () => {
    const { info, paths: saved } = readBaseline();

    expect(info.version).toBe(packageJson.version);
    expect(readChangelog()).toContain(`\n## ${packageJson.version}\n`);
    const unsaved = Object.keys(paths).filter((path) => !(path in saved));
    expect(unsaved, 'Save them with npm run document:release.').toEqual([]);
  });

  it('is compared in every operation, also in what is beyond the specification', () => {
    const renamed = operationsOf({ paths }).map(({ path, ...post }) => [
      path,
      { post: { ...post, operationId: 'new' } },
    ]);
    const { properties, required, ...move } = document.components.schemas.CardsMoveRequest!;
    const needy = { ...move, properties: { ...properties, why: { type: 'string' } }, required: [...required!, 'why'] };
    const { is_read, ...others } = document.components.schemas.Comment!.properties!;

    // The stream of events is a GET.
    const withRenamed = { ...document, paths: { ...paths, ...Object.fromEntries(renamed) } };
    expect(unnamedBreaks(withRenamed)).toHaveLength(renamed.length);
    expect(unnamedBreaks({ ...document, paths: {} })).toHaveLength(Object.keys(paths).length);
    expect(unnamedBreaks(withSchema('CardsMoveRequest', needy))).toEqual([
      '/services/operations/v1/operations/cards/move request.why is required now',
    ]);
    expect(unnamedBreaks(withSchema('Comment', { type: 'object', properties: others }))).toContain(
      '/services/operations/v1/operations/comments/mark-read 200.data.comment.is_read is gone',
    );
  });

  it('may break what the section "Unreleased" of the changelog lists', () => {
    const released = '## 0.1.0\n\n- /b is gone\n';

    expect(namedIn(`# C\n\n## Unreleased\n\n- /a is gone\n\nAnd so on.\n\n${released}`)).toEqual(['/a is gone']);
    expect(namedIn(`# C\n\n## Unreleased\n\n${released}`)).toEqual([]);
    expect(isNamedBy('/… is gone', '/a/b is gone')).toBe(true);
    expect(isNamedBy('/… is gone', '/a/b request.id is gone now')).toBe(false);
  });
});

describe('a breaking change', () => {
  type Parts = Partial<Operation> & { request?: Schema; answer?: Schema; header?: Schema; servers?: object[] };
  const NO_BODY = { description: '' };
  const content = (schema: Schema) => ({ 'application/json': { schema } });

  /** A document with one operation. */
  function documentWith({ request, answer = { type: 'object' }, header, servers, ...more }: Parts) {
    const operation = {
      operationId: 'cardsCreate',
      ...(request && { requestBody: { required: false, content: content(request) } }),
      responses: { 200: { description: '', headers: { 'X-Request-Id': {} }, content: content(answer) }, 404: NO_BODY },
      ...more,
    };
    const schemas = { Short: { ...text, maxLength: 5 }, Long: { ...text, maxLength: 9 } };
    const components = { schemas, ...(header && { headers: { 'X-Request-Id': { schema: header } } }) };
    return { paths: { '/a': { post: operation } }, components, servers } as unknown as OpenApiDocument;
  }
  const changesBetween = (before: Parts, after: Parts) => breakingChanges(documentWith(before), documentWith(after));

  const text = { type: 'string' };
  const number = { type: 'integer' };
  const nothing = { type: 'null' };
  const textOrNull = { type: ['string', 'null'] };
  const choice = (...values: string[]) => ({ ...text, enum: values });
  const listOf = (items: Schema) => ({ type: 'array', items });
  const json = (contentSchema: Schema) => ({ ...text, contentSchema });
  const component = (name: string) => ({ $ref: `#/components/schemas/${name}` });
  const DATES = [{ ...text, format: 'date-time' }, { ...text, format: 'date' }, nothing];
  const required = (field: Schema): Schema => ({ type: 'object', properties: { field }, required: ['field'] });
  const optional = (field: Schema): Schema => ({ type: 'object', properties: { field } });
  const empty: Schema = { type: 'object' };
  const parameter = { name: 'tool_key', in: 'query', schema: text };
  const needed = { parameters: [{ ...parameter, required: true }] };

  it.each<[string, Parts, Parts]>([
    ['/a is called createCard, not cardsCreate', {}, { operationId: 'createCard' }],
    ['/a needs a token now', { security: [] }, { security: [{ Authorization: [] }] }],
    ['/a needs a token now', { security: [{ Authorization: [] }, {}] }, { security: [{ Authorization: [] }] }],
    [
      '/a Authorization is no longer accepted',
      { security: [{ Authorization: [] }] },
      { security: [{ Authorization: [], ApiKey: [] }] },
    ],
    ['/a 404 is gone', { responses: { 200: NO_BODY, 404: NO_BODY } }, { responses: { 200: NO_BODY } }],
    ['/a 200 header X-Request-Id is gone', {}, { responses: { 200: NO_BODY, 404: NO_BODY } }],
    ['/a parameter tool_key is gone', { parameters: [parameter] }, {}],
    ['/a parameter tool_key is required now', {}, needed],
    ['/a parameter tool_key is required now', { parameters: [parameter] }, needed],
    [
      '/a parameter X-Id no longer takes other than pattern ^[0-9]{3}$',
      { parameters: [{ name: 'X-Id', in: 'header', schema: { type: 'integer', minimum: 1 } }] },
      { parameters: [{ name: 'X-Id', in: 'header', schema: { type: 'string', pattern: '^[0-9]{3}$' } }] },
    ],
    [
      '/a parameter tool_key no longer takes integer',
      { parameters: [{ ...parameter, schema: { type: 'integer', minimum: 1 } }] },
      { parameters: [{ ...parameter, schema: { type: 'string', pattern: '^[1-9][0-9]*$' } }] },
    ],
    [
      '/a parameter tool_key no longer takes anything but seo',
      { parameters: [parameter] },
      { parameters: [{ ...parameter, schema: choice('seo') }] },
    ],
    ['/a request is gone', { request: optional(text) }, {}],
    [
      '/a request is required now',
      { request: optional(text) },
      { requestBody: { required: true, content: content(optional(text)) } },
    ],
    ['the address /api is gone', { servers: [{ url: '/api' }] }, { servers: [{ url: '/v2' }] }],
    ['header X-Request-Id may be string now', { header: number }, { header: text }],
  ])('of an operation is reported: %s', (line, before, after) => {
    expect(changesBetween(before, after)).toEqual([line]);
  });

  it.each<[string, Schema, Schema]>([
    ['is gone', text, {}],
    ['no longer takes string', text, number],
    ['no longer takes null', textOrNull, text],
    ['no longer takes null', { anyOf: [text, nothing] }, text],
    ['no longer takes null', { oneOf: [text, nothing] }, { oneOf: [text] }],
    ['no longer takes b', choice('a', 'b'), choice('a')],
    ['no longer takes anything but a', text, choice('a')],
    ['no longer takes beyond maxLength 5', component('Long'), component('Short')],
    ['no longer takes beyond minLength 1', text, { ...text, minLength: 1 }],
    ['no longer takes beyond maximum 8', number, { ...number, maximum: 8 }],
    ['no longer takes beyond minimum 1', { ...number, minimum: 0 }, { ...number, minimum: 1 }],
    ['no longer takes beyond maxItems 8', listOf(text), { ...listOf(text), maxItems: 8 }],
    ['no longer takes other than format email', text, { ...text, format: 'email' }],
    ['no longer takes other than format date-time', { anyOf: DATES }, { anyOf: DATES.toSpliced(1, 1) }],
    ['no longer takes other than pattern ^a', text, { ...text, pattern: '^a' }],
    ['no longer takes other than uniqueItems true', listOf(text), { ...listOf(text), uniqueItems: true }],
    ['no longer takes other than allOf [{"maxLength":5}]', text, { allOf: [{ maxLength: 5 }] }],
  ])('of a request is reported: %s', (line, before, after) => {
    const request = line === 'is gone' ? empty : optional(after);

    expect(changesBetween({ request: optional(before) }, { request })).toEqual([`/a request.field ${line}`]);
  });

  it.each<[string, Schema, Schema]>([
    ['.field is required now', optional(text), required(text)],
    ['.field is required now', empty, required(text)],
    ['.* no longer takes anything', optional(text), { ...optional(text), additionalProperties: false }],
    ['.field[] no longer takes string', optional(listOf(text)), optional(listOf(number))],
    ['.field[].field is required now', optional(listOf(optional(text))), optional(listOf(required(text)))],
  ])('within a request is reported: %s', (line, request, after) => {
    expect(changesBetween({ request }, { request: after })).toEqual([`/a request${line}`]);
  });

  it.each<[string, Schema, Schema]>([
    ['.field is gone', optional(text), empty],
    ['.field is not always there any more', required(text), optional(text)],
    ['.field may be integer now', required(text), required(number)],
    ['.field may be null now', required(text), required(textOrNull)],
    ['.field may be b now', required(choice('a')), required(choice('a', 'b'))],
    ['.field may be anything but a now', required(choice('a')), required(text)],
    ['.field may be beyond maxLength 5 now', required(component('Short')), required(component('Long'))],
    ['.field may be other than format date-time now', required(DATES[0]!), required(text)],
    ['.field[] may be integer now', required(listOf(text)), required(listOf(number))],
    ['.* may be integer now', { ...empty, additionalProperties: text }, { ...empty, additionalProperties: number }],
    ['.field (text).field is gone', required(json(required(text))), required(json(empty))],
    ['.field (text) may be anything now', required(json(required(text))), required(text)],
  ])('of a response is reported: 200%s', (line, before, after) => {
    expect(changesBetween({ answer: before }, { answer: after })).toEqual([`/a 200${line}`]);
  });

  it.each<[string, Parts, Parts]>([
    ['no token', { security: [{}] }, { security: [] }],
    ['a new status', { responses: { 200: NO_BODY } }, { responses: { 200: NO_BODY, 409: NO_BODY } }],
    [
      'an id in a header as text of digits',
      { parameters: [{ name: 'X-Id', in: 'header', schema: { type: 'integer', minimum: 1 } }] },
      { parameters: [{ name: 'X-Id', in: 'header', schema: { type: 'string', pattern: '^[1-9][0-9]*$' } }] },
    ],
    ['a new optional parameter', {}, { parameters: [parameter] }],
    ['a new optional request body', {}, { request: optional(text) }],
    ['another address', { servers: [{ url: '/api' }] }, { servers: [{ url: '/api' }, { url: '/v2' }] }],
    ['a field that is no longer required', { request: required(text) }, { request: optional(text) }],
    ['null', { request: optional(text) }, { request: optional({ anyOf: [text, nothing] }) }],
    ['more types and choices', { request: optional(choice('a')) }, { request: optional({ ...textOrNull }) }],
    ['a higher limit', { request: optional(component('Short')) }, { request: optional(component('Long')) }],
    ['a date besides a date-time', { request: optional(DATES[0]!) }, { request: optional({ anyOf: DATES }) }],
    ['a format for display', { request: optional(text) }, { request: optional({ ...text, format: 'password' }) }],
    ['a number for an integer', { request: optional(number) }, { request: optional({ type: 'number' }) }],
    ['further properties', { request: { ...empty, additionalProperties: false } }, { request: empty }],
    ['a new field', { answer: empty }, { answer: required(text) }],
    ['a field that is never null', { answer: required(textOrNull) }, { answer: required(text) }],
    ['fewer choices', { answer: required(choice('a', 'b')) }, { answer: required(choice('a')) }],
    ['a lower limit', { answer: required(component('Long')) }, { answer: required(component('Short')) }],
    ['other words', { answer: required(text) }, { answer: required({ ...text, description: 'y', examples: ['z'] }) }],
  ])('is not: %s', (_, before, after) => {
    expect(changesBetween(before, after)).toEqual([]);
  });
});
