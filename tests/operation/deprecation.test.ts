import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Deprecation } from '../../server/api/deprecation.ts';
import { openApiDocument } from '../../server/api/openapi/document.ts';
import { findProcedure } from '../../server/api/procedures.ts';
import { printProcedures } from '../../server/package/declarations.ts';
import { uncheckedFetch } from '../harness/checkAnswers.ts';
import { givenService, type TestService } from '../harness/service.ts';
import { givenKey, givenWorld, type World } from '../harness/world.ts';

/** None is deprecated, so these get their notice here. Every surface reads it from the procedure. */
const NOTICES: Record<string, Deprecation> = {
  'tags.list': { since: '2026-11-16', sunset: '2027-06-01', use: 'tags.create' },
  'plans.list': { since: '2026-12-01', sunset: '2027-06-15' },
  'events.follow': { since: '2026-12-01', sunset: '2027-06-15', use: 'events.list' },
};
const notify = (notices: Record<string, Deprecation | undefined>) => {
  for (const [name, deprecated] of Object.entries(notices)) findProcedure(name)!.deprecated = deprecated;
};

const TAGS = '/services/operations/v1/operations/tags/list';
const POLICY = '</docs/guides/versions>; rel="deprecation"; type="text/html"';

let service: TestService;
let world: World;
beforeAll(async () => {
  // The document that answers are checked against may have been made without the notices.
  vi.stubGlobal('fetch', uncheckedFetch());
  notify(NOTICES);
  service = await givenService();
  world = await givenWorld(service);
});
afterAll(() => {
  vi.unstubAllGlobals();
  notify(Object.fromEntries(Object.keys(NOTICES).map((name) => [name, undefined])));
});
afterEach(() => vi.useRealTimers());

const noticeOf = ({ headers }: Pick<Response, 'headers'>) =>
  ['deprecation', 'sunset', 'link'].map((name) => headers.get(name));

const get = async (path: string, token: string | undefined = world.asOwner.token, { url } = service) => {
  const response = await fetch(url + path, { headers: { authorization: `Bearer ${token}` } });
  await response.body?.cancel();
  return response;
};

describe('an answer of a deprecated procedure', () => {
  const NOTICE = ['@1794787200', 'Tue, 01 Jun 2027 00:00:00 GMT'];
  const LATER = ['@1796083200', 'Tue, 15 Jun 2027 00:00:00 GMT'];

  it('says over REST when it ends, and what to call instead', async () => {
    const answer = await world.asOwner.post(TAGS, {});

    const successor = '</api/services/operations/v1/operations/tags/create>; rel="successor-version"';
    expect([answer.status, ...noticeOf(answer)]).toEqual([200, ...NOTICE, `${POLICY}, ${successor}`]);
  });

  it('says so over RPC', async () => {
    const answer = await get('/trpc/tags.list');

    const successor = '</trpc/tags.create>; rel="successor-version"';
    expect([answer.status, ...noticeOf(answer)]).toEqual([200, ...NOTICE, `${POLICY}, ${successor}`]);
  });

  it('names no successor without one', async () => {
    expect(noticeOf(await get('/trpc/plans.list'))).toEqual([...LATER, POLICY]);
  });

  it('has the notice on errors, too', async () => {
    const rest = await fetch(`${service.url}/api${TAGS}`, { method: 'POST' });
    const rpc = await fetch(`${service.url}/trpc/tags.list`);

    expect([rest.status, ...noticeOf(rest).slice(0, 2)]).toEqual([401, ...NOTICE]);
    expect([rpc.status, ...noticeOf(rpc).slice(0, 2)]).toEqual([401, ...NOTICE]);
  });

  it.each(['/api/services/platforms/v1/events/stream', '/trpc/events.follow'])(
    'has it on the stream %s',
    async (path) => {
      const answer = await get(path);

      expect([answer.status, ...noticeOf(answer).slice(0, 2)]).toEqual([200, ...LATER]);
    },
  );

  it('in a batch has the earliest dates, and each successor once', async () => {
    const answer = await get('/trpc/boards.list,plans.list,tags.list,tags.list?batch=1');

    expect(noticeOf(answer)).toEqual([...NOTICE, `${POLICY}, </trpc/tags.create>; rel="successor-version"`]);
  });

  it('links to PUBLIC_URL', async () => {
    const at = await givenService({ PUBLIC_URL: 'https://boards.example.test' });

    expect((await get('/trpc/plans.list', world.asOwner.token, at)).headers.get('link')).toContain(
      '<https://boards.example.test/docs/guides/versions>',
    );
  });

  it('is not that of another procedure', async () => {
    expect(noticeOf(await get('/trpc/boards.list'))).toEqual([null, null, null]);
    expect(noticeOf(await get('/docs'))).toEqual([null, null, null]);
  });
});

describe('who calls deprecated procedures', () => {
  const TOKEN = 'a-token-for-prometheus';

  async function countsOf({ url }: TestService) {
    const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } });
    const lines = (await response.text())
      .split('\n')
      .filter((line) => line.startsWith('deckhand_deprecated_calls_total{'));
    return Object.fromEntries(lines.map((line) => /\{(.*)\} (\d+)/.exec(line)!.slice(1)));
  }
  const label = (procedure: string, surface: string, caller: string) =>
    `procedure="${procedure}",surface="${surface}",caller="${caller}"`;

  it('is counted by surface and key, each call of a batch', async () => {
    const counted = await givenService({ METRICS_TOKEN: TOKEN });
    const { asOwner, users } = await givenWorld(counted);
    const key = await givenKey(users.owner, { scopes: ['tags:read'] });

    await asOwner.post(TAGS, {});
    await get('/trpc/boards.list,tags.list,tags.list?batch=1', asOwner.token, counted);
    await get('/trpc/tags.list', key.secret, counted);
    await get('/trpc/tags.list', 'no token', counted);

    expect(await countsOf(counted)).toEqual({
      [label('tags.list', 'rest', 'session')]: '1',
      [label('tags.list', 'rpc', 'session')]: '2',
      [label('tags.list', 'rpc', String(key.id))]: '1',
      [label('tags.list', 'rpc', 'none')]: '1',
    });
  });

  it('is logged once an hour for each caller and procedure', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const given = await givenService();
    const { asOwner, asViewer, users } = await givenWorld(given);
    const lines = () => given.logged.filter(({ msg }) => msg === 'A deprecated procedure was called.');

    await asOwner.rpc.tags.list.query();
    await asOwner.rpc.tags.list.query();
    await asViewer.rpc.tags.list.query();
    expect(lines()).toMatchObject([
      { level: 40, procedure: 'tags.list', user: users.owner.id, client: expect.stringMatching(/^\d+\.\d+\.\d+$/) },
      { procedure: 'tags.list', user: users.viewer.id },
    ]);

    vi.advanceTimersByTime(3_600_000);
    await asOwner.rpc.tags.list.query();
    expect(lines()).toHaveLength(3);
  });
});

describe('the notice', () => {
  it('is in the document, and in that operation alone', () => {
    const { paths, components } = openApiDocument();
    const { deprecated, description, responses } = paths[TAGS]!.post;

    expect(deprecated).toBe(true);
    expect(description).toMatch(
      /^Deprecated since 2026-11-16; works until 2027-06-01\. Use `\/services\/operations\/v1\/operations\/tags\/create` instead\. .* Requires the role viewer\.$/s,
    );
    for (const { headers } of Object.values(responses)) expect(headers).toHaveProperty('Sunset');
    expect(Object.values(paths).filter(({ post }) => post?.deprecated)).toHaveLength(2);
    expect(components.headers).toHaveProperty('Deprecation');
  });

  it('is in the types of the client, which editors strike through', () => {
    const plain = printProcedures().replaceAll(/^ *(\*(?!\/) ?)?/gm, '');

    expect(plain).toContain(`
@deprecated since 2026-11-16; works until 2027-06-01. Use \`tags.create\` instead.

@example
\`\`\`ts
const { tags, next_cursor } = await client.tags.list.query(`);
    expect(plain.match(/@deprecated/g)).toHaveLength(3);
  });
});
