import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { procedures } from '../server/api/procedures.ts';
import { runCommandLine } from '../server/cli/run.ts';
import { inputSchemaOf } from '../server/contract/input.ts';
import { SOURCES } from '../server/contract/queries.ts';
import { problemsOf, type Report } from '../server/contract/report.ts';
import { checkContract } from '../server/contract/run.ts';
import { senderTo } from '../server/contract/sender.ts';
import { query } from '../server/database/query.ts';
import { uncheckedFetch } from './harness/checkAnswers.ts';
import { type Fault, givenFaultyProxy, type ProxiedAnswer } from './harness/faultyProxy.ts';
import { givenDirectory } from './harness/process.ts';
import { givenService, type TestService } from './harness/service.ts';
import { givenTerminal } from './harness/terminal.ts';
import { givenKey, givenMasterBoard, givenWorld, testDb } from './harness/world.ts';

const LONGEST_RUN_MILLISECONDS = 300_000;

/** A service of its own: the failed sign-ins of the check would count against those of other suites. */
let service: Promise<TestService> | undefined;
const ownService = () => (service ??= givenService());

afterEach(() => void vi.unstubAllGlobals());

/** The live rows that a run with --write creates, and whether its project is active. */
async function ownRows() {
  const [found] = await query(
    await testDb(),
    sql<{ boards: number; tags: number; projects: number }>`select
      (select count(*)::int from boards where title like 'Deckhand contract check%' and deleted_at is null) as boards,
      (select count(*)::int from tags where name like 'Deckhand contract check%' and deleted_at is null) as tags,
      (select count(*)::int from projects where name like 'Deckhand contract check%' and is_active) as projects`,
  );
  return found;
}
const NOTHING_LEFT = { boards: 0, tags: 0, projects: 0 };

const countEvents = async () =>
  (await query(await testDb(), sql<{ count: number }>`select count(*)::int as count from events`))[0]!.count;

const countPlatforms = async () =>
  (await query(await testDb(), sql<{ count: number }>`select count(*)::int as count from platforms`))[0]!.count;

async function command(words: string[], environment: Record<string, string> = {}) {
  const terminal = givenTerminal([], { isPerson: false });
  const result = await runCommandLine(['contract', ...words], () => environment, terminal);
  return { ...result, shown: terminal.shown };
}

/** Headers that a proxy removes from every answer. */
const LOST = ['x-request-id', 'x-ratelimit-limit', 'etag', 'x-error-reason', 'x-content-type-options'].map(
  (name): Fault => ({
    path: '*',
    answer: ({ headers: { [name]: _, ...headers } }) => ({ headers }),
  }),
);

describe('npx deckhand contract', () => {
  it(
    'finds nothing in the service of this version, and changes nothing',
    async () => {
      const { url } = await ownService();
      const { users } = await givenWorld();
      await givenMasterBoard();
      const { secret } = await givenKey(users.superadmin);
      const before = await countEvents();

      const { exitCode, printed, shown } = await command(['--url', url], { DECKHAND_KEY: secret });

      expect(printed).toMatch(/: (\d+) of \1 operations\.\n/);
      expect(printed).toMatch(/ checks, \d+ requests: nothing differs\.$/);
      expect({ exitCode, shown, events: await countEvents() }).toEqual({ exitCode: 0, shown: [], events: before });
      expect(printed).not.toContain(secret);
    },
    LONGEST_RUN_MILLISECONDS,
  );

  it(
    'with --write, creates rows in a project of its own, names it, and removes them',
    async () => {
      const { url } = await ownService();
      const { users } = await givenWorld();
      const { secret } = await givenKey(users.superadmin);
      const junit = join(await givenDirectory(), 'contract.xml');

      const { exitCode, printed, shown } = await command([
        '--url',
        url,
        '--key',
        secret,
        '--write',
        '--junit',
        junit,
        '--json',
      ]);

      const report = JSON.parse(printed!);
      expect(report).toMatchObject({ problems: [], left: [] });
      expect(exitCode).toBe(0);
      expect(report.cases.filter(({ check }: any) => check === 'change').length).toBeGreaterThan(40);
      expect(shown[0]).toMatch(/^Creates rows in project \d+ \("Deckhand contract check"\)/);
      expect(await ownRows()).toEqual(NOTHING_LEFT);
      const xml = await readFile(junit, 'utf8');
      expect(xml).toMatch(/^<\?xml .*\n<testsuites name="deckhand contract http:.*" tests="\d+" failures="0">\n/);
      expect(xml).toContain('<testcase classname="change" name="cards.move"/>');
      expect(printed + xml + shown.join()).not.toContain(secret);
    },
    LONGEST_RUN_MILLISECONDS,
  );

  it(
    'with --write and the key of a member, creates rows in the project of the key',
    async () => {
      const { url } = await ownService();
      const { users, project } = await givenWorld();
      const { secret: token } = await givenKey(users.member, { project_id: project.id });
      const lines: string[] = [];

      const report = await checkContract({ url, token }, { isWriting: true, announce: (line) => lines.push(line) });

      expect(problemsOf(report)).toEqual([]);
      expect(lines[0]).toMatch(/^Creates rows in the caller's default project/);
      expect(report.denied.not_a_superadmin ?? report.denied.scope_missing).toContain('masterBoards.create');
      expect(await ownRows()).toEqual(NOTHING_LEFT);
    },
    LONGEST_RUN_MILLISECONDS,
  );

  it(
    'with --write, writes nothing if its own project can not be opened',
    async () => {
      const { url } = await ownService();
      const { users } = await givenWorld();
      const { secret: token } = await givenKey(users.superadmin);
      const proxy = await givenFaultyProxy(url, [
        { path: `${PLATFORMS}/projects/list`, status: 200, answer: status(503) },
      ]);
      vi.stubGlobal('fetch', uncheckedFetch());
      const lines: string[] = [];

      const report = await checkContract(
        { url: proxy.url, token },
        { isWriting: true, announce: (line) => lines.push(line) },
      );

      const problems = problemsOf(report).map(({ problem }) => problem);
      expect(problems).toContain('"Deckhand contract check" could not be opened: no rows were written.');
      expect(lines).toEqual([]);
      proxy.close();
    },
    LONGEST_RUN_MILLISECONDS,
  );

  it(
    'removes what it created when it is interrupted',
    async () => {
      const { url } = await ownService();
      const { users } = await givenWorld();
      const { secret: token } = await givenKey(users.superadmin);
      const interruption = new AbortController();
      const countBoards = async () =>
        (await query(await testDb(), sql<{ count: number }>`select count(*)::int as count from boards`))[0]!.count;
      const before = await countBoards();

      const run = checkContract(
        { url, token },
        {
          isWriting: true,
          signal: interruption.signal,
          onProgress: (line) => {
            if (line.endsWith('change (cards.move)')) interruption.abort();
          },
        },
      );

      await expect(run).rejects.toThrow('aborted');
      expect(await countBoards()).toBe(before + 2);
      expect(await ownRows()).toEqual(NOTHING_LEFT);
    },
    LONGEST_RUN_MILLISECONDS,
  );

  it(
    'names headers that a proxy removes from every answer once, and nothing else, in its own project',
    async () => {
      const { url } = await ownService();
      const { users } = await givenWorld();
      const { secret: token } = await givenKey(users.superadmin);
      const proxy = await givenFaultyProxy(url, LOST);
      vi.stubGlobal('fetch', uncheckedFetch());
      const lines: string[] = [];
      const check = () =>
        checkContract({ url: proxy.url, token }, { isWriting: true, announce: (line) => lines.push(line) });

      const report = await check();
      const before = await countPlatforms();
      await check();

      expect(lines[0]).toMatch(/^Creates rows in project \d+ \("Deckhand contract check"\)/);
      expect(problemsOf(report).map(({ problem }) => problem.replace(/^.*: /, ''))).toEqual([
        'The header X-RateLimit-Limit is missing.',
        'The header X-Request-Id is missing.',
        'The header X-Error-Reason is missing.',
        'The header x-content-type-options is missing.',
        'The header ETag is missing.',
      ]);
      expect(report.left).toEqual([]);
      expect(await countPlatforms()).toBe(before);
      expect(await ownRows()).toEqual(NOTHING_LEFT);
      proxy.close();
    },
    LONGEST_RUN_MILLISECONDS,
  );

  it(
    'says on a terminal why it waits, and after Ctrl-C what it could not remove',
    async () => {
      const { url } = await ownService();
      const { users } = await givenWorld();
      const { secret } = await givenKey(users.superadmin);
      const pathOf = (wanted: string) => `/api${procedures.find(({ name }) => name === wanted)!.rest!.path}`;
      let isLimited = true;
      const limitOnce = ({ headers }: ProxiedAnswer) => {
        const answer = isLimited ? { status: 429, headers: { ...headers, 'retry-after': '1' } } : {};
        isLimited = false;
        return answer;
      };
      const proxy = await givenFaultyProxy(url, [
        { path: pathOf('projects.listOwn'), answer: limitOnce },
        { path: pathOf('boards.delete'), status: 200, answer: () => ({ status: 500 }) },
      ]);
      vi.stubGlobal('fetch', uncheckedFetch());
      const terminal = givenTerminal();
      const update = terminal.update;
      terminal.update = (line) => {
        update(line);
        if (line.endsWith('change (cards.move)')) process.emit('SIGINT');
      };

      const words = ['contract', '--url', proxy.url, '--key', secret, '--write'];
      const { exitCode, complaint } = await runCommandLine(words, () => ({}), terminal);

      const written = terminal.shown.filter((line) => !line.startsWith('progress: '));
      expect(written[0]).toBe('Waits 1 second, as the service asked (429).\n');
      expect(written[1]).toMatch(/^Creates rows in project /);
      expect(written[2]).toBe('Removes what it created.\n');
      expect(written[3]).toMatch(/^Not removed: boards\.delete \d+ \(500\)\n$/);
      expect({ exitCode, complaint }).toEqual({ exitCode: 1, complaint: 'Interrupted.' });
      proxy.close();
    },
    LONGEST_RUN_MILLISECONDS,
  );

  it('2 for a service that it can not check', async () => {
    const { url } = await ownService();
    const page = await givenFaultyProxy(url, []);
    page.close();

    expect(await command(['--key', 'dkh_x'])).toMatchObject({
      exitCode: 2,
      complaint: expect.stringContaining('--url is missing'),
    });
    expect(await command(['--url', page.url, '--key', 'dkh_x'])).toMatchObject({
      exitCode: 2,
      complaint: expect.stringContaining(`${page.url} can't be reached: ECONNREFUSED.`),
    });
    expect(await command(['--url', url, '--key', 'dkh_x'])).toMatchObject({
      exitCode: 2,
      complaint: expect.stringContaining('did not accept the key'),
    });
    const home = await givenDirectory();
    expect(await command(['--url', url], { HOME: home, XDG_CONFIG_HOME: home })).toMatchObject({
      exitCode: 2,
      complaint: expect.stringContaining(`You are not signed in to ${url}. Run: npx deckhand login`),
    });
    const mistyped = await command(['--url', url, '--key', 'dkh_a\u2026z']);
    expect(mistyped).toMatchObject({ exitCode: 2, complaint: expect.stringContaining('characters that no key has') });
    expect(mistyped.complaint).not.toContain('dkh_a');
    expect(await command(['--url', `${url}/elsewhere`, '--key', 'dkh_x'])).toMatchObject({
      exitCode: 2,
      complaint: expect.stringContaining('is not the address of a Deckhand service'),
    });
  });

  it('leaves a JUnit file with a failure if it can not end', async () => {
    const { url } = await ownService();
    const junit = join(await givenDirectory(), 'contract.xml');

    await command(['--url', url, '--key', 'dkh_x', '--junit', junit]);

    const xml = await readFile(junit, 'utf8');
    expect(xml).toMatch(/^<\?xml .*\n<testsuites name="deckhand contract http:.*" tests="1" failures="1">\n/);
    expect(xml).toContain('<failure message="The checks did not end.">');
  });

  it('waits as long as a 429 says', async () => {
    const { url } = await ownService();
    let left = 2;
    const limit = ({ headers }: ProxiedAnswer) =>
      left-- > 0 ? { status: 429, headers: { ...headers, 'retry-after': '0' } } : {};
    const proxy = await givenFaultyProxy(url, [{ path: '/api/nothing', answer: limit }]);
    vi.stubGlobal('fetch', uncheckedFetch());
    const limited: number[] = [];

    const send = senderTo({ url: proxy.url, token: 'x' }, { onLimited: (_, { status }) => limited.push(status) });

    expect((await send({ path: '/api/nothing' })).status).toBe(404);
    expect(limited).toEqual([429, 429]);
    proxy.close();
  });

  it('knows where the rows of every query come from', () => {
    const queries = procedures.filter(({ type }) => type === 'query');
    const needing = queries.filter((procedure) => (inputSchemaOf(procedure).required ?? []).length > 0);

    expect(needing.map(({ name }) => name).toSorted()).toEqual(Object.keys(SOURCES).toSorted());
  });
});

const OPERATIONS = '/api/services/operations/v1/operations';
const ADMIN = '/api/services/operations/v1/admin';
const PLATFORMS = '/api/services/platforms/v1';

/** Changes the JSON of an answer. */
const body =
  (change: (body: any) => void) =>
  ({ body }: ProxiedAnswer) => {
    const changed = JSON.parse(body);
    change(changed);
    return { body: JSON.stringify(changed) };
  };
const header =
  (name: string, value?: string) =>
  ({ headers: { [name]: _, ...others } }: ProxiedAnswer) => ({
    headers: value === undefined ? others : { ...others, [name]: value },
  });
const status = (code: number) => () => ({ status: code });
const page = (code: number) => () => ({
  status: code,
  headers: { 'content-type': 'text/html' },
  body: '<h1>A page</h1>',
});

/** What is planted, where, and how it is reported. */
const FAULTS: [title: string, fault: Fault | Fault[], problem: RegExp, call: RegExp][] = [
  [
    'a missing header',
    { path: `${OPERATIONS}/tags/list`, status: 200, answer: header('x-request-id') },
    /^REST 200: The header X-Request-Id is missing/,
    /^tags\.list$/,
  ],
  [
    'a missing header over RPC',
    { path: '/trpc/tags.update', answer: header('x-ratelimit-limit') },
    /^RPC \d+: The header X-RateLimit-Limit is missing/,
    /^tags\.update$/,
  ],
  [
    'a header with a wrong value',
    { path: `${OPERATIONS}/groups/configure`, answer: header('x-ratelimit-remaining', 'many') },
    /^REST \d+: X-RateLimit-Remaining: /,
    /^groups\.configure$/,
  ],
  [
    'a missing security header',
    { path: `${OPERATIONS}/comments/create`, status: 201, answer: header('x-content-type-options') },
    /^REST 201: The header x-content-type-options is missing/,
    /^comments\.create/,
  ],
  [
    'an answer that may be cached',
    { path: `${PLATFORMS}/audit/list`, status: 200, answer: header('cache-control', 'public') },
    /^REST 200: The header cache-control is public, not no-store/,
    /^audit\.list$/,
  ],
  [
    'a renamed field',
    {
      path: `${OPERATIONS}/cards/get`,
      status: 200,
      answer: body(({ data: { card } }) => {
        card.name = card.title;
        delete card.title;
      }),
    },
    /^REST 200: .*'title'/,
    /^cards\.get$/,
  ],
  [
    'an extra field',
    {
      path: `${PLATFORMS}/events/list`,
      status: 200,
      answer: body(({ data }) => {
        data.more = 1;
      }),
    },
    /^REST 200: .*"more"/,
    /^events\.list$/,
  ],
  [
    'null instead of text',
    {
      path: `${PLATFORMS}/platforms/list`,
      status: 200,
      answer: body(({ data }) => {
        data.platforms[0].name = null;
      }),
    },
    /^REST 200: \/data\/platforms\/0\/name must be string/,
    /^platforms\.list$/,
  ],
  [
    'a 400 for a 422',
    {
      path: `${OPERATIONS}/groups/update`,
      status: 422,
      answer: ({ headers }) => ({
        status: 400,
        headers: { ...headers, 'x-error-reason': 'body_not_json' },
        body: '{"error":true,"message":"x","data":[]}',
      }),
    },
    /^REST 400: 422 was expected/,
    /^groups\.update$/,
  ],
  [
    'a 200 for a 201',
    { path: `${OPERATIONS}/boards/create`, status: 201, answer: status(200) },
    /^REST 200: The status is not listed/,
    /^boards\.create/,
  ],
  [
    'a wrong content type',
    { path: `${OPERATIONS}/groups/delete`, status: 401, answer: header('content-type', 'text/html') },
    /^REST 401: The content type is not JSON/,
    /^groups\.delete$/,
  ],
  [
    'a cut body',
    { path: `${OPERATIONS}/cards/snooze`, status: 200, answer: ({ body }) => ({ body: body.slice(0, -1) }) },
    /^REST 200: The body is not JSON/,
    /^cards\.snooze$/,
  ],
  [
    'a wrong error body',
    {
      path: `${OPERATIONS}/cards/create`,
      status: 401,
      answer: body((error) => {
        delete error.error;
      }),
    },
    /^REST 401: .*'error'/,
    /^cards\.create$/,
  ],
  [
    'an unknown reason',
    { path: `${ADMIN}/master-cards/push`, status: 404, answer: header('x-error-reason', 'nonsense') },
    /^REST 404: The reason nonsense is not listed/,
    /^masterCards\.push$/,
  ],
  [
    'a missing operation',
    [
      { path: '/api/services/websites/v1/themes/list', leadsTo: '/api/nothing' },
      { path: '/trpc/themes.list', leadsTo: '/trpc/nothing.here' },
    ],
    /^The operation is missing\.$/,
    /^themes\.list$/,
  ],
  [
    'an operation over REST only',
    { path: '/trpc/plans.list', leadsTo: '/trpc/nothing.here' },
    /^The operation is missing over RPC; REST has it/,
    /^plans\.list$/,
  ],
  [
    'an operation over RPC only',
    { path: `${PLATFORMS}/members/set`, leadsTo: '/api/nothing' },
    /^The operation is missing over REST .*members\/set\); RPC has it/,
    /^members\.set$/,
  ],
  [
    'an error with internals',
    {
      path: '/trpc/users.list',
      status: 422,
      answer: body(({ error }) => {
        error.json.data.stack = 'at x';
      }),
    },
    /^RPC 422: The error is not as expected in data\.stack/,
    /^users\.list$/,
  ],
  [
    'a date as text',
    {
      path: '/trpc/projects.list',
      status: 200,
      answer: body(({ result }) => {
        delete result.data.meta;
      }),
    },
    /^RPC 200: projects\.list: .*date/,
    /^projects\.list$/,
  ],
  [
    'a 200 for every error',
    { path: '/trpc/groups.create', status: 401, answer: status(200) },
    /^RPC 200: httpStatus is 401/,
    /^groups\.create$/,
  ],
  [
    'a 404 for a 405',
    { path: `${OPERATIONS}/cards/move`, method: 'GET', answer: status(404) },
    /^REST 404: 405 was expected/,
    /^cards\.move$/,
  ],
  [
    'a 405 without Allow',
    { path: '/trpc/webhooks.list', method: 'PUT', answer: header('allow') },
    /^RPC 405: The header Allow is not GET, POST/,
    /^webhooks\.list$/,
  ],
  [
    'another message over REST',
    {
      path: `${OPERATIONS}/comments/delete`,
      status: 404,
      answer: body((error) => {
        error.message = 'Gone.';
      }),
    },
    /^REST and RPC differ: message: REST "Gone\.", RPC/,
    /^comments\.delete$/,
  ],
  [
    'another value over RPC',
    {
      path: '/trpc/cards.update',
      status: 200,
      answer: body(({ result }) => {
        result.data.json.card.status = 'open';
      }),
    },
    /^REST and RPC differ: data\.card\.status: REST "closed", RPC "open"/,
    /^cards\.update$/,
  ],
  [
    'a repeat that is executed again',
    { path: '/trpc/boards.create', loses: 'idempotency-key' },
    /^RPC: a repeat does not have the header Idempotent-Replayed/,
    /^boards\.create/,
  ],
  [
    'a smaller limit for bodies',
    {
      path: `${OPERATIONS}/boards/list`,
      status: 400,
      answer: ({ body }) => (body.includes('too large') ? page(413)() : {}),
    },
    /^REST 413: 400 was expected/,
    /^REST: a body above 1 MiB$/,
  ],
  [
    'a page for unknown paths',
    { path: '/api/nothing', answer: page(200) },
    /^REST 200: 404 was expected/,
    /^REST: an unknown path$/,
  ],
  [
    'a 429 without Retry-After',
    {
      path: `${ADMIN}/master-boards/list`,
      status: 200,
      answer: ({ headers }) => ({
        status: 429,
        headers: { ...headers, 'x-error-reason': 'over_rate_limit' },
        body: '{"error":true,"message":"x"}',
      }),
    },
    /^REST 429: The header Retry-After is missing/,
    /^masterBoards\.list$/,
  ],
  [
    'a lost X-Project-Id',
    { path: '/trpc/boards.list', loses: 'x-project-id' },
    /^RPC: X-Project-Id does not arrive: the answer is a 200, not a 403/,
    /^X-Project-Id$/,
  ],
  [
    'a lost If-Match',
    { path: `${OPERATIONS}/tags/update`, loses: 'if-match' },
    /^REST: a change is accepted for an old version of the row/,
    /^tags\.update$/,
  ],
  [
    'a lost If-Match of a deletion',
    { path: `${ADMIN}/master-cards/delete`, loses: 'if-match' },
    /^REST: a change is accepted for an old version of the row/,
    /^masterCards\.delete$/,
  ],
  [
    'a lost Idempotency-Key',
    { path: `${OPERATIONS}/tags/delete`, loses: 'idempotency-key' },
    /^REST: a repeat with the same Idempotency-Key has another answer/,
    /^tags\.delete$/,
  ],
  [
    'a stream of events that never begins',
    { path: `${PLATFORMS}/events/stream`, holds: 'answer' },
    /^REST: the stream of events does not begin within 3 seconds/,
    /^REST: (events\.follow|the stream of events without a key)$/,
  ],
  [
    'a stream whose events are held back',
    { path: '/trpc/events.follow', holds: 'events' },
    /^RPC: an event does not arrive while the stream is open/,
    /^RPC: an event$/,
  ],
  [
    'a missing surface for assistants',
    { path: '/mcp', answer: (_, { body: sent }) => (sent.includes('tools/list') ? page(404)() : {}) },
    /^MCP 404: The body is not JSON/,
    /^tools\/list$/,
  ],
  [
    'a tool that fails',
    {
      path: '/mcp',
      answer: (_, { body: sent }) => (sent.includes('tools/call') ? { body: '{"jsonrpc":"2.0","id":1}' } : {}),
    },
    /^MCP 200: The message has no result/,
    /^tools\/call$/,
  ],
  [
    'a constant request id',
    { path: `${PLATFORMS}/keys/list`, answer: header('x-request-id', 'same') },
    /^X-Request-Id is not of one answer alone: \d+ answers share 1\./,
    /^all answers$/,
  ],
  [
    'a constant rate limit',
    { path: '*', method: 'POST', status: 200, answer: header('x-ratelimit-remaining', '599') },
    /^REST: X-RateLimit-Remaining stays 599 from call to call/,
    /^(REST|RPC): [a-z]+\.[a-z]+$/i,
  ],
  [
    'a damaged text in a request',
    { path: `${OPERATIONS}/comments/create`, sends: (body) => body.replace('ü', '?') },
    /^REST: "Can be deleted: Grüße, 日本語, 🚢" came back as "Can be deleted: Gr\?ße, 日本語, 🚢"/,
    /^comments\.(create|list)$/,
  ],
  [
    'a damaged text in an answer',
    { path: '/trpc/masterBoards.update', status: 200, answer: ({ body }) => ({ body: body.replace('🚢', '\ufffd') }) },
    /^RPC: "Can be deleted: .*" came back as "Can be deleted: Grüße, 日本語, \ufffd"/,
    /^masterBoards\.update$/,
  ],
  [
    'a body of 1 MiB that is refused',
    { path: '*', status: 200, answer: (_, { body: sent }) => (sent.length > 1_000_000 ? page(413)() : {}) },
    /^RPC 413: 200 was expected/,
    /^(REST|RPC): a body of 1 MiB$/,
  ],
  [
    'a long URL that is refused',
    { path: '*', method: 'GET', status: 200, answer: (_, { url }) => (url.length > 4000 ? page(414)() : {}) },
    /^RPC 414: 200 was expected/,
    /^RPC: a URL of 8,000 characters$/,
  ],
];

/** Plants all faults at once, each at its own place. */
async function checkWith(faults: Fault[]): Promise<Report> {
  const { url } = await ownService();
  const { users } = await givenWorld();
  const { secret: token } = await givenKey(users.superadmin);
  const proxy = await givenFaultyProxy(url, faults);
  vi.stubGlobal('fetch', uncheckedFetch());
  const report = await checkContract({ url: proxy.url, token }, { isWriting: true, streamSeconds: 3 });
  proxy.close();
  return report;
}

const PLANTED = FAULTS.flatMap(([, fault]) => fault);

describe('a fault of the service', () => {
  let report: Report;
  beforeAll(async () => {
    report = await checkWith(PLANTED);
  }, LONGEST_RUN_MILLISECONDS);

  it.each(FAULTS)('is found: %s', (_, __, problem, call) => {
    expect(report.cases).toContainEqual(found(problem, call));
  });

  it('leaves no row of ours behind', async () => {
    expect(report.left).toEqual([]);
    expect(await ownRows()).toEqual(NOTHING_LEFT);
  });

  it('is all that is found', () => {
    const planted = FAULTS.map(([, , , call]) => call);
    const others = report.cases.filter(
      ({ call, problems }) => problems.length > 0 && !planted.some((one) => one.test(call)),
    );

    expect(others).toEqual([]);
  });
});

const found = (problem: RegExp, call: RegExp) => ({
  check: expect.any(String),
  call: expect.stringMatching(call),
  problems: expect.arrayContaining([expect.stringMatching(problem)]),
});

/** A lost header can't be wrong as well. */
const LOST_WITH_IT = ['an unknown reason', 'a constant request id'];

describe('headers that every answer lacks', () => {
  let report: Report;
  beforeAll(async () => {
    report = await checkWith([...PLANTED, ...LOST]);
  }, LONGEST_RUN_MILLISECONDS);

  it.each(FAULTS.filter(([title]) => !LOST_WITH_IT.includes(title)))('do not hide %s', (_, __, problem, call) => {
    expect(report.cases).toContainEqual(found(problem, call));
  });
});

describe('a gateway that loses X-Project-Id', () => {
  it.each([
    ['REST', '*', 1],
    ['RPC', '/trpc/boards.create', 2],
  ])(
    'over %s: after the first row in another project nothing is written, and it is removed',
    async (surface, path, created) => {
      const countBoards = async () =>
        (
          await query(
            await testDb(),
            sql<{ count: number }>`select count(*)::int as count from boards where title like 'Deckhand%'`,
          )
        )[0]!.count;
      const { url } = await ownService();
      const { users } = await givenWorld();
      const { secret } = await givenKey(users.superadmin);
      const proxy = await givenFaultyProxy(url, [{ path, loses: 'x-project-id' }]);
      vi.stubGlobal('fetch', uncheckedFetch());
      const before = await countBoards();

      const { exitCode, printed } = await command(['--url', proxy.url, '--key', secret, '--write']);

      expect(printed).toMatch(
        new RegExp(
          `- ${surface}: X-Project-Id does not arrive: the row was created in project \\d+, not in \\d+\\. Nothing more was written\\.`,
        ),
      );
      expect(exitCode).toBe(1);
      expect(await countBoards()).toBe(before + created);
      expect(await ownRows()).toEqual(NOTHING_LEFT);
      proxy.close();
    },
    LONGEST_RUN_MILLISECONDS,
  );
});

it('a stream that a proxy collects is not waited for', async () => {
  const { url } = await ownService();
  const { users } = await givenWorld();
  const { secret: token } = await givenKey(users.superadmin);
  const proxy = await givenFaultyProxy(url, [{ path: `${PLATFORMS}/events/stream`, holds: 'body' }]);
  vi.stubGlobal('fetch', uncheckedFetch());
  const sent = { method: 'GET', path: `${PLATFORMS}/events/stream`, withinSeconds: 1 };

  await expect(senderTo({ url: proxy.url, token })(sent)).rejects.toMatchObject({ name: 'TimeoutError' });
  expect((await senderTo({ url, token })(sent)).text).toMatch(/^id: /m);
  proxy.close();
});
