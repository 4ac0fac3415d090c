import { connect as connectSocket, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import { connect } from '../../server/database/connect.ts';
import { type Db, query } from '../../server/database/query.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { makeTokens } from '../../server/security/tokens.ts';
import { startService } from '../harness/process.ts';
import { bytesOf, open, percentile, sendSteadily } from './load.ts';
import { createCard, setWebhooks, startReceivers } from './receiver.ts';
import { givenFilledDatabase } from './stage.ts';
import { precise, toText } from './table.ts';
import { addUsers } from './tenants.ts';
import { residentMegabytes } from './usage.ts';
import { listBoards } from './workloads.ts';

/** What followers and receivers of events cost, on PostgreSQL: `npm run bench:events`. */

const FOLLOWERS = 1000;
const STREAMS_OF_A_USER = 20;
const RECEIVERS = 100;
/** Of them; it has all the waiting events to get, and never answers. */
const DEAD = 1;
const WAITING_EVENTS = 10_000;
const CHANGES = 20;
const SECONDS = 10;
const DEMO_PROJECT = 1;
const OTHER_PROJECT = 2;

const { settings, tenants, remove } = await givenFilledDatabase({ isEmbedded: false });
const receivers = await startCounting();
// Behind a proxy, since one address may have at most 1,000 connections.
const service = await startService({
  ...settings,
  TRUST_PROXY: '1',
  WEBHOOK_ALLOWED_HOSTS: receivers.host,
});
const database = await connect(readSettings(settings));
try {
  await measureFollowers(database.db);
  await measureReceivers(database.db);
} finally {
  receivers.close();
  await database.close();
  await service.stop();
  await remove();
}

async function measureFollowers(db: Db): Promise<void> {
  const users = await addUsers(
    db,
    makeTokens([settings.JWT_SECRET], 3600),
    DEMO_PROJECT,
    FOLLOWERS / STREAMS_OF_A_USER,
  );
  const before = residentMegabytes(service.pid);
  const streams: Stream[] = [];
  for (const { token } of users)
    streams.push(...(await Promise.all(Array.from({ length: STREAMS_OF_A_USER }, () => openStream(token)))));
  await pause(2000);
  const after = residentMegabytes(service.pid);

  const times: number[] = [];
  for (let change = 1; change <= CHANGES; change++) {
    const begun = performance.now();
    const arrived = streams.map((stream) => reached(stream, change).then(() => performance.now() - begun));
    await createCard(service.url, tenants.readers[0]!.token);
    times.push(...(await Promise.all(arrived)));
    await pause(200);
  }
  for (const { socket } of streams) socket.destroy();
  const sorted = Float64Array.from(times).sort();
  const shares = [0.5, 0.99, 1].map((share) => precise(percentile(sorted, share), 0));
  const columns = ['', 'ms p50', 'p99', 'longest', 'MB more'];
  const row = ['a change reaches all', ...shares, precise(after - before, 0)];
  console.log(toText({ title: `${FOLLOWERS} followers`, columns, rows: [row] }));
}

type Stream = { socket: Socket; events: number; isReached: () => void };

/** A stream over a plain socket, which only counts events: the load generator must not be slower than the service. */
async function openStream(token: string): Promise<Stream> {
  const { hostname, port } = new URL(service.url);
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
async function measureReceivers(db: Db): Promise<void> {
  const { token } = tenants.readers[1]!;
  const bytes = bytesOf(service.url, { ...listBoards('REST'), token });
  const steady = await Promise.all(Array.from({ length: 50 }, () => open(service.url, bytes, 200)));
  const p99 = async () => percentile(Float64Array.from(await sendSteadily(steady, 100, SECONDS)).sort(), 0.99);
  await p99();
  const alone = await p99();
  await addWebhooks(db);
  const meanwhile = await p99();

  const begun = performance.now();
  const arrived = receivers.next(RECEIVERS - DEAD);
  await createCard(service.url, tenants.readers[0]!.token);
  await arrived;
  const healthy = performance.now() - begun;
  for (const { close } of steady) close();
  const columns = ['', 'p99 alone', 'meanwhile', 'times', 'all healthy ones after ms'];
  const row = [
    'boards/list',
    precise(alone, 1),
    precise(meanwhile, 1),
    precise(meanwhile / alone, 1),
    precise(healthy, 0),
  ];
  console.log(toText({ title: `${RECEIVERS} receivers, ${WAITING_EVENTS} events wait`, columns, rows: [row] }));
}

async function addWebhooks(db: Db): Promise<void> {
  await query(
    db,
    sql`
      insert into events (type, project_id, platform_id, surface, subject_id)
      select 'card.created', ${OTHER_PROJECT}::int, 2, 'rest', n from generate_series(1, ${WAITING_EVENTS}::int) as n`,
  );
  const healthy = { project: DEMO_PROJECT, url: `http://${receivers.host}/healthy` };
  const dead = { project: OTHER_PROJECT, url: `http://${receivers.host}/dead`, hasAllEvents: true };
  await setWebhooks(db, settings.JWT_SECRET, [dead, ...Array<typeof healthy>(RECEIVERS - DEAD).fill(healthy)]);
}

/** One address answers at once, the other never. */
async function startCounting() {
  let awaited = 0;
  let arrive = () => {};
  const started = await startReceivers((path, response) => {
    if (path !== '/healthy') return;
    response.writeHead(204).end();
    if (--awaited === 0) arrive();
  });
  return {
    ...started,
    next: (count: number) =>
      new Promise<void>((resolve) => {
        awaited = count;
        arrive = resolve;
      }),
  };
}
