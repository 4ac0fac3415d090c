import { connect as connectSocket, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import { connect, type Database } from '../../server/database/connect.ts';
import { query } from '../../server/database/query.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { closeAll, percentiles, sendSteadily } from '../harness/load.ts';
import { type StartedService, startService } from '../harness/process.ts';
import { givenWebhookReceiver, type WebhookReceiver } from '../harness/webhookReceiver.ts';
import { BESIDE_COLUMNS, besideCells, openLists } from './beside.ts';
import { givenUsers, type Settings } from './programs.ts';
import type { Run } from './run.ts';
import { type Table, whole } from './table.ts';
import { residentMegabytes } from './usage.ts';
import { addMembers, type Users } from './users.ts';
import { addWebhooks, change } from './webhooks.ts';

const FOLLOWERS = 1000;
const STREAMS_OF_A_USER = 20;
const RECEIVERS = 100;
/** One of them, which has all the waiting events to get, and never answers. */
const DEAD = 1;
const WAITING_EVENTS = 10_000;
const CHANGES = 20;
const LISTS_PER_SECOND = 100;
const DEMO_PROJECT = 1;
const OTHER_PROJECT = 2;

type Bench = {
  settings: Settings;
  users: Users;
  service: StartedService;
  database: Database;
  receiver: WebhookReceiver;
};

/** What followers and receivers of events cost, on PostgreSQL. */
export async function measureEvents({ seconds = 10, rounds = CHANGES }: Run): Promise<Table[]> {
  const { settings, users } = await givenUsers();
  // One address answers at once, the other never.
  const receiver = await givenWebhookReceiver(({ path }, response) => {
    if (path === '/healthy') response.writeHead(204).end();
  });
  // Behind a proxy, since one address may have at most 1,000 connections.
  const service = await startService({ ...settings, TRUST_PROXY: '1', WEBHOOK_ALLOWED_HOSTS: receiver.host });
  const database = await connect(readSettings(settings));
  const bench = { settings, users, service, database, receiver };
  const tables = [await measureFollowers(bench, rounds), await measureReceivers(bench, seconds)];
  receiver.remove();
  await database.close();
  await service.stop();
  return tables;
}

async function measureFollowers({ service, users, database }: Bench, changes: number): Promise<Table> {
  const followers = await addMembers(database.db, DEMO_PROJECT, FOLLOWERS / STREAMS_OF_A_USER);
  const before = residentMegabytes(service.pid);
  const streams: Stream[] = [];
  for (const { token } of followers)
    streams.push(
      ...(await Promise.all(Array.from({ length: STREAMS_OF_A_USER }, () => openStream(service.url, token)))),
    );
  await pause(2000);
  const after = residentMegabytes(service.pid);

  const times: number[] = [];
  for (let number = 1; number <= changes; number++) {
    const begun = performance.now();
    const arrived = streams.map((stream) => reached(stream, number).then(() => performance.now() - begun));
    await change(service, users.readers[0]!.token);
    times.push(...(await Promise.all(arrived)));
    await pause(200);
  }
  for (const { socket } of streams) socket.destroy();
  const row = ['a change reaches all', ...percentiles(times, 0.5, 0.99, 1).map(whole), whole(after - before)];
  return { title: `${FOLLOWERS} followers`, columns: ['', 'ms p50', 'p99', 'longest', 'MB more'], rows: [row] };
}

type Stream = { socket: Socket; events: number; isReached: () => void };

/** A stream over a plain socket, which only counts events: the load generator must not be slower than the service. */
async function openStream(url: string, token: string): Promise<Stream> {
  const { hostname, port } = new URL(url);
  const socket = connectSocket(Number(port), hostname);
  const stream: Stream = { socket, events: 0, isReached: () => undefined };
  const begun = new Promise<void>((resolve) => {
    socket.setEncoding('latin1').on('data', (text: string) => {
      if (text.includes('retry:')) resolve();
      stream.events += text.split('event: card.created').length - 1;
      stream.isReached();
    });
  });
  const path = '/api/services/platforms/v1/events/stream?types=card.created';
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${token}\r\n\r\n`);
  await begun;
  return stream;
}

function reached(stream: Stream, events: number): Promise<void> {
  return new Promise((resolve) => {
    stream.isReached = () => {
      if (stream.events >= events) resolve();
    };
  });
}

/** Another user's calls, without receivers and with them; one never answers, and has many events to get. */
async function measureReceivers(bench: Bench, seconds: number): Promise<Table> {
  const { service, users, receiver } = bench;
  const lists = await openLists(service.url, users.readers[1]!.token);
  const list = () => sendSteadily(lists, LISTS_PER_SECOND, seconds);
  await list();
  const alone = await list();
  await addReceivers(bench);
  const meanwhile = await list();

  const begun = performance.now();
  const arrived = receiver.count(RECEIVERS - DEAD, '/healthy');
  await change(service, users.readers[0]!.token);
  await arrived;
  const healthy = performance.now() - begun;
  closeAll(lists);
  return {
    title: `${RECEIVERS} receivers, ${WAITING_EVENTS} events wait`,
    columns: ['', ...BESIDE_COLUMNS, 'all healthy ones after ms'],
    rows: [['boards/list', ...besideCells({ alone, meanwhile }), whole(healthy)]],
  };
}

async function addReceivers(bench: Bench): Promise<void> {
  await query(
    bench.database.db,
    sql`
      insert into events (type, project_id, platform_id, surface, subject_id)
      select 'card.created', ${OTHER_PROJECT}::int, 2, 'rest', n from generate_series(1, ${WAITING_EVENTS}::int) as n`,
  );
  const healthy = { project: DEMO_PROJECT, path: '/healthy' };
  const dead = { project: OTHER_PROJECT, path: '/dead', hasAllEvents: true };
  await addWebhooks(bench, [dead, ...Array<typeof healthy>(RECEIVERS - DEAD).fill(healthy)]);
}
