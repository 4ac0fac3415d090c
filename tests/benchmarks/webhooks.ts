import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import { connect } from '../../server/database/connect.ts';
import { query } from '../../server/database/query.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { type StartedService, startService } from '../harness/process.ts';
import { programOptions } from '../harness/programOptions.ts';
import { percentile } from './load.ts';
import { createCard, setWebhooks, startReceivers } from './receiver.ts';
import { givenFilledDatabase } from './stage.ts';
import { precise, toText } from './table.ts';
import { watchDatabase } from './usage.ts';

/** How soon webhooks get events, and what they cost while there are none: `npm run bench:webhooks -- --events 3000000`. */

const EVENTS = Number(programOptions('npm run bench:webhooks --', { events: '300000' }).events);
const CHANGES = 200;
const SLOW_RECEIVERS = 20;
const SLOW_MILLISECONDS = 14_000;
const IDLE_WEBHOOKS = 20;
const IDLE_SECONDS = 30;
const DEMO_PROJECT = 1;

const { settings, tenants, remove } = await givenFilledDatabase({ isEmbedded: false });
const receiver = await startReceiver();
const nodes: StartedService[] = [];
const database = await connect(readSettings(settings));
const { db } = database;
const owner = tenants.readers[0]!.token;
const neighbour = tenants.writers[0]!.token;
const [{ id: otherProject } = { id: 0 }] = await query(
  db,
  sql<{ id: number }>`select project_id as id from groups where id = ${tenants.writers[0]!.group_id}`,
);
try {
  const rows = [
    ['idle, % of a core of PostgreSQL', ...(await idleUsage())],
    ['after a card is created, ms p50 and p99', ...(await latency())],
    [`beside ${SLOW_RECEIVERS} receivers of 14 s, ms and longest of ten`, ...(await besideSlowOnes())],
    ['after kill -9 of the delivering node, seconds', ...(await afterKill()), ''],
  ];
  console.log(toText({ title: `Webhooks, ${EVENTS} events`, columns: ['', '', ''], rows }));
} finally {
  receiver.close();
  await database.close();
  await Promise.all(nodes.map(({ stop }) => stop()));
  await remove();
}

async function startNode(more: Record<string, string> = {}): Promise<StartedService> {
  const node = await startService({ ...settings, WEBHOOK_ALLOWED_HOSTS: receiver.host, ...more });
  nodes.push(node);
  return node;
}

async function stopNodes(): Promise<void> {
  await Promise.all(nodes.splice(0).map(({ stop }) => stop()));
}

/** Many events and some webhooks that have got all of theirs, and two workers. */
async function idleUsage(): Promise<string[]> {
  await database.withoutTimeouts(async ({ db }) => {
    await query(
      db,
      sql`
        insert into events (type, project_id, platform_id, surface, subject_id)
        select 'card.created', 1 + n % 200, 2, 'rest', n from generate_series(1, ${EVENTS}::int) as n`,
    );
    await query(db, sql`vacuum analyze`);
  });
  await addWebhooks(Array.from({ length: IDLE_WEBHOOKS }, (_, at) => [at + 1, '/now']));
  const usage = await watchDatabase(settings.DATABASE_URL!);
  await startNode({ WORKERS: '2' });
  await pause(5000);
  const before = await usage.cpuMilliseconds();
  await pause(IDLE_SECONDS * 1000);
  const after = await usage.cpuMilliseconds();
  await usage.stop();
  await stopNodes();
  return [precise((after - before) / IDLE_SECONDS / 10, 2), ''];
}

async function latency(): Promise<string[]> {
  await addWebhooks([[DEMO_PROJECT, '/now']]);
  const node = await startNode();
  const times: number[] = [];
  for (let change = 0; change < CHANGES; change++) {
    times.push(await timeOfChange(node, owner, '/now'));
    await pause(50);
  }
  return shares(times, 0.5, 0.99);
}

async function besideSlowOnes(): Promise<string[]> {
  const [node] = nodes as [StartedService];
  await addWebhooks([
    ...Array.from({ length: SLOW_RECEIVERS }, (): [number, string] => [DEMO_PROJECT, '/slow']),
    [otherProject, '/now'],
  ]);
  for (let card = 0; card < 50; card++) await createCard(node.url, owner);
  const times: number[] = [];
  for (let change = 0; change < 10; change++) {
    times.push(await timeOfChange(node, neighbour, '/now'));
    await pause(3000);
  }
  return shares(times, 0.5, 1);
}

/** The receiver does not answer the node that is killed. The other node sends the same message. */
async function afterKill(): Promise<string[]> {
  await stopNodes();
  await addWebhooks([[DEMO_PROJECT, '/hang']]);
  const killed = await startNode();
  const first = receiver.next('/hang');
  await createCard(killed.url, owner);
  await first;
  await startNode();
  const again = receiver.next('/hang');
  await killed.stop('SIGKILL');
  nodes.splice(nodes.indexOf(killed), 1);
  const begun = performance.now();
  await again;
  return [precise((performance.now() - begun) / 1000, 1)];
}

async function timeOfChange(node: StartedService, token: string, path: string): Promise<number> {
  const arrived = receiver.next(path);
  await createCard(node.url, token);
  const begun = performance.now();
  await arrived;
  return performance.now() - begun;
}

function shares(times: number[], ...wanted: number[]): string[] {
  const sorted = Float64Array.from(times).sort();
  return wanted.map((share) => precise(percentile(sorted, share), 0));
}

/** Instead of those before: webhooks that get the events from now on. */
const addWebhooks = (wanted: [project: number, path: string][]) =>
  setWebhooks(
    db,
    settings.JWT_SECRET,
    wanted.map(([project, path]) => ({ project, url: `http://${receiver.host}${path}` })),
  );

/** Answers at once, after a while, or never, by the path. */
async function startReceiver() {
  const awaited = new Map<string, () => void>();
  const receivers = await startReceivers((path, response) => {
    awaited.get(path)?.();
    if (path === '/now') response.writeHead(204).end();
    if (path === '/slow') setTimeout(() => response.writeHead(204).end(), SLOW_MILLISECONDS);
  });
  return { ...receivers, next: (path: string) => new Promise<void>((resolve) => awaited.set(path, resolve)) };
}
