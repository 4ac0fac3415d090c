import { beforeAll, describe, expect, it } from 'vitest';
import { procedures } from '../server/api/procedures.ts';
import { document } from './harness/document.ts';
import { testService } from './harness/service.ts';
import { givenProject, givenToken, givenUser, type TestUser } from './harness/world.ts';

let url: string;
let admin: TestUser;
beforeAll(async () => {
  ({ url } = await testService());
  admin = await givenUser({ superadmin: true, project: await givenProject() });
});

/** With a token of its own, since some of them end it. */
async function call(path: string, request: RequestInit & { headers?: Record<string, string> }) {
  const headers = { authorization: `Bearer ${await givenToken(admin)}`, ...request.headers };
  const response = await fetch(`${url}${path}`, { method: 'POST', ...request, headers });
  return { status: response.status, body: (await response.json()) as any };
}

const JSON_TYPE = { 'content-type': 'application/json' };
const MISSING: [string, object][] = [
  ['no body', {}],
  ['an empty body', { body: '', headers: JSON_TYPE }],
  ['an empty body of any type', { body: '', headers: { 'content-type': 'text/plain' } }],
];

const withoutRequired = procedures.filter(({ needsInput }) => !needsInput);
const withRequired = procedures.filter(({ needsInput, access }) => needsInput && access !== 'anyone');

describe.each(withoutRequired)('$name has no required field', ({ name, type, rest }) => {
  it.each([...MISSING, ['an empty object', { body: '{}', headers: JSON_TYPE }]])(
    '200 over REST with %s',
    async (_, sent) => {
      expect((await call(`/api${rest!.path}`, sent)).status).toBe(rest!.status);
    },
  );

  it.each([
    ...MISSING.slice(0, 2),
    ['no input', { body: '{}', headers: JSON_TYPE }],
    ['an empty object', { body: '{"json":{}}', headers: JSON_TYPE }],
    ['undefined', { body: '{"json":null,"meta":{"values":["undefined"]}}', headers: JSON_TYPE }],
  ])('200 over RPC with %s', async (_, sent) => {
    expect((await call(`/trpc/${name}`, sent)).status).toBe(200);
  });

  it('200 over RPC in a batch without its input', async () => {
    expect((await call(`/trpc/${name}?batch=1`, { body: '{}', headers: JSON_TYPE })).status).toBe(200);
  });

  it.runIf(type === 'query')('200 by GET without its input', async () => {
    expect((await call(`/trpc/${name}`, { method: 'GET' })).status).toBe(200);
  });

  it('needs no body according to the document', () => {
    expect(document.paths[rest!.path]!.post.requestBody?.required ?? false).toBe(false);
  });
});

describe.each(withRequired)('$name has a required field', ({ name, rest }) => {
  it('400 without a body, on both surfaces', async () => {
    const [overRest, overRpc] = [await call(`/api${rest!.path}`, {}), await call(`/trpc/${name}`, {})];

    expect([overRest.status, overRpc.status]).toEqual([400, 400]);
  });

  it('needs a body according to the document', () => {
    expect(document.paths[rest!.path]!.post.requestBody!.required).toBe(true);
  });
});
