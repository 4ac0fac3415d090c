import { readFile } from 'node:fs/promises';
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { createGzip } from 'node:zlib';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { findProcedure, procedures, restProcedures } from '../../server/api/procedures.ts';
import { runCommandLine } from '../../server/cli/run.ts';
import { inputSchemaOf } from '../../server/contract/input.ts';
import { SOURCES, WITH_SECRET } from '../../server/contract/queries.ts';
import { problemsOf, type Report } from '../../server/contract/report.ts';
import { checkContract, type Options } from '../../server/contract/run.ts';
import { senderTo } from '../../server/contract/sender.ts';
import { BOARD_STEPS, TEMPLATE_STEPS } from '../../server/contract/writeSteps.ts';
import { query } from '../../server/database/query.ts';
import { uncheckedFetch } from '../harness/checkAnswers.ts';
import { type Fault, givenFaultyProxy, type ProxiedAnswer, type ProxiedRequest } from '../harness/faultyProxy.ts';
import { givenDirectory } from '../harness/process.ts';
import { givenService, testService, withOwnService } from '../harness/service.ts';
import { givenTerminal } from '../harness/terminal.ts';
import { givenKey, givenMasterBoard, givenWorld, testDb, type World } from '../harness/world.ts';

const LONGEST_RUN_MILLISECONDS = 300_000;
vi.setConfig({ testTimeout: LONGEST_RUN_MILLISECONDS, hookTimeout: LONGEST_RUN_MILLISECONDS });

// The failed sign-ins of the checks would count against those of other suites.
withOwnService();

let url: string;
let world: World;
/** The key of a superadmin. */
let key: string;
beforeAll(async () => {
  url = (await testService()).url;
  world = await givenWorld();
  key = (await givenKey(world.users.superadmin)).secret;
  await givenMasterBoard();
  vi.stubGlobal('fetch', uncheckedFetch());
});
afterAll(async () => {
  vi.unstubAllGlobals();
  // The service would wait for streams that a proxy held.
  (await testService()).app.server.closeAllConnections();
});

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

const countRows = async (table: 'boards' | 'events' | 'platforms' | 'webhooks') =>
  (await query(await testDb(), sql<{ count: number }>`select count(*)::int as count from ${sql.table(table)}`))[0]!
    .count;

/** The types of new events in other projects than the own one. */
async function strangeEvents(before: number, ownProject: number) {
  const later = sql`(select * from events order by transaction_id, id offset ${before}) as later`;
  return query(
    await testDb(),
    sql`select distinct type, project_id from ${later}
      where project_id <> ${ownProject}`,
  );
}

async function command(words: string[], environment: Record<string, string> = {}) {
  const terminal = givenTerminal([], { isPerson: false });
  const result = await runCommandLine(['contract', ...words], () => environment, terminal);
  return { ...result, shown: terminal.shown };
}

/** A proxy in front of the service, for as long as it is worked with. */
async function throughProxy<Result>(
  faults: Fault[],
  work: (proxyUrl: string) => Promise<Result>,
  serviceUrl = url,
): Promise<Result> {
  const proxy = await givenFaultyProxy(serviceUrl, faults);
  return work(proxy.url).finally(proxy.close);
}

/** Checks the service with --write, through a proxy with these faults. */
async function checkWith(
  faults: Fault[],
  { token = key, ...options }: Options & { token?: string } = {},
  serviceUrl = url,
) {
  const lines: string[] = [];
  const report = await throughProxy(
    faults,
    (proxyUrl) =>
      checkContract({ url: proxyUrl, token }, { isWriting: true, announce: (line) => lines.push(line), ...options }),
    serviceUrl,
  );
  return { report, lines, problems: problemsOf(report).map(({ problem }) => problem) };
}

/** The operations with these names: enough for what one fault is about. */
const only = (...names: string[]) => restProcedures.filter(({ name }) => names.includes(name));
const STEPS = [...BOARD_STEPS, ...TEMPLATE_STEPS].map(({ call }) => call);

/** Headers that a proxy removes from every answer. */
const LOST = ['x-request-id', 'x-ratelimit-limit', 'etag', 'x-error-reason', 'x-content-type-options'].map(
  (name): Fault => ({ path: '*', answer: header(name) }),
);
const LOST_LINES = [
  'The header X-RateLimit-Limit is missing.',
  'The header X-Request-Id is missing.',
  'The header X-Error-Reason is missing.',
  'The header x-content-type-options is missing.',
  'The header ETag is missing.',
];
const OWN_PROJECT = /^Creates rows in project (\d+) \("Deckhand contract check"\)/;

describe('npx deckhand contract', () => {
  it('finds nothing in the service of this version, changes only rows of its own, and removes them', async () => {
    const before = await countRows('events');
    const junit = join(await givenDirectory(), 'contract.xml');

    const { exitCode, printed, shown } = await command(['--url', url, '--key', key, '--write', '--junit', junit]);

    expect(printed).toMatch(/: (\d+) of \1 operations\.\n/);
    expect(printed).toMatch(/ checks, \d+ requests: nothing differs\.$/);
    expect(exitCode).toBe(0);
    expect(shown).toEqual([
      expect.stringMatching(OWN_PROJECT),
      expect.stringMatching(/^Webhooks are not checked: /),
      'Removes what it created.\n',
    ]);
    const [, project] = OWN_PROJECT.exec(shown[0]!)!;
    expect(await strangeEvents(before, Number(project))).toEqual([]);
    expect(await ownRows()).toEqual(NOTHING_LEFT);
    const xml = await readFile(junit, 'utf8');
    expect(xml).toMatch(/^<\?xml .*\n<testsuites name="deckhand contract http:.*" tests="\d+" failures="0">\n/);
    expect(xml.match(/<testcase classname="change" name="[^"]+"\/>/g)!.length).toBeGreaterThan(40);
    expect(printed + xml + shown.join()).not.toContain(key);
  });

  it('changes nothing without --write', async () => {
    const before = await countRows('events');

    const { lines, problems } = await checkWith([], { isWriting: false, known: only(...STEPS) });

    expect({ lines, problems, events: await countRows('events') }).toEqual({ lines: [], problems: [], events: before });
  });

  it('1 for a service without most operations', async () => {
    const others: Fault[] = [
      { path: '/trpc/projects.listOwn', leadsTo: '/trpc/projects.listOwn' },
      { path: '*', leadsTo: '/api/nothing' },
    ];
    const names = restProcedures.map(({ name }) => name).filter((name) => name !== 'projects.listOwn');
    const check = (...words: string[]) =>
      throughProxy(others, (proxyUrl) => command(['--url', proxyUrl, ...words], { DECKHAND_KEY: key }));

    const { exitCode, printed } = await check();

    expect(exitCode).toBe(1);
    expect(printed).toMatch(new RegExp(`: 0 of ${names.length + 1} operations\\.\n- `));
    expect(printed).toContain(`- The operation is missing.\n  without a key: ${names.slice(0, 8).join(', ')} and `);
    expect(printed).toMatch(/ checks, \d+ requests: \d+ differences\.$/);
    const inJson = await check('--json');
    expect(inJson.exitCode).toBe(1);
    const missing = JSON.parse(inJson.printed!).problems.find(
      ({ problem }: any) => problem === 'The operation is missing.',
    );
    expect(missing.calls.toSorted()).toEqual(names.toSorted());
  });

  it('with --write and the key of a member, creates rows in the project of the key', async () => {
    const { secret: token } = await givenKey(world.users.member, { project_id: world.project.id });
    const lines: string[] = [];
    const ofEachAccess = [...Map.groupBy(restProcedures, ({ access }) => access).values()].map(
      ([first]) => first!.name,
    );

    const report = await checkContract(
      { url, token },
      {
        isWriting: true,
        known: only(...STEPS, ...ofEachAccess, 'projects.create'),
        announce: (line) => lines.push(line),
      },
    );

    expect(problemsOf(report)).toEqual([]);
    expect(lines[0]).toMatch(/^Creates rows in the caller's default project/);
    expect(report.denied.not_a_superadmin ?? report.denied.scope_missing).toContain('masterBoards.create');
    expect(await ownRows()).toEqual(NOTHING_LEFT);
  });

  it('with --write, writes nothing if its own project can not be opened', async () => {
    const unlisted = { status: 200, answer: page(503) };
    const { lines, problems } = await checkWith([rest('projects.list', unlisted), rpc('projects.list', unlisted)], {
      known: only('boards.create', 'projects.list'),
    });

    expect(problems).toContain('"Deckhand contract check" could not be opened: no rows were written.');
    expect(lines).toEqual([]);
  });

  it('names headers that a proxy removes from every answer once, and nothing else, in its own project', async () => {
    const check = () => checkWith(LOST, { known: only('boards.create', 'boards.update', 'boards.get', 'cards.list') });

    const { report, lines, problems } = await check();
    const before = await countRows('platforms');
    await check();

    expect(lines[0]).toMatch(OWN_PROJECT);
    expect(problems.map((problem) => problem.replace(/^.*: /, ''))).toEqual(LOST_LINES);
    expect(report.left).toEqual([]);
    expect(await countRows('platforms')).toBe(before);
    expect(await ownRows()).toEqual(NOTHING_LEFT);
  });

  it('does not look for events of its calls if a proxy gives them other ids, and tells none', async () => {
    const lost: Fault = { path: '*', loses: 'x-request-id', answer: header('x-request-id') };

    const { problems } = await checkWith([lost], { known: only('boards.create', 'boards.update', 'events.list') });

    expect(problems.map((problem) => problem.replace(/^.*: /, ''))).toEqual(['The header X-Request-Id is missing.']);
  });

  it('says once that a proxy makes an ETag weak, and reads its version all the same', async () => {
    const weaken = ({ headers }: ProxiedAnswer) =>
      headers.etag ? { headers: { ...headers, etag: `W/${headers.etag}` } } : {};

    const { problems } = await checkWith([{ path: '*', answer: weaken }], {
      known: only(...BOARD_STEPS.map(({ call }) => call), 'events.list'),
    });

    expect(problems).toEqual(['REST 200, 201: The header ETag is weak: in If-Match, it never matches.']);
  });

  it('removes what it created when it is interrupted, and says what it could not remove', async () => {
    const before = await countRows('boards');
    const interruption = new AbortController();
    const lines: string[] = [];

    const run = checkWith([rest('boards.delete', { status: 200, answer: status(500) })], {
      known: only('boards.create', 'boards.update'),
      signal: interruption.signal,
      announce: (line) => lines.push(line),
      onProgress: (line) => line.endsWith('change (boards.update)') && interruption.abort(),
    });

    await expect(run).rejects.toThrow('aborted');
    expect(lines[0]).toMatch(OWN_PROJECT);
    expect(lines[1]).toBe('Removes what it created.');
    expect(lines[2]).toMatch(/^Not removed: boards\.delete \d+ \(500\)$/);
    expect(await countRows('boards')).toBe(before + 2);
    expect(await ownRows()).toEqual(NOTHING_LEFT);
  });

  it('ends at once when it is interrupted while it waits for events', async () => {
    const interruption = new AbortController();

    const run = checkWith([{ path: STREAM, holds: 'events' }, rpc('events.follow', { holds: 'events' })], {
      known: only('boards.create', 'boards.delete', 'events.list'),
      signal: interruption.signal,
      streamSeconds: LONGEST_RUN_MILLISECONDS,
      // The last change: what follows is the wait.
      onProgress: (line) => line.endsWith('change (boards.delete)') && interruption.abort(),
    });

    await expect(run).rejects.toThrow('aborted');
    expect(await ownRows()).toEqual(NOTHING_LEFT);
  });

  it('goes on without webhooks if its receiver can not listen', async () => {
    const server = createServer();
    await new Promise<void>((done) => server.listen(0, done));
    const { port } = server.address() as AddressInfo;

    const { lines, problems } = await checkWith([], {
      receiver: { url: 'http://127.0.0.1:1', port },
      known: only('boards.create', 'boards.delete', 'events.list', 'webhooks.create'),
    });
    server.close();

    expect(problems).toEqual([]);
    expect(lines[1]).toMatch(/^Webhooks are not checked: the receiver can't listen \(.*EADDRINUSE/);
    expect(await ownRows()).toEqual(NOTHING_LEFT);
  });

  it('says on a terminal why it waits, and 1 after Ctrl-C', async () => {
    let isLimited = true;
    const limitOnce = ({ headers }: ProxiedAnswer) => {
      const answer = isLimited ? { status: 429, headers: { ...headers, 'retry-after': '1' } } : {};
      isLimited = false;
      return answer;
    };
    const terminal = givenTerminal();
    const update = terminal.update;
    terminal.update = (line) => {
      update(line);
      if (line.startsWith('Checked ')) process.emit('SIGINT');
    };

    const { exitCode, complaint } = await throughProxy([rest('projects.listOwn', { answer: limitOnce })], (proxyUrl) =>
      runCommandLine(['contract', '--url', proxyUrl, '--key', key, '--write'], () => ({}), terminal),
    );

    const written = terminal.shown.filter((line) => !line.startsWith('progress: '));
    expect(written).toEqual(['Waits 1 second, as the service asked (429).\n']);
    expect({ exitCode, complaint }).toEqual({ exitCode: 1, complaint: 'Interrupted.' });
  });

  it('2 for a service that it can not check', async () => {
    const gone = await throughProxy([], async (proxyUrl) => proxyUrl);
    const home = await givenDirectory();
    const nobody = { HOME: home, XDG_CONFIG_HOME: home };

    for (const [words, message] of [
      [['--key', 'dkh_x'], '--url is missing'],
      [['--url', gone, '--key', 'dkh_x'], `${gone} can't be reached: ECONNREFUSED.`],
      [['--url', url, '--key', 'dkh_x'], 'did not accept the key'],
      [['--url', url], `You are not signed in to ${url}. Run: npx deckhand login`],
      [['--url', url, '--key', 'dkh_a\u2026z'], 'characters that no key has'],
      [['--url', `${url}/elsewhere`, '--key', 'dkh_x'], 'is not the address of a Deckhand service'],
    ] as [string[], string][]) {
      const { exitCode, complaint } = await command(words, nobody);
      expect({ exitCode, complaint }).toEqual({ exitCode: 2, complaint: expect.stringContaining(message) });
      expect(complaint).not.toContain('dkh_a');
    }
  });

  it('leaves a JUnit file with a failure if it can not end', async () => {
    const junit = join(await givenDirectory(), 'contract.xml');

    await command(['--url', url, '--key', 'dkh_x', '--junit', junit]);

    const xml = await readFile(junit, 'utf8');
    expect(xml).toMatch(/^<\?xml .*\n<testsuites name="deckhand contract http:.*" tests="1" failures="1">\n/);
    expect(xml).toContain('<failure message="The checks did not end.">');
  });

  it('waits as long as a 429 says', async () => {
    let left = 2;
    const limit = ({ headers }: ProxiedAnswer) =>
      left-- > 0 ? { status: 429, headers: { ...headers, 'retry-after': '0' } } : {};
    const limited: number[] = [];

    const answer = await throughProxy([{ path: '/api/nothing', answer: limit }], (proxyUrl) =>
      senderTo(
        { url: proxyUrl, token: 'x' },
        { onLimited: (_, { status }) => limited.push(status) },
      )({
        path: '/api/nothing',
      }),
    );

    expect(answer.status).toBe(404);
    expect(limited).toEqual([429, 429]);
  });

  it('waits for events as long as a 429 for the feed says, and does not call them late', async () => {
    let isLimited = false;
    const limitOnce = ({ headers }: ProxiedAnswer, { body: sent }: ProxiedRequest) => {
      if (isLimited || !/"after":"(?!latest)/.test(sent)) return {};
      isLimited = true;
      const limited = { ...headers, 'x-error-reason': 'over_rate_limit', 'retry-after': '15' };
      return { status: 429, headers: limited, body: '{"error":true,"message":"x"}' };
    };

    const { lines, problems } = await checkWith([rest('events.list', { status: 200, answer: limitOnce })], {
      known: only('boards.create', 'boards.update', 'events.list'),
    });

    expect(problems).toEqual([]);
    expect(lines).toContain('Waits 15 seconds, as the service asked (429).');
  });

  it('opens a stream that a proxy ended again, behind the last event', async () => {
    const { problems } = await checkWith(
      [
        { path: STREAM, endsStream: true },
        { path: '/trpc/events.follow', endsStream: true },
      ],
      { known: only('boards.create', 'boards.update', 'boards.delete', 'events.list'), streamSeconds: 30 },
    );

    expect(problems).toEqual([]);
  });

  it('does not wait for a stream that a proxy collects', async () => {
    const sent = { method: 'GET', path: STREAM, withinSeconds: 1 };

    const collected = throughProxy([{ path: STREAM, holds: 'body' }], (proxyUrl) =>
      senderTo({ url: proxyUrl, token: key })(sent),
    );

    await expect(collected).rejects.toMatchObject({ name: 'TimeoutError' });
    expect((await senderTo({ url, token: key })(sent)).text).toMatch(/^id: /m);
  });

  it('knows where the rows of every query come from', () => {
    const queries = procedures.filter(({ type }) => type === 'query');
    const needing = queries.filter((procedure) => (inputSchemaOf(procedure).required ?? []).length > 0);

    expect(needing.map(({ name }) => name).toSorted()).toEqual([...Object.keys(SOURCES), ...WITH_SECRET].toSorted());
  });
});

/** A fault of one operation over REST, or over RPC. */
type Planted = Fault & { call?: string };
const rest = (call: string, fault: Omit<Fault, 'path'>): Planted => ({
  path: `/api${findProcedure(call)!.rest!.path}`,
  call,
  ...fault,
});
const rpc = (call: string, fault: Omit<Fault, 'path'>): Planted => ({ path: `/trpc/${call}`, call, ...fault });

/** Changes the JSON of a success, or of this status. */
const body = (change: (body: any) => void, status = 200) => ({
  status,
  answer: ({ body }: ProxiedAnswer) => {
    const changed = JSON.parse(body);
    change(changed);
    return { body: JSON.stringify(changed) };
  },
});
function header(name: string, value?: string) {
  return ({ headers: { [name]: _, ...others } }: ProxiedAnswer) => ({
    headers: value === undefined ? others : { ...others, [name]: value },
  });
}
const status = (code: number) => () => ({ status: code });
const page = (code: number) => () => ({
  status: code,
  headers: { 'content-type': 'text/html' },
  body: '<h1>A page</h1>',
});
const refusal = (code: number, reason: string) => ({
  answer: ({ headers }: ProxiedAnswer) => ({
    status: code,
    headers: { ...headers, 'x-error-reason': reason },
    body: '{"error":true,"message":"x","data":[]}',
  }),
});

const STREAM = '/api/services/platforms/v1/events/stream';

/** What is planted, and how it is reported. The call is that of the planted fault, unless it is named. */
const FAULTS: Record<string, [planted: Planted | Planted[], problem: RegExp, call?: RegExp]> = {
  'a missing header': [
    rest('tags.list', { status: 200, answer: header('x-ratelimit-reset') }),
    /^REST 200: The header X-RateLimit-Reset is missing/,
  ],
  'a missing header over RPC': [
    rpc('tags.update', { answer: header('x-ratelimit-reset') }),
    /^RPC \d+: The header X-RateLimit-Reset is missing/,
  ],
  'a header with a wrong value': [
    rest('groups.configure', { answer: header('x-ratelimit-remaining', 'many') }),
    /^REST \d+: X-RateLimit-Remaining: /,
  ],
  'a missing security header': [
    rest('comments.create', { status: 201, answer: header('x-frame-options') }),
    /^REST 201: The header x-frame-options is missing/,
  ],
  'an answer that may be cached': [
    rest('audit.list', { status: 200, answer: header('cache-control', 'public') }),
    /^REST 200: The header cache-control is public, not no-store/,
  ],
  'a renamed field': [
    rest(
      'cards.get',
      body(({ data: { card } }) => {
        card.name = card.title;
        delete card.title;
      }),
    ),
    /^REST 200: .*'title'/,
  ],
  'an extra field': [
    rest(
      'events.list',
      body(({ data }) => Object.assign(data, { more: 1 })),
    ),
    /^REST 200: .*"more"/,
  ],
  'null instead of text': [
    rest(
      'platforms.list',
      body(({ data }) => Object.assign(data.platforms[0], { name: null })),
    ),
    /^REST 200: \/data\/platforms\/0\/name must be string/,
  ],
  'a 400 for a 422': [
    rest('groups.update', { status: 422, ...refusal(400, 'body_not_json') }),
    /^REST 400: 422 was expected/,
  ],
  'a 200 for a 201': [
    rest('boards.create', { status: 201, answer: status(200) }),
    /^REST 200: The status is not listed/,
  ],
  'a wrong content type': [
    rest('groups.delete', { status: 401, answer: header('content-type', 'text/html') }),
    /^REST 401: The content type is not JSON/,
  ],
  'a cut body': [
    rest('cards.snooze', { status: 200, answer: ({ body }) => ({ body: body.slice(0, -1) }) }),
    /^REST 200: The body is not JSON/,
  ],
  'a wrong error body': [
    rest(
      'cards.create',
      body((sent) => delete sent.error, 401),
    ),
    /^REST 401: .*'error'/,
  ],
  'an unknown reason': [
    rest('masterCards.push', { status: 404, answer: header('x-error-reason', 'nonsense') }),
    /^REST 404: The reason nonsense is not listed/,
  ],
  'a missing operation': [
    [rest('themes.list', { leadsTo: '/api/nothing' }), rpc('themes.list', { leadsTo: '/trpc/nothing.here' })],
    /^The operation is missing\.$/,
  ],
  'an operation over REST only': [
    rpc('plans.list', { leadsTo: '/trpc/nothing.here' }),
    /^The operation is missing over RPC; REST has it/,
  ],
  'an operation over RPC only': [
    rest('members.set', { leadsTo: '/api/nothing' }),
    /^The operation is missing over REST .*members\/set\); RPC has it/,
  ],
  'an error with internals': [
    rpc(
      'users.list',
      body(({ error }) => Object.assign(error.json.data, { stack: 'at x' }), 422),
    ),
    /^RPC 422: The error is not as expected in data\.stack/,
  ],
  'a date as text': [
    rpc(
      'projects.list',
      body(({ result }) => delete result.data.meta),
    ),
    /^RPC 200: projects\.list: .*date/,
  ],
  'a 200 for every error': [rpc('groups.create', { status: 401, answer: status(200) }), /^RPC 200: httpStatus is 401/],
  'a 404 for a 405': [rest('cards.move', { method: 'GET', answer: status(404) }), /^REST 404: 405 was expected/],
  'a 405 without Allow': [
    rpc('webhooks.list', { method: 'PUT', answer: header('allow') }),
    /^RPC 405: The header Allow is not GET, POST/,
  ],
  'another message over REST': [
    rest(
      'comments.delete',
      body((sent) => Object.assign(sent, { message: 'Gone.' }), 404),
    ),
    /^REST and RPC differ: message: REST "Gone\.", RPC/,
  ],
  'another value over RPC': [
    rpc(
      'cards.update',
      body(({ result }) => Object.assign(result.data.json.card, { status: 'open' })),
    ),
    /^REST and RPC differ: data\.card\.status: REST "closed", RPC "open"/,
  ],
  'a repeat that is executed again': [
    rpc('boards.create', { loses: 'idempotency-key' }),
    /^RPC: a repeat does not have the header Idempotent-Replayed/,
  ],
  'a smaller limit for bodies': [
    rest('boards.list', { status: 400, answer: ({ body }) => (body.includes('too large') ? page(413)() : {}) }),
    /^REST 413: 400 was expected/,
    /^REST: a body above 1 MiB$/,
  ],
  'a page for unknown paths': [
    { path: '/api/nothing', answer: page(200) },
    /^REST 200: 404 was expected/,
    /^REST: an unknown path$/,
  ],
  'a 429 without Retry-After': [
    rest('masterBoards.list', { status: 200, ...refusal(429, 'over_rate_limit') }),
    /^REST 429: The header Retry-After is missing/,
  ],
  'a lost X-Project-Id': [
    rpc('boards.list', { loses: 'x-project-id' }),
    /^RPC: X-Project-Id does not arrive: the answer is a 200, not a 403/,
    /^X-Project-Id$/,
  ],
  'a lost If-Match': [
    rest('tags.update', { loses: 'if-match' }),
    /^REST: a change is accepted for an old version of the row/,
  ],
  'a lost If-Match of a deletion': [
    rest('masterCards.delete', { loses: 'if-match' }),
    /^REST: a change is accepted for an old version of the row/,
  ],
  'a lost Idempotency-Key': [
    rest('tags.delete', { loses: 'idempotency-key' }),
    /^REST: a repeat with the same Idempotency-Key has another answer/,
  ],
  'a stream of events that never begins': [
    { path: STREAM, holds: 'answer' },
    /^REST: the stream of events does not begin within 3 seconds/,
    /^REST: (events\.follow|the stream of events without a key)$/,
  ],
  'a stream whose events are held back': [
    rpc('events.follow', { holds: 'events' }),
    /^RPC: stream: no event arrives within 3 seconds/,
    /^RPC: stream: an event$/,
  ],
  'a missing surface for assistants': [
    { path: '/mcp', answer: (_, { body: sent }) => (sent.includes('tools/list') ? page(404)() : {}) },
    /^MCP 404: The body is not JSON/,
    /^tools\/list$/,
  ],
  'a tool that fails': [
    {
      path: '/mcp',
      answer: (_, { body: sent }) => (sent.includes('tools/call') ? { body: '{"jsonrpc":"2.0","id":1}' } : {}),
    },
    /^MCP 200: The message has no result/,
    /^tools\/call$/,
  ],
  'a constant request id': [
    rest('keys.list', { answer: header('x-request-id', 'same') }),
    /^X-Request-Id is not of one answer alone: \d+ answers share 1\./,
    /^all answers$/,
  ],
  'a constant rate limit': [
    { path: '*', method: 'POST', status: 200, answer: header('x-ratelimit-remaining', '599') },
    /^REST: X-RateLimit-Remaining stays 599 from call to call/,
    /^(REST|RPC): [a-z]+\.[a-z]+$/i,
  ],
  'a damaged text in a request': [
    rest('comments.create', { sends: (body) => body.replace('ü', '?') }),
    /^REST: "Can be deleted: Grüße, 日本語, 🚢" came back as "Can be deleted: Gr\?ße, 日本語, 🚢"/,
    /^comments\.(create|list)$/,
  ],
  'a damaged text in an answer': [
    rpc('masterBoards.update', { status: 200, answer: ({ body }) => ({ body: body.replace('🚢', '\ufffd') }) }),
    /^RPC: "Can be deleted: .*" came back as "Can be deleted: Grüße, 日本語, \ufffd"/,
  ],
  'a body of 1 MiB that is refused': [
    { path: '*', status: 200, answer: (_, { body: sent }) => (sent.length > 1_000_000 ? page(413)() : {}) },
    /^RPC 413: 200 was expected/,
    /^(REST|RPC): a body of 1 MiB$/,
  ],
  'a long URL that is refused': [
    { path: '*', method: 'GET', status: 200, answer: (_, { url }) => (url.length > 4000 ? page(414)() : {}) },
    /^RPC 414: 200 was expected/,
    /^RPC: a URL of 8,000 characters$/,
  ],
};

type Row = any;
/** Changes the data of a success over REST, and over RPC. */
const restData = (call: string, change: (data: Row) => void, code = 200) =>
  rest(
    call,
    body(({ data }) => change(data), code),
  );
const rpcData = (call: string, change: (data: Row) => void) =>
  rpc(
    call,
    body(({ result }) => change(result.data.json)),
  );
/** Answers the same request as the first time, as a cache does. */
function cached() {
  const known = new Map<string, ProxiedAnswer>();
  return (answer: ProxiedAnswer, { url, body }: ProxiedRequest) => {
    const first = known.get(url + body);
    if (!first) known.set(url + body, answer);
    return { body: first?.body ?? answer.body };
  };
}
const REPLAYED = { answer: header('idempotent-replayed', 'true') };
const FIRST_CALL = /Idempotent-Replayed is on the answer to a first call/;
const OLD = /: an answer is from before a change, as of a cache/;
const ORDER = /^RPC: the results of a batch are not those of its calls/;
const reverseBatch = ({ body }: ProxiedAnswer, { url }: ProxiedRequest) =>
  url.includes('batch=1') && body.startsWith('[') ? { body: JSON.stringify(JSON.parse(body).toReversed()) } : {};

/** What only a call that succeeds shows: first calls, caches, batches, and operations with start states. */
const FURTHER: typeof FAULTS = {
  'a first call as a repeat over REST': [rest('tags.create', { status: 201, ...REPLAYED }), FIRST_CALL],
  'a first call as a repeat over RPC': [rpc('boards.update', { status: 200, ...REPLAYED }), FIRST_CALL],
  'a query as a repeat': [rest('projects.list', { status: 200, ...REPLAYED }), FIRST_CALL],
  'a refusal as a repeat': [rpc('cards.delete', { status: 401, ...REPLAYED }), FIRST_CALL],
  'a start state as a repeat': [rest('themes.create', { status: 201, ...REPLAYED }), FIRST_CALL],
  'a cached board': [rest('boards.get', { status: 200, answer: cached() }), OLD],
  'cached boards': [rpc('boards.list', { status: 200, answer: cached() }), OLD],
  'a cached card': [rpc('cards.get', { status: 200, answer: cached() }), OLD],
  'cached cards': [rest('cards.list', { status: 200, answer: cached() }), OLD],
  'cached comments, with GET': [rpc('comments.list', { method: 'GET', status: 200, answer: cached() }), OLD],
  'cached tags': [rpc('tags.list', { status: 200, answer: cached() }), OLD],
  'the results of a batch in another order': [{ path: '*', answer: reverseBatch }, ORDER, /^RPC: .*batch$/],
  'an altered name': [
    restData('platforms.update', ({ platform }) => Object.assign(platform, { name: 'HQ' })),
    /^REST: "Deckhand contract check" came back as "HQ"/,
  ],
  'a user without a name': [
    rpcData('users.update', ({ user }) => delete user.name),
    /^RPC 200: users\.update: .*name/s,
  ],
  'a missing number': [restData('users.deactivate', (data) => delete data.sessions_ended), /'sessions_ended'/],
  'a fault instead of a success': [rest('users.activate', { status: 200, answer: status(500) }), /^REST 500: /],
  'a 200 for an invitation': [rest('members.invite', { status: 201, answer: status(200) }), /status is not listed/],
  'a member without a request id': [
    rest('members.add', { status: 201, answer: header('x-request-id') }),
    /X-Request-Id is missing/,
  ],
  'a role that is no role': [
    rpcData('account.acceptInvitation', ({ member }) => (member.role = 5)),
    /^RPC 200: .*role/s,
  ],
  'a page for a proof': [rest('account.prove', { status: 200, answer: page(200) }), /content type is not JSON/],
  'a secret that is a number': [
    restData('account.startSecondFactor', (data) => (data.secret = 5)),
    /secret must be string/,
  ],
  'codes that are no list': [
    rpcData('account.confirmSecondFactor', (data) => (data.recovery_codes = 'x')),
    /^RPC 200: .*recovery_codes/s,
  ],
  'a sign-in that frames may show': [
    rest('auth.authenticate', { status: 200, answer: header('x-frame-options') }),
    /x-frame-options is missing/,
  ],
  'a sign-in with another field': [rpcData('auth.authenticate', (data) => (data.more = 1)), /model lacks a field/],
  'a credential that may be cached': [
    rest('auth.exchange', { status: 200, answer: header('cache-control', 'public') }),
    /cache-control is public/,
  ],
  'an issuer without its name': [rpcData('identityIssuers.create', ({ issuer }) => delete issuer.issuer), /^RPC 200: /],
  'a cut rule': [
    rpc('identityRules.create', { status: 200, answer: ({ body }) => ({ body: body.slice(0, -9) }) }),
    /body is not JSON/,
  ],
  'a 202 for a change': [rest('identityRules.update', { status: 200, answer: status(202) }), /status is not listed/],
  'a key without the rate limit': [
    rest('keys.create', { status: 201, answer: header('x-ratelimit-limit') }),
    /X-RateLimit-Limit is missing/,
  ],
  'a key with another field': [rpcData('keys.rotate', (data) => (data.more = 1)), /model lacks a field/],
  'the user of a key as null': [restData('keys.self', (data) => (data.user = null)), /^REST 200: \/data\/user /],
  'a webhook without an address': [restData('webhooks.update', ({ webhook }) => delete webhook.url), /'url'/],
  'a webhook without its secret': [
    rpcData('webhooks.rotateSecret', (data) => delete data.secret),
    /^RPC 200: .*secret/s,
  ],
  'a 503 for a skip': [rest('webhooks.skip', { status: 200, answer: page(503) }), /^REST 503: /],
  'a rollout without stages': [rpcData('rollouts.plan', ({ rollout }) => delete rollout.stages), /^RPC 200: .*stages/s],
  'a 409 for a start': [rest('rollouts.start', { status: 200, answer: status(409) }), /status is not listed/],
  'a state that is a number': [
    restData('rollouts.rollback', ({ rollout }) => (rollout.state = 7)),
    /state must be string/,
  ],
  'a text for a yes': [rpcData('releases.publish', (data) => (data.is_new = 'yes')), /must be true or false/],
  'a hold that frames may show': [
    rest('templates.hold', { status: 200, answer: header('x-frame-options') }),
    /x-frame-options is missing/,
  ],
  'a count as text': [restData('templateFiles.import', (data) => (data.created_count = '1')), /must be integer/],
  'a sync without a count': [
    rpcData('masterBoards.sync', (data) => (data.synced_count = null)),
    /must be a whole number/,
  ],
  'a trial without a status': [
    restData('subscriptions.setTrial', ({ subscription }) => delete subscription.status),
    /'status'/,
  ],
  'a price as text': [rpcData('plans.set', ({ plan }) => (plan.price_cents = '0')), /must be a whole number/],
  'a gateway that gives up': [rpc('themes.publishVersion', { status: 200, answer: page(502) }), /^RPC 502: /],
};

/** All of a table are planted at once, each at its own place; the first behind the loss of headers, which must not hide any. */
describe.each([
  ['of calls and their refusals', FAULTS, LOST, () => key],
  ['of successes', FURTHER, [], () => world.asSuperadmin.token!],
] as const)('a fault %s', (_, table, lost, token) => {
  const faults = Object.entries(table as typeof FAULTS).map(([title, [planted, problem, call]]) => {
    const [{ call: name } = {}] = [planted].flat();
    return { title, planted: [planted].flat(), problem, call: call ?? new RegExp(`^${name}( |$)`) };
  });
  let report: Report;
  beforeAll(async () => {
    const planted = faults.flatMap((fault) => fault.planted);
    ({ report } = await checkWith([...lost, ...planted], { streamSeconds: 3, token: token() }));
  });

  it.each(faults)('is found: $title', ({ problem, call }) => {
    expect(report.cases).toContainEqual({
      check: expect.any(String),
      call: expect.stringMatching(call),
      problems: expect.arrayContaining([expect.stringMatching(problem)]),
    });
  });

  it('leaves no row of ours behind', async () => {
    expect(report.left).toEqual([]);
    expect(await ownRows()).toEqual(NOTHING_LEFT);
  });

  it('is all that is found', () => {
    const others = report.cases.filter(({ call }) => !faults.some((fault) => fault.call.test(call)));
    const isLoss = (problem: string) => LOST_LINES.some((line) => problem.endsWith(line));

    expect(others.flatMap(({ problems }) => problems).filter((problem) => !isLoss(problem))).toEqual([]);
  });
});

/** A proxy that compresses, writes headers in another case, and sends bodies in pieces. */
async function givenBenignProxy(serviceUrl: string) {
  const agent = new Agent({ keepAlive: true });
  const server = createServer(async (received, response) => {
    const { method, url: path, headers } = received;
    const body = await buffer(received);
    const sent = { ...headers, host: new URL(serviceUrl).host, 'accept-encoding': 'identity' };
    const call = request(serviceUrl + path, { agent, method, headers: sent }, (source) => {
      const { 'content-length': _, 'transfer-encoding': __, connection: ___, ...others } = source.headers;
      const isStream = others['content-type']?.startsWith('text/event-stream');
      const cased = Object.entries(others).map(([name, value]) => [name.toUpperCase(), String(value)]);
      response.writeHead(
        source.statusCode!,
        Object.fromEntries([...cased, ...(isStream ? [] : [['Content-Encoding', 'gzip']])]),
      );
      if (isStream) response.flushHeaders();
      const ended = () => undefined;
      if (isStream) pipeline(source, response, ended);
      else pipeline(source, createGzip(), response, ended);
    });
    call.on('error', () => response.destroy());
    response.once('close', () => call.destroy());
    call.end(body);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const close = () => {
    server.close();
    server.closeAllConnections();
    agent.destroy();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

it('finds nothing behind a proxy that compresses, and sees a success of 170 operations', async () => {
  const proxy = await givenBenignProxy(url);

  const report = await checkContract(
    { url: proxy.url, token: world.asSuperadmin.token! },
    { isWriting: true, announce: () => undefined },
  ).finally(proxy.close);

  const unseen = Object.values(report.unseen).flat();
  expect(problemsOf(report)).toEqual([]);
  expect(report.left).toEqual([]);
  expect(report.denied).toEqual({});
  expect(report.operations.found - unseen.length).toBeGreaterThanOrEqual(170);
});

describe('a proxy that alters names', () => {
  const alter = ({ body }: ProxiedAnswer) => ({ body: body.replaceAll('"name":"Deckhand', '"name":"Dockhand') });
  const countProjects = async () =>
    (await query(await testDb(), sql<{ count: number }>`select count(*)::int as count from projects`))[0]!.count;

  it.each<[string, Fault]>([
    ['in answers', { path: '*', answer: alter }],
    ['in requests', { path: '*', sends: (sent) => sent.replaceAll('"name":"Deckhand', '"name":"Dockhand') }],
  ])('%s is reported, and leaves no further project', async (_, fault) => {
    const known = only('boards.create', 'projects.create', 'projects.list', 'platforms.create');
    await checkWith([], { known });
    const before = await countProjects();

    const runs = [await checkWith([fault], { known }), await checkWith([fault], { known })];

    expect(await countProjects()).toBe(before);
    expect(runs.map(({ report }) => report.left)).toEqual([[], []]);
    expect(await ownRows()).toEqual(NOTHING_LEFT);
  });

  it('in requests has no project at all before there is one', async () => {
    await forgetEarlierRuns();
    const before = await countProjects();
    const fault: Fault = { path: '*', sends: (sent) => sent.replaceAll('"name":"Deckhand', '"name":"Dockhand') };

    const { problems } = await checkWith([fault], { known: only('boards.create', 'projects.create') });

    expect(problems).toContain(
      '"Deckhand contract check" came back as "Dockhand contract check": no rows were written.',
    );
    expect(await countProjects()).toBe(before);
  });
});

/** As if there was no run yet: the next one makes a place of its own. */
async function forgetEarlierRuns(): Promise<void> {
  const db = await testDb();
  for (const table of ['projects', 'platforms'])
    await query(db, sql`update ${sql.table(table)} set name = 'Of earlier runs' where name like 'Deckhand contract%'`);
  await query(db, sql`delete from idempotency_keys`);
}

describe('one fault', () => {
  // Reading the project of an earlier run with a fault would be a second finding.
  beforeEach(forgetEarlierRuns);

  const dateless = (sent: string) => {
    const { data } = JSON.parse(sent).result;
    return { body: JSON.stringify({ result: { data: { json: data.json } } }) };
  };

  it.each<[string, Fault, number]>([
    [
      'that drops the dates of RPC',
      {
        path: '*',
        status: 200,
        answer: ({ body: sent }) => (/^\{"result":\{"data".*"Date"/s.test(sent) ? dateless(sent) : {}),
      },
      1,
    ],
    ['that loses Idempotency-Key', { path: '*', loses: 'idempotency-key' }, 1],
    ['that loses If-Match', { path: '*', loses: 'if-match' }, 1],
    ['that loses ETag', { path: '*', answer: header('etag') }, 1],
    ['that replays every answer', { path: '*', ...REPLAYED }, 1],
    ['that caches', { path: '*', method: 'GET', status: 200, answer: cached() }, 1],
  ])('%s is one finding', async (_, fault, findings) => {
    const { problems } = await checkWith([fault], {
      known: only(...BOARD_STEPS.map(({ call }) => call), 'boards.list', 'tags.list', 'groups.list', 'projects.list'),
    });

    expect(problems.length, problems.join('\n')).toBe(findings);
  });
});

describe('a gateway that loses X-Project-Id', () => {
  it.each([
    ['REST', '*', 1],
    ['RPC', '/trpc/boards.create', 2],
  ])(
    'over %s: after the first row in another project nothing is written, and it is removed',
    async (surface, path, created) => {
      const before = await countRows('boards');

      const { problems } = await checkWith([{ path, loses: 'x-project-id' }], {
        known: only('boards.create', 'tags.create'),
      });

      expect(problems).toContainEqual(
        expect.stringMatching(
          `^${surface}: X-Project-Id does not arrive: the row was created in project \\d+, not in \\d+\\. Nothing more was written\\.$`,
        ),
      );
      expect(await countRows('boards')).toBe(before + created);
      expect(await ownRows()).toEqual(NOTHING_LEFT);
    },
  );

  it.each(['*', `/api${findProcedure('webhooks.create')!.rest!.path}`])(
    'of a call to %s: after a webhook in another project nothing is written, and the webhook is removed',
    async (path) => {
      const service = await givenService({ WEBHOOK_ALLOWED_HOSTS: '127.0.0.1:*' });
      const counts = async () => [await countRows('boards'), await countRows('webhooks')];
      const before = await counts();

      const { report, problems } = await checkWith(
        [{ path, loses: 'x-project-id' }],
        { known: only('boards.create', 'events.list', 'webhooks.create', 'webhooks.delete') },
        service.url,
      );
      await service.app.close();

      expect(problems).toContainEqual(
        expect.stringMatching(
          /^REST: X-Project-Id does not arrive: the row was created in project \d+, not in \d+\. Nothing more was written\.$/,
        ),
      );
      expect(report.left).toEqual([]);
      expect(await counts()).toEqual(before);
    },
  );
});
