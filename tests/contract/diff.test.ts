import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { OpenApiDocument } from '../../server/api/openapi/document.ts';
import type { Schema } from '../../server/api/openapi/example.ts';
import { runCommandLine } from '../../server/cli/run.ts';
import { documentChanges } from '../../server/contract/documentChanges.ts';
import { document } from '../../server/contract/violations.ts';
import { readBaseline } from '../harness/baseline.ts';
import { givenDirectory } from '../harness/process.ts';

const text = { type: 'string' };
const content = (schema: Schema) => ({ 'application/json': { schema } });
const object = (properties: Record<string, Schema>, required: string[] = []): Schema => ({
  type: 'object',
  properties,
  required,
});

/** A document with one operation. */
const documentWith = (operation: object, more: object = {}) =>
  ({
    openapi: '3.1.0',
    paths: { '/a': { post: { operationId: 'a', responses: { 200: { content: content(text) } }, ...operation } } },
    components: { schemas: {} },
    ...more,
  }) as unknown as OpenApiDocument;

const request = (schema: Schema, required = false) => ({ requestBody: { required, content: content(schema) } });
const answer = (schema: Schema) => ({ responses: { 200: { content: content(schema) } } });
const key = (...scopes: string[]) => ({ security: [{ Authorization: [] }, { ApiKey: scopes }] });
const field = (more: object) => object({ field: { ...text, ...more } });
const parameter = (more: object, schema: object = {}) => ({
  parameters: [{ name: 'p', in: 'header', schema: { ...text, ...schema }, ...more }],
});
const withHeader = (more: object) => ({
  responses: { 200: { content: content(text), headers: { 'X-Id': { schema: text, ...more } } } },
});
const NO_KEY = { security: [{ Authorization: [] }] };

describe('the changes of a document', () => {
  it.each<[string, object, object]>([
    ['/a request.field is new', request(object({})), request(object({ field: text }))],
    ['/a request.field is optional now', request(object({ field: text }, ['field'])), request(object({ field: text }))],
    [
      '/a request.field takes b now',
      request(object({ field: { enum: ['a'] } })),
      request(object({ field: { enum: ['a', 'b'] } })),
    ],
    ['/a 200.field is new', answer(object({})), answer(object({ field: text }))],
    ['/a 200.field is always there now', answer(object({ field: text })), answer(object({ field: text }, ['field']))],
    ['/a 404 is new', {}, { responses: { 200: { content: content(text) }, 404: {} } }],
    ['/a parameter p is new', {}, { parameters: [{ name: 'p', in: 'header', schema: text }] }],
    ['/a needs no token any more', NO_KEY, { security: [] }],
    ['/a ApiKey is accepted now', NO_KEY, key('boards:read')],
    ['/a no longer needs the scope admin', key('boards:read', 'admin'), key('boards:read')],
    ['/a is deprecated now', {}, { deprecated: true }],
    ['/a is no longer deprecated', { deprecated: true }, {}],
    ['/a parameter p is deprecated now', parameter({}), parameter({ deprecated: true })],
    ['/a request.field is deprecated now', request(field({})), request(field({ deprecated: true }))],
    ['/a 200.field is deprecated now', answer(field({})), answer(field({ deprecated: true }))],
    ['/a 200.field is no longer deprecated', answer(field({ deprecated: true })), answer(field({}))],
    ['/a request.field has the default "a" now', request(field({})), request(field({ default: 'a' }))],
    ['/a request.field can be sent now', request(field({ readOnly: true })), request(field({}))],
    ['/a 200.field is answered now', answer(field({ writeOnly: true })), answer(field({}))],
    ['/a 200 header X-Id is always there now', withHeader({ required: false }), withHeader({ required: true })],
  ])('have the addition: %s', (line, before, after) => {
    expect(documentChanges(documentWith(before), documentWith(after))).toEqual({ breaking: [], additions: [line] });
  });

  it.each<[string, object, object]>([
    ['/a needs the scope admin now', key('boards:read'), key('boards:read', 'admin')],
    ['/a ApiKey is no longer accepted', key('boards:read'), NO_KEY],
    ['/a parameter p is required now', {}, { parameters: [{ name: 'p', in: 'header', required: true, schema: text }] }],
    ['/a request.field is required now', request(object({})), request(object({ field: text }, ['field']))],
    [
      '/a request.field has the default "b", not "a"',
      request(field({ default: 'a' })),
      request(field({ default: 'b' })),
    ],
    ['/a request.field has no default any more; it was 1', request(field({ default: 1 })), request(field({}))],
    ['/a parameter p has the default 20, not 10', parameter({}, { default: 10 }), parameter({}, { default: 20 })],
    ['/a request.field can no longer be sent', request(field({})), request(field({ readOnly: true }))],
    ['/a 200.field is not answered any more', answer(field({})), answer(field({ writeOnly: true }))],
    ['/a 200 header X-Id is not always there any more', withHeader({}), withHeader({ required: false })],
    ['/a 200 header X-Id is not always there any more', withHeader({ required: true }), withHeader({})],
    ['/a 200 header X-Id is gone', withHeader({}), {}],
  ])('can break callers: %s', (line, before, after) => {
    expect(documentChanges(documentWith(before), documentWith(after)).breaking).toEqual([line]);
  });

  it.each([
    ['in an answer', answer(field({ default: 'a', readOnly: true })), answer(field({ default: 'b' }))],
    ['in a request', request(field({ writeOnly: true })), request(field({}))],
  ])('have nothing to say of marks that mean nothing %s', (_, before, after) => {
    expect(documentChanges(documentWith(before), documentWith(after))).toEqual({ breaking: [], additions: [] });
    expect(documentChanges(documentWith(after), documentWith(before))).toEqual({ breaking: [], additions: [] });
  });

  it('name a default beside a reference, and a header of all answers once', () => {
    const withDefault = (value: string) =>
      request(object({ field: { $ref: '#/components/schemas/Name', default: value } }));
    const header = { responses: { 200: { headers: { 'X-Id': { $ref: '#/components/headers/X-Id' } } } } };
    const components = (required?: boolean) => ({
      components: { schemas: { Name: text }, headers: { 'X-Id': { schema: text, ...(!required && { required }) } } },
    });

    expect(
      documentChanges(
        documentWith({ ...withDefault('a'), ...header }, components(true)),
        documentWith({ ...withDefault('b'), ...header }, components(false)),
      ),
    ).toEqual({
      breaking: ['header X-Id is not always there any more', '/a request.field has the default "b", not "a"'],
      additions: [],
    });
  });

  it('name a security scheme that is sent in another way, and nothing that only describes it', () => {
    const scheme = (more: object) => ({ components: { schemas: {}, securitySchemes: { ApiKey: more } } });
    const bearer = { type: 'http', scheme: 'bearer' };
    const before = documentWith(key('boards:read'), scheme(bearer));
    const inHeader = documentWith(key('boards:read'), scheme({ type: 'apiKey', in: 'header', name: 'X-Key' }));
    const described = documentWith(key('boards:read'), scheme({ ...bearer, bearerFormat: 'x', description: 'A key' }));

    expect(documentChanges(before, inHeader)).toEqual({
      breaking: ['security scheme ApiKey is apiKey header X-Key, not http bearer'],
      additions: [],
    });
    expect(documentChanges(inHeader, before).breaking).toEqual([
      'security scheme ApiKey is http bearer, not apiKey header X-Key',
    ]);
    expect(documentChanges(before, described)).toEqual({ breaking: [], additions: [] });
  });

  it('name a renamed field twice, and other methods than POST', () => {
    const before = documentWith(answer(object({ title: text })), {
      paths: { '/a': { get: answer(object({ title: text })) } },
    });
    const after = documentWith(answer(object({ name: text })), {
      paths: { '/a': { get: answer(object({ name: text })) } },
    });

    expect(documentChanges(before, after)).toEqual({
      breaking: ['GET /a 200.title is gone'],
      additions: ['GET /a 200.name is new'],
    });
  });

  it('include what webhooks send', () => {
    const webhooks = (schema: Schema) => ({ webhooks: { 'card.created': { post: request(schema) } } });
    const before = documentWith({}, webhooks(object({ type: text })));

    expect(documentChanges(before, documentWith({}, webhooks(object({})))).breaking).toEqual([
      'webhook card.created.type is gone',
    ]);
    expect(documentChanges(before, documentWith({})).breaking).toEqual(['webhook card.created is gone']);
  });

  it('include the headers that webhooks send', () => {
    const webhooks =
      (...types: string[]) =>
      (parameters: object[]) => {
        const post = { ...request(object({})), parameters };
        return documentWith({}, { webhooks: Object.fromEntries(types.map((type) => [type, { post }])) });
      };
    const one = webhooks('card.created');
    const all = webhooks('card.created', 'card.updated', 'card.deleted');
    const header = { name: 'webhook-signature', in: 'header', required: true, schema: text };
    const [optional, described] = [
      { ...header, required: false },
      { ...header, description: 'x' },
    ];

    expect(documentChanges(one([header]), one([]))).toEqual({
      breaking: ['webhook card.created header webhook-signature is gone'],
      additions: [],
    });
    expect(documentChanges(all([header]), all([])).breaking).toEqual([
      'webhooks of events header webhook-signature is gone',
    ]);
    expect(documentChanges(one([header]), one([optional])).breaking).toEqual([
      'webhook card.created header webhook-signature is not always there any more',
    ]);
    expect(documentChanges(one([]), one([header]))).toEqual({
      breaking: [],
      additions: ['webhook card.created header webhook-signature is new'],
    });
    expect(documentChanges(one([header]), one([described]))).toEqual({ breaking: [], additions: [] });
  });

  it('of an open event model to one per type are none, unless a required field is gone', () => {
    const webhooks = (schema: Schema) => ({ webhooks: { 'card.created': { post: request(schema) } } });
    const open = (required: string[]): Schema => ({
      ...object({ group_id: text, plan: text }),
      required,
      additionalProperties: {},
    });
    const own = documentWith({}, webhooks(object({ group_id: text })));

    expect(documentChanges(documentWith({}, webhooks(open([]))), own).breaking).toEqual([]);
    expect(documentChanges(documentWith({}, webhooks(open(['plan']))), own).breaking).toEqual([
      'webhook card.created.plan is gone',
    ]);
  });

  it('end where a schema refers to itself', () => {
    const tree = (more: Record<string, Schema>) => ({
      components: { schemas: { Tree: object({ child: { $ref: '#/components/schemas/Tree' }, ...more }) } },
    });
    const operation = answer({ $ref: '#/components/schemas/Tree' });

    expect(
      documentChanges(documentWith(operation, tree({ a: text })), documentWith(operation, tree({}))).breaking,
    ).toEqual(['/a 200.a is gone']);
  });
});

describe('npx deckhand diff', () => {
  const diff = (...words: string[]) => runCommandLine(['diff', ...words], () => ({}));
  const givenFile = async (content: unknown) => {
    const file = join(await givenDirectory(), 'openapi.json');
    await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content));
    return file;
  };

  it('0 for documents without a breaking change, one of them from a URL', async () => {
    const server = createServer((_, response) => response.end(JSON.stringify(document)));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/openapi.json`;

    expect(await diff(await givenFile(document), url)).toEqual({
      exitCode: 0,
      printed: 'Nothing that callers depend on has changed.',
    });
    server.close();
  });

  it('1 for breaking changes, with all lines', async () => {
    const { '/v1/authenticate': _, ...paths } = readBaseline().paths;
    const [old, current] = [await givenFile(readBaseline()), await givenFile({ ...readBaseline(), paths })];

    expect(await diff(old, current)).toEqual({
      exitCode: 1,
      printed: 'Breaking:\n- /v1/authenticate is gone\n\n1 breaking change, 0 additions.',
    });
    const { exitCode, printed } = await diff('--json', '--old', current, old);
    expect({ exitCode, ...JSON.parse(printed!) }).toEqual({
      exitCode: 0,
      breaking: [],
      additions: ['/v1/authenticate is new'],
    });
  });

  it('2 for what is not a document, and for a wrong number of documents', async () => {
    const file = await givenFile(document);

    for (const [words, message] of [
      [[file], 'NEW is missing'],
      [[file, file, file], 'Unexpected argument'],
      [[file, 'nothing.json'], "nothing.json can't be read: ENOENT"],
      [[file, 'http://127.0.0.1:1/openapi.json'], "/openapi.json can't be read: "],
      [[await givenFile({ openapi: '3.1.0', paths: { '/a': null } }), file], "can't be compared: "],
      [[await givenFile('<html>'), file], 'is not an OpenAPI 3.1 document in JSON'],
      [[await givenFile({ openapi: '3.0.3', paths: {} }), file], 'is not an OpenAPI 3.1 document in JSON'],
    ] as [string[], string][]) {
      expect(await diff(...words)).toMatchObject({ exitCode: 2, complaint: expect.stringContaining(message) });
    }
  });
});
