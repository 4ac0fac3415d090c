import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parser } from '@prometheus-io/lezer-promql';
import { sql } from 'kysely';
import { describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import packageJson from '../package.json' with { type: 'json' };
import { startBackground } from '../server/database/background.ts';
import { removeSome } from '../server/database/removal.ts';
import { REASONS } from '../shared/reasons.ts';
import { databaseUrl, givenService, type TestService, testDatabase } from './harness/service.ts';
import { givenMasterBoard, givenUser, givenWorld, insert, testDb } from './harness/world.ts';

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
const labelsOf = (line: string) => /\{(.*)\}/.exec(line)?.[1] ?? '';

/** A request is counted when its answer was sent, which may be after the caller has read it. */
const untilScraped = (service: TestService, metric: string, values: object) =>
  vi.waitFor(async () => expect(valuesOf(await scrape(service), metric)).toEqual(values), { timeout: 5000 });

const REQUESTS = 'http_server_request_duration_seconds_count';
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

  it('count requests by method, route, status, surface and operation', async () => {
    const service = await givenMeasured();
    const { asViewer } = await givenWorld(service);

    await asViewer.post(LIST, {});
    await asViewer.rpc.boards.list.query();
    await fetch(`${service.url}/docs`);
    await fetch(`${service.url}/health/live`);

    const labels = (method: string, route: string, surface: string, operation: string) =>
      `http_request_method="${method}",http_route="${route}",http_response_status_code="200",surface="${surface}",operation="${operation}"`;
    await untilScraped(service, REQUESTS, {
      [labels('POST', `/api${LIST}`, 'rest', 'boards.list')]: 1,
      [labels('POST', '/trpc/*', 'rpc', 'boards.list')]: 1,
      [labels('GET', '/docs', 'other', 'other')]: 1,
    });
  });

  it('have no label with a value that callers make up', async () => {
    const service = await givenMeasured();

    for (const path of ['/made-up', '/api/made-up', '/trpc/made.up', '/trpc/made.up,made.down?batch=1'])
      await fetch(service.url + path, { method: 'PROPFIND' });
    await fetch(`${service.url}/trpc/made.up`);

    const lines = await scrape(service);
    expect(Object.keys(valuesOf(lines, REQUESTS)).length).toBeGreaterThan(0);
    expect(lines.filter((line) => /made|PROPFIND/.test(line))).toEqual([]);
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
    const before = await removed();
    const failing = { table: 'plans', step: async () => Promise.reject(new Error('no space left')) } as const;

    await removeSome(await testDb(), expired, { rows: 10 });
    await startBackground(await testDatabase(), [failing], service.app.log)();

    expect(await removed()).toBe(before + 1);
    expect(valuesOf(await scrape(service), 'deckhand_removal_failures_total')).toEqual({ 'table="plans"': 1 });
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

  it('say whether Redis is reachable, if there is one', async () => {
    const without = await scrape(await givenMeasured());
    const unreachable = await scrape(await givenMeasured({ REDIS_URL: 'redis://127.0.0.1:1' }));

    expect(valuesOf(without, 'deckhand_redis_up')).toEqual({});
    expect(valuesOf(unreachable, 'deckhand_redis_up')).toEqual({ '': 0 });
  });
});

const read = (path: string) => readFileSync(join(import.meta.dirname, '../docs', path), 'utf8');

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

const OF_SERVER = /^db_client_|^deckhand_re(plica|ads)_|^(replica|server)$/;
const OF_PROMETHEUS = ['up', 'job', 'instance', 'le'];

describe('the dashboard and the alerts', () => {
  it('are valid PromQL', () => {
    expect(expressions.length).toBeGreaterThan(30);
    expect(expressions.filter(({ expr }) => partsOf(expr, '⚠').length > 0)).toEqual([]);
    expect(partsOf('sum(rate(a[5m))', '⚠')).not.toEqual([]);
  });

  it('name only metrics, labels and reasons that the service has', async () => {
    const service = await givenMeasured({ REDIS_URL: 'redis://127.0.0.1:1' });
    const { asNobody } = await givenWorld(service);
    await asNobody.post(LIST, {});
    const lines = (await scrape(service)).filter((line) => !line.startsWith('#'));
    const metrics = new Set([...OF_PROMETHEUS, ...lines.map((line) => /^[\w:]+/.exec(line)?.[0])]);
    const labels = new Set([
      ...OF_PROMETHEUS,
      ...lines.flatMap((line) => [...labelsOf(line).matchAll(/(\w+)="/g)].map(([, label]) => label)),
    ]);
    // The embedded database has neither connections nor replicas.
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
