import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { Client, StreamableHTTPClientTransport, type VersionNegotiationMode } from '@modelcontextprotocol/client';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { procedures } from '../../server/api/procedures.ts';
import { query } from '../../server/database/query.ts';
import { eventsOf } from '../harness/events.ts';
import { givenService, scrape, testService } from '../harness/service.ts';
import { givenBoard, givenCard, givenKey, givenWorld, stored, type TestUser, testDb } from '../harness/world.ts';

const ACCEPT = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };

/** The official client, as the user of a key. */
async function connect(url: string, token: string, mode: VersionNegotiationMode = 'legacy') {
  const client = new Client({ name: 'tests', version: '1.0.0' }, { versionNegotiation: { mode } });
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }));
  return client;
}

async function givenAssistant(user: TestUser, scopes?: string[], mode?: VersionNegotiationMode) {
  const { secret, id } = await givenKey(user, scopes && { scopes });
  return { client: await connect((await testService()).url, secret, mode), secret, keyId: id };
}

const send = async (body: unknown, headers: Record<string, string> = {}, url?: string) =>
  fetch(`${url ?? (await testService()).url}/mcp`, {
    method: 'POST',
    headers: { ...ACCEPT, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

/** What a model reads: JSON, in one text. */
const answerOf = ({ content }: { content?: unknown }) => JSON.parse((content as [{ text: string }])[0].text);

const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

describe.each(['legacy', 'auto'] as const)('the official client (%s)', (mode) => {
  it('initializes, lists the tools, calls one, and another operation that it searched', async () => {
    const { users, project } = await givenWorld();
    const { client, keyId } = await givenAssistant(users.member, undefined, mode);

    const { tools } = await client.listTools();
    const events = await eventsOf(async () => {
      const created = await client.callTool({ name: 'cards_create', arguments: { title: 'Paint the deck' } });
      expect(created.isError).toBeFalsy();
      expect(created).not.toHaveProperty('structuredContent');
      expect(answerOf(created)).toMatchObject({ card: { title: 'Paint the deck', project_id: project.id } });
      expect(answerOf(created).card).not.toHaveProperty('group_id');
    });
    const found = await client.callTool({ name: 'operations_search', arguments: { query: 'create a tag' } });
    const [first] = answerOf(found).operations;
    const called = await client.callTool({
      name: 'operations_call',
      arguments: { name: first.name, input: { name: 'Urgent' } },
    });

    expect(client.getServerVersion()).toMatchObject({ name: 'deckhand' });
    expect(client.getInstructions()).toContain('operations_search');
    expect(tools.map(({ name }) => name)).toContain('cards_create');
    expect(events).toMatchObject([{ type: 'card.created', surface: 'mcp', user_id: users.member.id, key_id: keyId }]);
    expect(first).toMatchObject({ name: 'tags.create', is_read_only: false, input_schema: { required: ['name'] } });
    expect(answerOf(called)).toMatchObject({ tag: { name: 'Urgent' } });
    await client.close();
  });

  it('gets a refused call as a result with status, reason and message', async () => {
    const { users, otherProject } = await givenWorld();
    const { client } = await givenAssistant(users.member, undefined, mode);
    await client.listTools();
    const card = await givenCard(otherProject);

    const foreign = await client.callTool({ name: 'cards_get', arguments: { id: card } });
    const invalid = await client.callTool({ name: 'cards_create', arguments: { title: '' } });
    const unknown = await client.callTool({ name: 'operations_call', arguments: { name: 'cards.burn' } });
    const stream = await client.callTool({ name: 'operations_call', arguments: { name: 'events.follow' } });

    expect(foreign).toMatchObject({
      isError: true,
      structuredContent: { error: { status: 403, reason: 'other_project' } },
    });
    expect(invalid).toMatchObject({
      isError: true,
      structuredContent: { error: { status: 422, reason: 'invalid_input', errors: { title: [expect.any(String)] } } },
    });
    expect(JSON.parse((invalid.content as any)[0].text)).toEqual(invalid.structuredContent);
    expect(unknown).toMatchObject({
      isError: true,
      structuredContent: {
        error: {
          status: 404,
          reason: 'unknown_procedure',
          message: 'There is no operation "cards.burn" for assistants. Find one with operations_search.',
        },
      },
    });
    expect(stream).toMatchObject({ isError: true, structuredContent: { error: { reason: 'unknown_procedure' } } });
    await expect(client.callTool({ name: 'cards_burn', arguments: {} })).rejects.toThrow('Unknown tool: cards_burn');
    await client.close();
  });
});

describe('the tools', () => {
  it('are few, with hints, and with schemas of an object without our own keywords', async () => {
    const { users } = await givenWorld();
    const { client } = await givenAssistant(users.superadmin);

    const { tools } = await client.listTools();

    expect(tools.map(({ name }) => name).sort()).toEqual(
      [
        ...procedures.filter(({ isTool }) => isTool).map(({ name }) => name.replace('.', '_')),
        'operations_call',
        'operations_search',
      ].sort(),
    );
    expect(tools.length).toBeLessThan(20);
    for (const { name, title, description, inputSchema, outputSchema } of tools) {
      expect(name).toMatch(/^[a-zA-Z\d_]{1,64}$/);
      expect(title && description).toBeTruthy();
      expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false });
      // With one, an answer would have to be sent twice: as a structure for programs, and as text for models.
      expect(outputSchema).toBeUndefined();
      expect(JSON.stringify(inputSchema)).not.toMatch(/x-sent-as-text|x-required-unless|"example"/);
    }
    const hints = Object.fromEntries(tools.map(({ name, annotations }) => [name, annotations]));
    expect(hints).toMatchObject({
      cards_list: { readOnlyHint: true },
      cards_create: { readOnlyHint: false, destructiveHint: false, idempotentHint: false },
      cards_update: { readOnlyHint: false, destructiveHint: false, idempotentHint: true },
      cards_delete: { readOnlyHint: false, destructiveHint: true },
      operations_call: { readOnlyHint: false, destructiveHint: true },
    });
  });

  it('take little of the context of a model, and name each other as tools', async () => {
    const { asSuperadmin } = await givenWorld();

    const answer = await send(LIST, { authorization: `Bearer ${asSuperadmin.token}` });
    const list = await answer.text();

    expect(list.length).toBeLessThan(25_000);
    const names = procedures.filter(({ isTool }) => isTool).map(({ name }) => name);
    expect(names.filter((name) => list.includes(name))).toEqual([]);
    expect(list).not.toMatch(/\/services\/|If-Match|GET |POST /);
  });

  it.each([
    ['invite a colleague', 'members.invite'],
    ['rename a tag', 'tags.update'],
    ['who am I', 'account.whoAmI'],
  ])('are found by plain words: %s', async (query, expected) => {
    const { asOwner } = await givenWorld();
    const client = await connect((await testService()).url, asOwner.token!);

    const found = await client.callTool({ name: 'operations_search', arguments: { query } });

    const names = (answerOf(found) as { operations: { name: string }[] }).operations.map(({ name }) => name);
    expect(names).toContain(expected);
    expect(names).not.toContain('boards.list');
  });

  it('never return a secret: such operations are neither found nor called', async () => {
    const { users, asMember } = await givenWorld();
    const { client, keyId } = await givenAssistant(users.member, ['cards:read']);
    const withToken = await connect((await testService()).url, asMember.token!);
    const before = await stored('api_keys', keyId);

    const found = await client.callTool({ name: 'operations_search', arguments: { query: 'rotate api key, sign in' } });
    const refused = await Promise.all([
      client.callTool({ name: 'operations_call', arguments: { name: 'keys.rotateSelf' } }),
      client.callTool({ name: 'operations_call', arguments: { name: 'auth.authenticate' } }),
      withToken.callTool({ name: 'operations_call', arguments: { name: 'keys.create' } }),
    ]);

    const names = answerOf(found).operations.map(({ name }: { name: string }) => name);
    expect(names).not.toContain('keys.rotateSelf');
    expect(names).not.toContain('auth.authenticate');
    for (const { structuredContent } of refused)
      expect(structuredContent).toMatchObject({ error: { status: 404, reason: 'unknown_procedure' } });
    expect(await stored('api_keys', keyId)).toMatchObject({ secret_hash: before?.secret_hash });
    await Promise.all([client.close(), withToken.close()]);
  });

  it('are those within the scopes of the key and the role of its user; all others are refused', async () => {
    const { users } = await givenWorld();
    const { client } = await givenAssistant(users.viewer, ['boards:read', 'cards:write']);

    const { tools } = await client.listTools();
    const found = await client.callTool({ name: 'operations_search', arguments: { query: 'board card' } });
    const [role, scope] = await Promise.all([
      client.callTool({ name: 'cards_create', arguments: { title: 'A card' } }),
      client.callTool({ name: 'operations_call', arguments: { name: 'tags.list' } }),
    ]);

    expect(tools.map(({ name }) => name)).toEqual([
      'boards_get',
      'boards_list',
      'operations_search',
      'operations_call',
    ]);
    expect(
      answerOf(found)
        .operations.map(({ name }: { name: string }) => name)
        .sort(),
    ).toEqual(['boards.get', 'boards.list']);
    expect(role).toMatchObject({
      isError: true,
      structuredContent: { error: { status: 403, reason: 'role_missing' } },
    });
    expect(scope).toMatchObject({
      isError: true,
      structuredContent: { error: { status: 403, reason: 'scope_missing' } },
    });
  });

  it('act in the project of X-Project-Id, also with the token of a session', async () => {
    const { asSuperadmin, otherProject } = await givenWorld();
    const board = await givenBoard(otherProject);

    const { body } = await asSuperadmin.in(otherProject.id).tool('boards_list', {});

    expect(answerOf(body.result).boards).toMatchObject([{ id: board }]);
  });

  it('make a change once for each idempotency key', async () => {
    const { asMember, project } = await givenWorld();
    const meta = { idempotency_key: randomUUID() };

    const first = await asMember.tool('cards_create', { title: 'Once' }, meta);
    const again = await asMember.tool('cards_create', { title: 'Once' }, meta);
    const other = await asMember.tool('cards_create', { title: 'Another' }, meta);
    const wrong = await asMember.tool('cards_create', { title: 'Wrong' }, { idempotency_key: 7 });
    const { cards } = await asMember.rpc.cards.list.query({});

    expect(again.body).toEqual(first.body);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(other.body.result.structuredContent.error.reason).toBe('idempotency_key_reused');
    expect(wrong.body.result.structuredContent.error.reason).toBe('idempotency_key_invalid');
    expect(cards).toMatchObject([{ title: 'Once', project_id: project.id }]);
  });

  it('answer a deletion in words, and a result of more than 1 MiB with a refusal', async () => {
    const { asMember, project } = await givenWorld();
    const card = await givenCard(project);
    const description = 'long '.repeat(20_000);
    for (let at = 0; at < 12; at++) await givenCard(project, { description });

    const deleted = await asMember.tool('cards_delete', { id: card });
    const large = await asMember.tool('cards_list', {});
    const smaller = await asMember.tool('cards_list', { limit: 2 });

    expect(deleted.body.result).toEqual({ content: [{ type: 'text', text: 'Card deleted.' }] });
    expect(await stored('cards', card)).toMatchObject({ deleted_at: expect.any(Date) });
    expect(large.body.result.structuredContent.error).toMatchObject({ status: 400, reason: 'answer_too_large' });
    expect(answerOf(smaller.body.result).cards).toHaveLength(2);
  });
});

describe('POST /mcp', () => {
  it('401 with the address of the metadata, without a key, and before the body is read', async () => {
    const { url } = await testService();
    const metadata = `${url}/.well-known/oauth-protected-resource/mcp`;

    const without = await send('{');
    const wrong = await send(LIST, { authorization: 'Bearer nonsense' });

    expect([without.status, wrong.status]).toEqual([401, 401]);
    expect(without.headers.get('www-authenticate')).toBe(`Bearer resource_metadata="${metadata}"`);
    expect(wrong.headers.get('www-authenticate')).toBe(`Bearer error="invalid_token", resource_metadata="${metadata}"`);
    expect(await without.json()).toMatchObject({
      jsonrpc: '2.0',
      id: null,
      error: { data: { reason: 'not_signed_in' } },
    });
  });

  it('401 if the key is revoked while the body is sent', async () => {
    const { url } = await testService();
    const { users } = await givenWorld();
    const { id, secret } = await givenKey(users.member);
    const request = httpRequest(`${url}/mcp`, {
      method: 'POST',
      headers: { ...ACCEPT, authorization: `Bearer ${secret}`, expect: '100-continue' },
    });
    request.flushHeaders();
    await once(request, 'continue');
    request.write('{"jsonrpc": "2.0", ');

    await query(await testDb(), sql`update api_keys set revoked_at = now() where id = ${id}`);
    request.end('"id": 1, "method": "tools/list"}');
    const [answer] = (await once(request, 'response')) as [IncomingMessage];

    expect(answer.statusCode).toBe(401);
    expect(answer.headers['www-authenticate']).toContain('invalid_token');
    answer.resume();
  });

  it('403 for a page of another origin, unless ALLOWED_ORIGINS lists it', async () => {
    const service = await givenService({ ALLOWED_ORIGINS: 'https://app.example.test' });
    const { asMember } = await givenWorld(service);
    const statusFrom = async (origin: string) =>
      (await send(LIST, { origin, authorization: `Bearer ${asMember.token}` }, service.url)).status;

    expect(await statusFrom('https://evil.example.test')).toBe(403);
    expect(await statusFrom('null')).toBe(403);
    expect(await statusFrom('https://app.example.test')).toBe(200);
    expect(await statusFrom(service.url)).toBe(200);
  });

  it('200 for a page of its own PUBLIC_URL, however that is written', async () => {
    const service = await givenService({ PUBLIC_URL: 'https://Tools.Example.test/deckhand' });
    const { asMember } = await givenWorld(service);
    const headers = { origin: 'https://tools.example.test', authorization: `Bearer ${asMember.token}` };

    expect((await send(LIST, headers, service.url)).status).toBe(200);
  });

  it('405 for GET and DELETE, since there are no streams and no sessions', async () => {
    const { url } = await testService();
    const { asMember } = await givenWorld();

    for (const method of ['GET', 'DELETE', 'PUT']) {
      const answer = await fetch(`${url}/mcp`, { method, headers: { authorization: `Bearer ${asMember.token}` } });
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
    }
  });

  it.each([
    ['broken JSON', '{', -32700],
    ['no JSON at all', '', -32700],
    ['a batch', [LIST, LIST], -32600],
    ['a body above 1 MiB', JSON.stringify({ ...LIST, params: { filler: 'x'.repeat(1024 * 1024) } }), -32600],
    ['something else than JSON-RPC', { hello: 'world' }, expect.any(Number)],
    ['text', '"text"', expect.any(Number)],
  ])('400 for %s', async (_, body, code) => {
    const { asMember } = await givenWorld();

    const answer = await send(body, { authorization: `Bearer ${asMember.token}` });

    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      jsonrpc: '2.0',
      id: null,
      error: { code, message: expect.any(String) },
    });
  });

  it('a JSON-RPC error for an unknown method, and 202 for a notification', async () => {
    const { asMember } = await givenWorld();
    const headers = { authorization: `Bearer ${asMember.token}` };

    const unknown = await send({ ...LIST, method: 'resources/burn' }, headers);
    const notified = await send({ jsonrpc: '2.0', method: 'notifications/initialized' }, headers);

    expect(await unknown.json()).toMatchObject({ id: 1, error: { code: -32601 } });
    expect([notified.status, await notified.text()]).toEqual([202, '']);
  });

  it('429 above the limit, which counts the calls of all surfaces together', async () => {
    const service = await givenService({ RATE_LIMIT_PER_MINUTE: '2' });
    const { asMember } = await givenWorld(service);
    await asMember.rpc.boards.list.query({});

    const last = await asMember.tool('boards_list', {});
    const above = await asMember.tool('boards_list', {});

    expect([last.status, last.headers.get('x-ratelimit-remaining')]).toEqual([200, '0']);
    expect(above.status).toBe(429);
    expect(above.headers.get('retry-after')).toMatch(/^\d+$/);
    expect(above.body.error.data.reason).toBe('over_rate_limit');
  });

  it('is logged and counted with the surface mcp and the procedure', async () => {
    const service = await givenService();
    const { asMember } = await givenWorld(service);
    await asMember.tool('operations_call', { name: 'boards.get', input: { id: 2_147_483_647 } });
    await send(LIST, { authorization: `Bearer ${asMember.token}` }, service.url);
    await send({ ...LIST, method: 'made/up' }, { authorization: `Bearer ${asMember.token}` }, service.url);

    const metrics = await scrape(service.url);

    const lines = service.logged.filter(({ surface }) => surface === 'mcp');
    expect(lines.map(({ operation, status }) => [operation, status])).toEqual([
      ['boards.get', 200],
      ['tools/list', 200],
      ['other', 200],
    ]);
    expect(metrics).toContain('deckhand_errors_total{surface="mcp",reason="not_found"} 1');
    expect(metrics).toContain('deckhand_requests_total{surface="mcp",http_response_status_code="200"} 3');
    expect(metrics).toContain('deckhand_operation_duration_seconds_count{operation="boards.get"} 1');
  });
});

describe('GET /.well-known/oauth-protected-resource', () => {
  it.each(['', '/mcp'])('200 at %s with the resource and how to authenticate', async (path) => {
    const service = await givenService({ PUBLIC_URL: 'https://deckhand.example.test' });

    const answer = await fetch(`${service.url}/.well-known/oauth-protected-resource${path}`);

    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({
      resource: 'https://deckhand.example.test/mcp',
      resource_name: 'Deckhand',
      resource_documentation: 'https://deckhand.example.test/docs/guides/assistants',
      bearer_methods_supported: ['header'],
      scopes_supported: expect.arrayContaining(['boards:read', 'cards:write', 'admin']),
    });
  });
});
