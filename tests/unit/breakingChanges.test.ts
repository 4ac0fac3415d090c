import { describe, expect, it } from 'vitest';
import type { OpenApiDocument, Operation } from '../../server/api/openapi/document.ts';
import type { Schema } from '../../server/api/openapi/example.ts';
import { breakingChanges } from '../harness/breaking.ts';

type Parts = Partial<Operation> & { request?: Schema; answer?: Schema };

/** A document with one operation. */
function documentWith({ request, answer = { type: 'object' }, ...more }: Parts) {
  const content = (schema: Schema) => ({ 'application/json': { schema } });
  const operation = {
    operationId: 'cardsCreate',
    ...(request && { requestBody: { required: false, content: content(request) } }),
    responses: { 200: { description: '', headers: { 'X-Request-Id': {} }, content: content(answer) }, 404: NO_BODY },
    ...more,
  };
  const schemas = { Short: { type: 'string', maxLength: 5 }, Long: { type: 'string', maxLength: 9 } };
  return { paths: { '/a': { post: operation } }, components: { schemas } } as unknown as OpenApiDocument;
}

const NO_BODY = { description: '' };
const changesBetween = (before: Parts, after: Parts) => breakingChanges(documentWith(before), documentWith(after));

const text = { type: 'string' };
const number = { type: 'integer' };
const textOrNull = { type: ['string', 'null'] };
const choice = (...values: string[]) => ({ ...text, enum: values });
const listOf = (items: Schema, maxItems?: number) => ({ type: 'array', items, ...(maxItems && { maxItems }) });
const json = (contentSchema: Schema) => ({ ...text, contentSchema });
const component = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const moment = (format: string) => ({ ...text, format });
const MOMENTS = [moment('date-time'), moment('date'), { type: 'null' }];
const required = (field: Schema): Schema => ({ type: 'object', properties: { field }, required: ['field'] });
const optional = (field: Schema): Schema => ({ type: 'object', properties: { field } });
const empty: Schema = { type: 'object' };

const parameter = { name: 'tool_key', in: 'query', schema: text };
const requiredParameter = { ...parameter, required: true };
const oneChoice = { ...parameter, schema: choice('seo') };
const requiredBody = { required: true, content: { 'application/json': { schema: optional(text) } } };

describe('comparing operations', () => {
  it.each<[string, Parts, Parts]>([
    ['is called createCard, not cardsCreate', {}, { operationId: 'createCard' }],
    ['needs a token now', { security: [] }, { security: [{}] }],
    ['404 is gone', { responses: { 200: NO_BODY, 404: NO_BODY } }, { responses: { 200: NO_BODY } }],
    ['200 header X-Request-Id is gone', {}, { responses: { 200: NO_BODY, 404: NO_BODY } }],
    ['parameter tool_key is gone', { parameters: [parameter] }, {}],
    ['parameter tool_key is required now', {}, { parameters: [requiredParameter] }],
    ['parameter tool_key is required now', { parameters: [parameter] }, { parameters: [requiredParameter] }],
    ['parameter tool_key no longer takes anything but seo', { parameters: [parameter] }, { parameters: [oneChoice] }],
    ['request is gone', { request: optional(text) }, {}],
    ['request is required now', { request: optional(text) }, { requestBody: requiredBody }],
  ])('reports: %s', (line, before, after) => {
    expect(changesBetween(before, after)).toEqual([`/a ${line}`]);
  });

  it('reports a changed address', () => {
    const at = (...urls: string[]) => ({ ...documentWith({}), servers: urls.map((url) => ({ url })) });

    expect(breakingChanges(at('/api'), at('/v2'))).toEqual(['the address /api is gone']);
    expect(breakingChanges(at('/api'), at('/api', '/v2'))).toEqual([]);
  });

  it('reports a header with another type', () => {
    const sent = (schema: Schema) => {
      const document = documentWith({});
      return { ...document, components: { ...document.components, headers: { 'X-Request-Id': { schema } } } };
    };

    expect(breakingChanges(sent(number), sent(text))).toEqual(['header X-Request-Id may be string now']);
    expect(breakingChanges(sent({ type: ['integer', 'string'] }), sent(text))).toEqual([]);
  });

  it('reports a removed path', () => {
    expect(breakingChanges(documentWith({}), { ...documentWith({}), paths: {} })).toEqual(['/a is gone']);
  });

  it.each<[string, Parts, Parts]>([
    [
      'nothing new',
      { request: optional(text), answer: required(text) },
      { request: optional(text), answer: required(text) },
    ],
    ['no longer needing a token', { security: [{}] }, { security: [] }],
    ['a new status', { responses: { 200: NO_BODY } }, { responses: { 200: NO_BODY, 409: NO_BODY } }],
    ['a new optional parameter', {}, { parameters: [parameter] }],
    ['a new optional request body', {}, { request: optional(text) }],
  ])('allows %s', (_, before, after) => {
    expect(changesBetween(before, after)).toEqual([]);
  });
});

describe('comparing requests', () => {
  it.each<[string, Schema, Schema]>([
    ['.field is gone', optional(text), empty],
    ['.field is required now', optional(text), required(text)],
    ['.field is required now', empty, required(text)],
    ['.field no longer takes string', optional(text), optional(number)],
    ['.field no longer takes null', optional(textOrNull), optional(text)],
    ['.field no longer takes null', optional({ anyOf: [text, { type: 'null' }] }), optional(text)],
    ['.field no longer takes b', optional(choice('a', 'b')), optional(choice('a'))],
    ['.field no longer takes anything but a', optional(text), optional(choice('a'))],
    [
      '.field no longer takes beyond maxLength 8',
      optional({ ...text, maxLength: 9 }),
      optional({ ...text, maxLength: 8 }),
    ],
    ['.field no longer takes beyond maxLength 5', optional(component('Long')), optional(component('Short'))],
    ['.field no longer takes beyond minLength 1', optional(text), optional({ ...text, minLength: 1 })],
    ['.field no longer takes beyond maximum 8', optional(number), optional({ ...number, maximum: 8 })],
    [
      '.field no longer takes beyond minimum 1',
      optional({ ...number, minimum: 0 }),
      optional({ ...number, minimum: 1 }),
    ],
    ['.field no longer takes beyond maxItems 8', optional(listOf(text, 9)), optional(listOf(text, 8))],
    ['.field no longer takes other than format email', optional(text), optional({ ...text, format: 'email' })],
    [
      '.field no longer takes other than format date-time',
      optional({ anyOf: MOMENTS }),
      optional({ anyOf: MOMENTS.toSpliced(1, 1) }),
    ],
    ['.field no longer takes other than pattern ^a', optional(text), optional({ ...text, pattern: '^a' })],
    [
      '.field no longer takes other than exclusiveMinimum 0',
      optional(number),
      optional({ ...number, exclusiveMinimum: 0 }),
    ],
    ['.field no longer takes other than multipleOf 5', optional(number), optional({ ...number, multipleOf: 5 })],
    [
      '.field no longer takes other than uniqueItems true',
      optional(listOf(text)),
      optional({ ...listOf(text), uniqueItems: true }),
    ],
    [
      '.field no longer takes other than allOf [{"maxLength":5}]',
      optional(text),
      optional({ allOf: [{ maxLength: 5 }] }),
    ],
    ['.field no longer takes null', optional({ oneOf: [text, { type: 'null' }] }), optional({ oneOf: [text] })],
    ['.* no longer takes anything', optional(text), { ...optional(text), additionalProperties: false }],
    ['.field[] no longer takes string', optional(listOf(text)), optional(listOf(number))],
    ['.field[].field is required now', optional(listOf(optional(text))), optional(listOf(required(text)))],
  ])('reports: request%s', (line, before, after) => {
    expect(changesBetween({ request: before }, { request: after })).toEqual([`/a request${line}`]);
  });

  it.each<[string, Schema, Schema]>([
    ['a new optional field', empty, optional(text)],
    ['a field that is no longer required', required(text), optional(text)],
    ['null', optional(text), optional({ anyOf: [text, { type: 'null' }] })],
    ['another example', optional({ ...text, examples: ['a'] }), optional({ ...text, examples: ['b'], title: 'c' })],
    ['additional properties', { ...empty, additionalProperties: false }, empty],
    ['a new type', optional(text), optional({ type: ['string', 'integer'] })],
    ['a new choice', optional(choice('a')), optional(choice('a', 'b'))],
    ['a higher limit', optional(component('Short')), optional(component('Long'))],
    ['a date besides a date-time', optional(moment('date-time')), optional({ anyOf: MOMENTS })],
    ['removed limits', optional({ ...text, maxLength: 8, minLength: 1, format: 'email' }), optional(text)],
    ['a format that only affects display', optional(text), optional({ ...text, format: 'password' })],
    ['a number instead of an integer', optional(number), optional({ type: 'number' })],
  ])('allows %s', (_, before, after) => {
    expect(changesBetween({ request: before }, { request: after })).toEqual([]);
  });
});

describe('comparing answers', () => {
  it.each<[string, Schema, Schema]>([
    ['.field is gone', required(text), empty],
    ['.field is gone', optional(text), empty],
    ['.field is not always there any more', required(text), optional(text)],
    ['.field may be integer now', required(text), required(number)],
    ['.field may be null now', required(text), required(textOrNull)],
    ['.field may be b now', required(choice('a')), required(choice('a', 'b'))],
    ['.field may be anything but a now', required(choice('a')), required(text)],
    ['.field may be beyond maxLength 5 now', required(component('Short')), required(component('Long'))],
    ['.field may be other than format date-time now', required({ ...text, format: 'date-time' }), required(text)],
    ['.field[] may be integer now', required(listOf(text)), required(listOf(number))],
    [
      '.field.* may be integer now',
      required({ ...empty, additionalProperties: text }),
      required({ ...empty, additionalProperties: number }),
    ],
    ['.field (text).field is gone', required(json(required(text))), required(json(empty))],
    ['.field (text) may be anything now', required(json(required(text))), required(text)],
  ])('reports: 200%s', (line, before, after) => {
    expect(changesBetween({ answer: before }, { answer: after })).toEqual([`/a 200${line}`]);
  });

  it.each<[string, Schema, Schema]>([
    ['a new field', empty, required(text)],
    ['a field that is always present now', optional(text), required(text)],
    ['a field that is no longer null', required(textOrNull), required(text)],
    ['fewer choices', required(choice('a', 'b')), required(choice('a'))],
    ['a lower limit', required(component('Long')), required(component('Short'))],
    ['other words', required({ ...text, description: 'x' }), required({ ...text, description: 'y', examples: ['z'] })],
  ])('allows %s', (_, before, after) => {
    expect(changesBetween({ answer: before }, { answer: after })).toEqual([]);
  });
});
