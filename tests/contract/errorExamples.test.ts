import { type IncomingMessage, request } from 'node:http';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { responsesOf } from '../../server/api/openapi/document.ts';
import { restProcedures } from '../../server/api/procedures.ts';
import { document } from '../../server/contract/violations.ts';
import { makeCaller, type TestCaller } from '../harness/caller.ts';
import { givenDemoService } from '../harness/demo.ts';
import { removeProcesses, signIn } from '../harness/process.ts';

const MISSING_ID = 2_000_000_000;
const KEYS = '/services/platforms/v1/keys/create';

let demo: Awaited<ReturnType<typeof givenDemoService>>;
let asAdmin: TestCaller;
beforeAll(async () => {
  demo = await givenDemoService();
  asAdmin = await signIn(demo.url, 'admin@demo.test');
});
afterAll(async () => {
  await demo.close();
  await removeProcesses();
});

const bodyOf = (path: string): any => document.paths[path]!.post.requestBody?.content['application/json'].example;
const exampleOf = (path: string, status: number): any =>
  responsesOf(document, document.paths[path]!.post)[status]?.content?.['application/json'].example;

/** The body with ids of rows that do not exist; the project stays if another id can be missing. */
function withMissingIds(body: object): object {
  const named = Object.keys(body).filter((field) => /(^|_)id$/.test(field));
  const others = named.filter((field) => field !== 'project_id');
  const missing = others.length > 0 ? others : named;
  return { ...body, ...Object.fromEntries(missing.map((field) => [field, MISSING_ID])) };
}

const naming = restProcedures.filter(({ rest }) => /_?id"/.test(JSON.stringify(Object.keys(bodyOf(rest.path) ?? {}))));
/** Without those of single sign-on, which need an identity provider. */
const paths = (status: number, from = restProcedures) =>
  from
    .filter(({ name }) => !name.endsWith('Sso'))
    .map(({ rest }) => rest.path)
    .filter((path) => exampleOf(path, status));

describe('the examples of errors in the document', () => {
  it('404: what each operation answers for the id of a missing row', async () => {
    const answers: [string, object][] = [];
    for (const path of paths(404, naming)) {
      const { status, body } = await asAdmin.post(path, withMissingIds(bodyOf(path)));
      if (status === 404) answers.push([path, body]);
    }

    expect(answers.length).toBeGreaterThan(50);
    expect(answers).toEqual(answers.map(([path]) => [path, exampleOf(path, 404)]));
  });

  it('401: what each operation answers without a token, and the sign-in with a wrong password', async () => {
    const anybody = makeCaller(demo.url);
    for (const path of paths(401)) {
      const body = path === '/v1/authenticate' ? { ...bodyOf(path), password: 'wrong' } : bodyOf(path);
      expect([path, (await anybody.post(path, body)).body]).toEqual([path, exampleOf(path, 401)]);
    }
  });

  it('403: what a viewer gets, or a key without the scope', async () => {
    const asViewer = await signIn(demo.url, 'viewer@demo.test');
    const { body } = await asViewer.post(KEYS, { name: 'Groups only', scopes: ['groups:write'] });
    const withKey = makeCaller(demo.url, body.data.secret);
    const messages = new Set<string>();

    for (const path of paths(403)) {
      const example = exampleOf(path, 403);
      const caller = /scope|API key/.test(example.message) ? withKey : asViewer;
      const { status, body } = await caller.post(path, {});
      expect([path, status, body]).toEqual([path, 403, example]);
      messages.add(example.message);
    }
    expect(messages.size).toBeGreaterThan(5);
  });

  it('422: what each operation answers to an empty body, if it requires fields', async () => {
    let compared = 0;
    const requiring = restProcedures.filter(({ input }) => input?.safeParse({}).success === false);
    for (const path of paths(422, requiring)) {
      const { status, body } = await asAdmin.post(path, {});
      if (status !== 422) continue;
      expect([path, body]).toEqual([path, exampleOf(path, 422)]);
      compared++;
    }

    expect(compared).toBeGreaterThan(60);
    for (const path of paths(422)) expect(exampleOf(path, 422).errors, path).toBeDefined();
  });
});

describe('GET /pages/demo-users.json', () => {
  const names = async () => {
    const response = await fetch(`${demo.url}/pages/demo-users.json`);
    expect(response.headers.get('cache-control')).toBe('no-store');
    return ((await response.json()) as { name: string }[]).map(({ name }) => name);
  };

  it('lists the demo users who can sign in with the public password alone', async () => {
    expect(await names()).toEqual(['Admin', 'Owner', 'Member', 'Viewer', 'Outsider']);

    await asAdmin.rpc.users.update.mutate({ id: 2, password: 'another long sentence' });
    await asAdmin.rpc.users.update.mutate({ id: 5, is_active: false });

    expect(await names()).toEqual(['Admin', 'Member', 'Viewer']);
  });

  it('lists nobody for another name of this machine, which a page elsewhere could give it', async () => {
    const listed = (host: string) =>
      new Promise((resolve, reject) => {
        const answered = (answer: IncomingMessage) => resolve(json(answer));
        request(`${demo.url}/pages/demo-users.json`, { headers: { host } }, answered).on('error', reject).end();
      });

    for (const host of ['evil.example', 'evil.example:3000', '127.0.0.1.evil.example', 'a b'])
      expect([host, await listed(host)]).toEqual([host, []]);
    expect(await listed('[::1]:3000')).not.toEqual([]);
  });
});
