import { readFileSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parser } from '@prometheus-io/lezer-promql';
import { sql } from 'kysely';
import { describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import packageJson from '../../package.json' with { type: 'json' };
import { type Procedure, procedures } from '../../server/api/procedures.ts';
import { startBackground } from '../../server/database/background.ts';
import { LATEST_LEVEL, resumeWebhooks } from '../../server/database/level.ts';
import { query, SHORT_TIMEOUT } from '../../server/database/query.ts';
import { removeSome } from '../../server/database/removal.ts';
import type { Replicas } from '../../server/database/replicas.ts';
import { erasuresFileProblem } from '../../server/domain/account/erasureFile.ts';
import { REASONS } from '../../shared/reasons.ts';
import { capture } from '../harness/plans.ts';
import { givenDirectory } from '../harness/process.ts';
import { databaseUrl, givenService, type TestService, testDatabase, withOwnDatabase } from '../harness/service.ts';
import { givenMasterBoard, givenUser, givenWebhook, givenWorld, insert, testDb } from '../harness/world.ts';

withOwnDatabase();

const TOKEN = 'a-token-for-prometheus';

const givenMeasured = (settings = {}, others: Parameters<typeof givenService>[1] = {}) =>
  givenService({ METRICS_TOKEN: TOKEN, ...settings }, others);

async function scrape({ url }: TestService): Promise<string[]> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } });
  return (await response.text()).split('\n');
}

/** The values of a metric by its labels. */
const valuesOf = (lines: string[], metric: string) =>
  Object.fromEntries(
    lines
      .filter((line) => /^[\w:]+/.exec(line)?.[0] === metric)
      .map((line) => [labelsOf(line), Number(line.split(' ').at(-1))]),
  );
/** Counters that have counted. */
const counted = (lines: string[], metric: string) =>
  Object.fromEntries(Object.entries(valuesOf(lines, metric)).filter(([, count]) => count > 0));
const labelsOf = (line: string) => /\{(.*)\}/.exec(line)?.[1] ?? '';

/** A request is counted when its answer was sent, which may be after the caller has read it. */
const untilScraped = (service: TestService, metric: string, values: object) =>
  vi.waitFor(async () => expect(counted(await scrape(service), metric)).toEqual(values));

const REQUESTS = 'deckhand_requests_total';
const STRIPE = { STRIPE_SECRET_KEY: 'sk_test_1', STRIPE_WEBHOOK_SECRET: 'whsec_1' };
const LIST = '/services/operations/v1/operations/boards/list';

describe('metrics', () => {
  it('have the names that dashboards for Node.js expect', async () => {
    const lines = await scrape(await givenMeasured());

    for (const name of [
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'nodejs_eventloop_lag_p99_seconds',
    ])
      expect(Object.keys(valuesOf(lines, name))).toEqual(['']);
    expect(valuesOf(lines, 'deckhand_build_info')).toEqual({
      [`version="${packageJson.version}",database="${databaseUrl ? 'postgresql' : 'embedded'}"`]: 1,
    });
  });

  it('tell the level of the database, and whether webhooks are paused', async () => {
    const service = await givenMeasured();
    const values = async () => {
      const lines = await scrape(service);
      const names = ['deckhand_database_level', 'deckhand_database_level_latest', 'deckhand_webhooks_paused'];
      return names.map((name) => valuesOf(lines, name)['']);
    };
    expect(await values()).toEqual([LATEST_LEVEL, LATEST_LEVEL, 0]);

    await query(await testDb(), sql`update database_state set webhooks_paused_at = now()`);
    const paused = await values();
    await resumeWebhooks(await testDb());

    expect(paused).toEqual([LATEST_LEVEL, LATEST_LEVEL, 1]);
  });

  it('are read in statements with a short timeout: a migration that locks a table holds up no scrape', async () => {
    const service = await givenMeasured();

    const sent = await capture(() => scrape(service));

    expect(sent).not.toEqual([]);
    expect(sent.filter(({ text }) => !text.startsWith(SHORT_TIMEOUT))).toEqual([]);
  });

  it('count requests by surface and status, and measure them by surface and by operation', async () => {
    const service = await givenMeasured();
    const { asViewer } = await givenWorld(service);

    await asViewer.post(LIST, {});
    await asViewer.rpc.boards.list.query();
    await fetch(`${service.url}/docs`);
    await fetch(`${service.url}/health/live`);

    await untilScraped(service, REQUESTS, {
      'surface="rest",http_response_status_code="200"': 1,
      'surface="rpc",http_response_status_code="200"': 1,
      'surface="other",http_response_status_code="200"': 1,
    });
    const lines = await scrape(service);
    expect(valuesOf(lines, 'http_server_request_duration_seconds_count')).toEqual({
      'surface="rest"': 1,
      'surface="rpc"': 1,
      'surface="other"': 1,
    });
    expect(valuesOf(lines, 'deckhand_operation_duration_seconds_count')).toEqual({ 'operation="boards.list"': 2 });
  });

  it('count refused notifications of payments apart from other requests', async () => {
    const service = await givenMeasured({ ...STRIPE, TEST_CHECKOUT: 'off' });

    await fetch(`${service.url}/webhooks/stripe`, { method: 'POST', body: '{}' });

    await untilScraped(service, REQUESTS, { 'surface="payments",http_response_status_code="400"': 1 });
  });

  it('have at most 2,500 series after calls of all operations over all surfaces, and all reasons of errors', async () => {
    const service = await givenMeasured();
    const { asSuperadmin, asNobody } = await givenWorld(service);
    const call = async ({ name, rest }: Procedure, input: string) => {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${asSuperadmin.token}` };
      const tool = { name: 'operations_call', arguments: { name, input: {} } };
      const message = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: tool });
      const accept = 'application/json, text/event-stream';
      if (rest) await fetch(`${service.url}/api${rest.path}`, { method: 'POST', headers, body: input });
      await fetch(`${service.url}/trpc/${name}`, { method: 'POST', headers, body: input });
      await fetch(`${service.url}/mcp`, { method: 'POST', headers: { ...headers, accept }, body: message });
    };

    for (const procedure of procedures) await call(procedure, '{');
    await asNobody.post(LIST, {});
    await asSuperadmin.post(LIST, {});

    const lines = (await scrape(service)).filter((line) => /^\w/.test(line));
    const seen = lines.filter((line) => line.startsWith('deckhand_errors_total')).length;
    const others = Object.keys(REASONS).length * ['rest', 'rpc', 'mcp'].length - seen;
    expect(Object.keys(valuesOf(lines, 'deckhand_operation_duration_seconds_count')).length).toBeGreaterThan(100);
    expect(lines.length + others).toBeLessThan(2500);
  });

  it('have no label with a value that callers make up', async () => {
    const service = await givenMeasured();

    for (const path of ['/made-up', '/api/made-up', '/trpc/made.up', '/trpc/made.up,made.down?batch=1'])
      await fetch(service.url + path, { method: 'PROPFIND' });
    await fetch(`${service.url}/trpc/made.up`);

    const lines = await scrape(service);
    expect(Object.keys(counted(lines, REQUESTS)).length).toBeGreaterThan(0);
    expect(lines.filter((line) => /made|PROPFIND/.test(line))).toEqual([]);
  });

  it('begin at 0 with what alerts look for: the first one counts, too', async () => {
    const service = await givenMeasured();
    const plans = { table: 'projects', step: async () => ({ count: 0 }) } as const;
    await startBackground(await testDatabase(), [plans], service.app.log)();

    const lines = await scrape(service);

    expect(valuesOf(lines, 'deckhand_errors_total')).toMatchObject({
      'surface="rest",reason="disk_full"': 0,
      'surface="rpc",reason="fault"': 0,
      'surface="mcp",reason="service_busy"': 0,
    });
    expect(valuesOf(lines, REQUESTS)).toMatchObject({ 'surface="payments",http_response_status_code="400"': 0 });
    expect(valuesOf(lines, 'deckhand_removal_failures_total')).toMatchObject({ 'table="projects"': 0 });
  });

  it('show whether erasures can be appended to their file, and the log says why not', async () => {
    const directory = await givenDirectory();
    const value = async (ERASURES_FILE: string) =>
      valuesOf(await scrape(await givenMeasured({ ERASURES_FILE })), 'deckhand_erasures_file_writable');
    const present = join(directory, 'erasures.jsonl');
    await writeFile(present, '');

    expect(await value(join(directory, 'new.jsonl'))).toEqual({ '': 1 });
    expect(await value(present)).toEqual({ '': 1 });
    expect(await value(join(directory, 'missing', 'new.jsonl'))).toEqual({ '': 0 });
    expect(await value(directory)).toEqual({ '': 0 });
    expect(await readdir(directory)).toEqual(['erasures.jsonl']);
    expect(await erasuresFileProblem(join(present, 'below'))).toMatch(/ENOTDIR/);
  });

  it('count errors by reason: each call of a batch, and none of what worked', async () => {
    const service = await givenMeasured();
    const { asViewer, asNobody } = await givenWorld(service);
    const { boards, cards } = asViewer.rpc;

    await Promise.allSettled([
      boards.get.query({ id: 1_000_000 }),
      boards.list.query(),
      cards.get.query({ id: 1_000_000 }),
    ]);
    await cards.create.mutate({ title: 'A viewer may not' }).catch(() => undefined);
    await asNobody.post(LIST, {});
    await asNobody.rpc.boards.list.query().catch(() => undefined);
    await asNobody.post('/v1/authenticate', { email: 'nobody@example.test', password: 'wrong' });
    await fetch(`${service.url}/made-up`);

    await untilScraped(service, 'deckhand_errors_total', {
      'surface="rpc",reason="not_found"': 2,
      'surface="rpc",reason="role_missing"': 1,
      'surface="rest",reason="not_signed_in"': 1,
      'surface="rpc",reason="not_signed_in"': 1,
      'surface="rest",reason="wrong_credentials"': 1,
      'surface="other",reason="unknown_path"': 1,
    });
  });

  it('show a template run while it runs', async () => {
    const seen: object[] = [];
    const pause = async () => void seen.push(valuesOf(await scrape(service), 'deckhand_template_runs'));
    const database = await testDatabase();
    const service = await givenMeasured({}, { database: { ...database, bulkPace: { ...database.bulkPace, pause } } });
    const { asSuperadmin } = await givenWorld(service);
    const { board } = await givenMasterBoard();

    await asSuperadmin.rpc.masterBoards.sync.mutate({ board_id: board });

    expect(seen[0]).toEqual({ '': 1 });
    expect(valuesOf(await scrape(service), 'deckhand_template_runs')).toEqual({ '': 0 });
  });

  it('count the rows that were removed, and what failed, by table', async () => {
    const expired = { table: 'sessions', due: () => sql`t.expires_at < '2001-01-01'` } as const;
    const { id: user_id } = await givenUser();
    await insert('sessions', { user_id, expires_at: new Date('2000-01-01') });
    const service = await givenMeasured({});
    const removed = async () => valuesOf(await scrape(service), 'deckhand_rows_removed_total')['table="sessions"'] ?? 0;
    const failures = async () =>
      valuesOf(await scrape(service), 'deckhand_removal_failures_total')['table="plans"'] ?? 0;
    const before = { removed: await removed(), failures: await failures() };
    const failing = { table: 'plans', step: async () => Promise.reject(new Error('no space left')) } as const;

    await removeSome(await testDb(), expired, { rows: 10 });
    await startBackground(await testDatabase(), [failing], service.app.log)();

    expect(await removed()).toBe(before.removed + 1);
    expect(await failures()).toBe(before.failures + 1);
  });

  it('show the queues and the connections to a server', async () => {
    const lines = await scrape(await givenMeasured());

    expect(Object.keys(valuesOf(lines, 'deckhand_queue_calls'))).toEqual(
      ['calls', 'callers', 'passwords'].flatMap((queue) =>
        ['running', 'waiting'].map((state) => `queue="${queue}",state="${state}"`),
      ),
    );
    const labelOf = (name: string) => `db_client_connection_pool_name="${name}"`;
    const pools = databaseUrl ? { [labelOf('deckhand')]: 8, [labelOf('deckhand lane')]: 2 } : {};
    expect(valuesOf(lines, 'db_client_connection_max')).toEqual(pools);
    expect(Object.keys(valuesOf(lines, 'db_client_connection_pending_requests'))).toEqual(Object.keys(pools));
    expect(Object.keys(valuesOf(lines, 'db_client_connection_count'))).toEqual(
      Object.keys(pools).flatMap((pool) =>
        ['used', 'idle'].map((state) => `${pool},db_client_connection_state="${state}"`),
      ),
    );
  });

  it('count webhooks, and the events that wait for them, by state', async () => {
    const service = await givenMeasured();
    const { project } = await givenWorld(service);
    const hour = new Date(Date.now() - 3_600_000);
    for (const [type, created_at] of [
      ['card.moved', hour],
      ['card.created', new Date()],
    ] as const)
      await insert('events', {
        ...{ type, project_id: project.id, surface: 'rest', created_at },
        ...{ subject_id: 1, data: { group_id: null, version: 1 } },
      });
    await givenWebhook(project, { types: ['card.created'] });
    await givenWebhook(project, { failures: 1 });
    await givenWebhook(project, { is_active: false });
    await givenWebhook(project, { is_active: false, disabled_reason: 'gone' });

    const lines = await scrape(service);

    const states = (working: number, failing: number, disabled = 0, off = 0) => ({
      'state="working"': working,
      'state="failing"': failing,
      'state="disabled"': disabled,
      'state="off"': off,
    });
    expect(valuesOf(lines, 'deckhand_webhooks')).toEqual(states(1, 1, 1, 1));
    expect(valuesOf(lines, 'deckhand_webhooks_behind')).toEqual(states(1, 1));
    expect(valuesOf(lines, 'deckhand_webhook_waiting_events')).toEqual(states(1, 2));
    const { 'state="working"': working, 'state="failing"': failing } = valuesOf(
      lines,
      'deckhand_webhook_oldest_event_seconds',
    );
    expect(working).toBeLessThan(3600);
    expect(failing).toBeGreaterThanOrEqual(3600);
  });

  it('that need the database have no value if it does not answer, instead of 0', async () => {
    const database = await testDatabase();
    const db = database.db.withPlugin({
      transformQuery: () => {
        throw new Error('The database does not answer.');
      },
      transformResult: async ({ result }) => result,
    });
    const lines = await scrape(await givenMeasured({}, { database: { ...database, db } }));

    for (const metric of ['deckhand_event_delay_seconds', 'deckhand_webhooks', 'deckhand_webhook_oldest_event_seconds'])
      expect(valuesOf(lines, metric)).toEqual({});
  });

  it('say whether Redis is reachable, if there is one', async () => {
    const without = await scrape(await givenMeasured());
    const unreachable = await scrape(await givenMeasured({ REDIS_URL: 'redis://127.0.0.1:1' }));

    expect(valuesOf(without, 'deckhand_redis_up')).toEqual({});
    expect(valuesOf(unreachable, 'deckhand_redis_up')).toEqual({ '': 0 });
  });
});

const read = (path: string) => readFileSync(join(import.meta.dirname, '../../docs', path), 'utf8');

type Rule = {
  alert: string;
  expr: string;
  for?: string;
  labels: object;
  annotations: { summary: string; action: string };
};
const rules: Rule[] = parse(read('prometheus/alerts.yaml')).groups.flatMap(({ rules }: { rules: Rule[] }) => rules);

type Panel = { title: string; targets: { expr: string }[] };
const dashboard: { panels: Panel[] } = JSON.parse(read('grafana/dashboard.json'));
const expressions = [
  ...rules.map(({ alert, expr }) => ({ of: alert, expr })),
  ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ of: title, expr }))),
].map(({ of, expr }) => ({ of, expr: expr.replaceAll('$__rate_interval', '5m') }));

/** The texts of the nodes of a kind in a PromQL expression. */
function partsOf(expr: string, kind: string): string[] {
  const found: string[] = [];
  parser.parse(expr).iterate({
    enter: ({ name, from, to }) => {
      if (name === kind) found.push(expr.slice(from, to));
    },
  });
  return found;
}

const OF_SERVER = /^db_client_/;
const OF_PROMETHEUS = ['up', 'job', 'instance', 'le'];

/** A real one needs a server of its own; only what it measures counts here. */
const ONE_REPLICA: Replicas = {
  choose: async () => undefined,
  noteWrite: async () => undefined,
  noteRead: async () => undefined,
  noteRetry: () => undefined,
  load: () => ({
    replicas: [{ name: 'one', isLeftOut: false, lagSeconds: 1 }],
    reads: new Map([['primary', 1]]),
    retries: 0,
  }),
};

describe('the dashboard and the alerts', () => {
  it('are valid PromQL', () => {
    expect(expressions.length).toBeGreaterThan(30);
    expect(expressions.filter(({ expr }) => partsOf(expr, '⚠').length > 0)).toEqual([]);
    expect(partsOf('sum(rate(a[5m))', '⚠')).not.toEqual([]);
  });

  it('name only metrics, labels and reasons that the service has', async () => {
    const service = await givenMeasured(
      { REDIS_URL: 'redis://127.0.0.1:1', ERASURES_FILE: 'erasures.jsonl' },
      { replicas: ONE_REPLICA },
    );
    const { asNobody } = await givenWorld(service);
    await asNobody.post(LIST, {});
    const lines = (await scrape(service)).filter((line) => !line.startsWith('#'));
    const metrics = new Set([...OF_PROMETHEUS, ...lines.map((line) => /^[\w:]+/.exec(line)?.[0])]);
    const labels = new Set([
      ...OF_PROMETHEUS,
      ...lines.flatMap((line) => [...labelsOf(line).matchAll(/(\w+)="/g)].map(([, label]) => label)),
    ]);
    // The embedded database has no connections.
    const isOfServer = (name: string) => !databaseUrl && OF_SERVER.test(name);
    const isKnown = (name: string) => metrics.has(name) || isOfServer(name);

    const unknown = expressions.flatMap(({ of, expr }) => [
      ...partsOf(expr, 'Identifier')
        .filter((name) => !isKnown(name))
        .map((name) => `${of}: ${name}`),
      ...partsOf(expr, 'LabelName')
        .filter((label) => !labels.has(label) && !isOfServer(label))
        .map((label) => `${of}: ${label}`),
      ...[...expr.matchAll(/reason=~?"([\w|]+)"/g)]
        .flatMap(([, reasons]) => reasons!.split('|'))
        .filter((reason) => !(reason in REASONS))
        .map((reason) => `${of}: ${reason}`),
    ]);

    expect(unknown).toEqual([]);
  });

  it('say for each alert what to do, in the file and in the guide', () => {
    const guide = read('monitoring.md');

    for (const { alert, labels, annotations } of rules) {
      expect(labels).toEqual({ severity: expect.stringMatching(/^(page|ticket)$/) });
      expect(annotations).toEqual({ summary: expect.stringMatching(/\.$/), action: expect.stringMatching(/\.$/) });
      expect(guide).toContain(`| \`${alert}\``);
    }
    const inGuide = [...guide.matchAll(/^\| `(Deckhand\w+)`/gm)].map(([, alert]) => alert);
    expect(inGuide).toEqual(rules.map(({ alert }) => alert));
  });
});
