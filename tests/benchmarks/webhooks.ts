import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import { connect, type Database } from '../../server/database/connect.ts';
import { oneRow, query } from '../../server/database/query.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { makeSecretBox } from '../../server/security/secretBox.ts';
import { open, percentiles } from '../harness/load.ts';
import { type StartedService, startService } from '../harness/process.ts';
import { givenWebhookReceiver, type WebhookReceiver } from '../harness/webhookReceiver.ts';
import { givenUsers, type Settings } from './programs.ts';
import type { Run } from './run.ts';
import { precise, type Table, whole } from './table.ts';
import { watchDatabase } from './usage.ts';
import { createCard } from './workloads.ts';

const CHANGES = 200;
const SLOW_RECEIVERS = 20;
const SLOW_MILLISECONDS = 14_000;
const IDLE_WEBHOOKS = 20;
const IDLE_SECONDS = 30;
const DEMO_PROJECT = 1;

type Bench = {
  settings: Settings;
  database: Database;
  receiver: WebhookReceiver;
  /** Their changes are sent to webhooks of the demo project, and of another one. */
  owner: string;
  neighbour: string;
  otherProject: number;
};

/** How soon webhooks get events, beside slow receivers and after a kill, and what they cost while there are none. */
export async function measureWebhooks({ events, seconds = IDLE_SECONDS, rounds = CHANGES }: Run): Promise<Table[]> {
  const { settings, users } = await givenUsers();
  // Answers at once, after a while, or never.
  const receiver = await givenWebhookReceiver(({ path }, response) => {
    const answer = () => response.writeHead(204).end();
    if (path === '/now') answer();
    if (path === '/slow') setTimeout(answer, SLOW_MILLISECONDS);
  });
  const database = await connect(readSettings(settings));
  const { token: neighbour, group_id } = users.writers[0]!;
  const project = sql<{ id: number }>`select project_id as id from groups where id = ${group_id}`;
  const { id: otherProject } = oneRow(await query(database.db, project));
  const all = { ...settings, WEBHOOK_ALLOWED_HOSTS: receiver.host };
  const bench = { settings: all, database, receiver, owner: users.readers[0]!.token, neighbour, otherProject };
  const idle = await idleUsage(bench, events, seconds);
  const node = await startService(all);
  const rows = [
    ['idle, % of a core of PostgreSQL', idle, ''],
    ['after a card is created, ms p50 and p99', ...(await latency(bench, node, rounds))],
    [`beside ${SLOW_RECEIVERS} receivers of 14 s, ms and longest of ten`, ...(await besideSlowOnes(bench, node))],
  ];
  await node.stop();
  rows.push(['after kill -9 of the delivering node, seconds', await afterKill(bench), '']);
  receiver.remove();
  await database.close();
  return [{ title: `Webhooks, ${whole(events)} events`, columns: ['', '', ''], rows }];
}

/** Many events and some webhooks that have got all of theirs, and two workers. */
async function idleUsage(bench: Bench, events: number, seconds: number): Promise<string> {
  await bench.database.withoutTimeouts(async ({ db }) => {
    await query(
      db,
      sql`
        insert into events (type, project_id, platform_id, surface, subject_id)
        select 'card.created', 1 + n % 200, 2, 'rest', n from generate_series(1, ${events}::int) as n`,
    );
    await query(db, sql`vacuum analyze`);
  });
  await addWebhooks(
    bench,
    Array.from({ length: IDLE_WEBHOOKS }, (_, at) => ({ project: at + 1, path: '/now' })),
  );
  const usage = await watchDatabase(bench.settings.DATABASE_URL!);
  const node = await startService({ ...bench.settings, WORKERS: '2' });
  await pause(5000);
  const before = await usage.cpuMilliseconds();
  await pause(seconds * 1000);
  const after = await usage.cpuMilliseconds();
  await Promise.all([usage.stop(), node.stop()]);
  return precise((after - before) / seconds / 10, 2);
}

async function latency(bench: Bench, node: StartedService, changes: number): Promise<string[]> {
  await addWebhooks(bench, [{ project: DEMO_PROJECT, path: '/now' }]);
  const times: number[] = [];
  for (let change = 0; change < changes; change++) {
    times.push(await timeOfChange(bench, node, bench.owner));
    await pause(50);
  }
  return percentiles(times, 0.5, 0.99).map(whole);
}

async function besideSlowOnes(bench: Bench, node: StartedService): Promise<string[]> {
  const slow = Array<{ project: number; path: string }>(SLOW_RECEIVERS).fill({ project: DEMO_PROJECT, path: '/slow' });
  await addWebhooks(bench, [...slow, { project: bench.otherProject, path: '/now' }]);
  for (let card = 0; card < 50; card++) await change(node, bench.owner);
  const times: number[] = [];
  for (let change = 0; change < 10; change++) {
    times.push(await timeOfChange(bench, node, bench.neighbour));
    await pause(3000);
  }
  return percentiles(times, 0.5, 1).map(whole);
}

/** The receiver does not answer the node that is killed. The other node sends the same message. */
async function afterKill(bench: Bench): Promise<string> {
  const { receiver, settings, owner } = bench;
  await addWebhooks(bench, [{ project: DEMO_PROJECT, path: '/hang' }]);
  const killed = await startService(settings);
  const first = receiver.next('/hang');
  await change(killed, owner);
  await first;
  const other = await startService(settings);
  const again = receiver.next('/hang');
  await killed.stop('SIGKILL');
  const begun = performance.now();
  await again;
  const seconds = (performance.now() - begun) / 1000;
  await other.stop('SIGKILL');
  return precise(seconds, 1);
}

async function timeOfChange({ receiver }: Bench, node: StartedService, token: string): Promise<number> {
  const arrived = receiver.next('/now');
  await change(node, token);
  const begun = performance.now();
  await arrived;
  return performance.now() - begun;
}

/** Creates a card. */
export async function change({ url }: Pick<StartedService, 'url'>, token: string): Promise<void> {
  const { send, close } = await open(url, { ...createCard('REST', { title: 'A change' }), token }, 201);
  await send().finally(close);
}

const SECRET = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;

type Wanted = { project: number; path: string; hasAllEvents?: boolean };

/** Webhooks that get the events from now on, or all events of before. Replaces earlier ones. */
export async function addWebhooks(
  { database: { db }, settings, receiver }: Pick<Bench, 'database' | 'settings' | 'receiver'>,
  wanted: Wanted[],
): Promise<void> {
  const secretBox = makeSecretBox([settings.JWT_SECRET!]);
  await query(db, sql`delete from webhooks`);
  for (const [at, { project, path, hasAllEvents = false }] of wanted.entries()) {
    const after = hasAllEvents ? sql`'0'::xid8` : sql`pg_snapshot_xmax(pg_current_snapshot())::text::xid8`;
    await query(
      db,
      sql`
        insert into webhooks (id, project_id, url, secret, after_transaction, after_event)
        values (${at + 1}, ${project}, ${receiver.url + path}, ${secretBox.seal(SECRET, at + 1, 'webhook')}, ${after}, 0)`,
    );
  }
}
