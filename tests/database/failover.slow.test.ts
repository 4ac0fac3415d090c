import { sql } from 'kysely';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { connect, type Database } from '../../server/database/connect.ts';
import { makeHosts } from '../../server/database/hosts.ts';
import { migrate } from '../../server/database/migrate.ts';
import { query, transact } from '../../server/database/query.ts';
import { makeReadiness } from '../../server/database/readiness.ts';
import { readSettings } from '../../server/runtime/env.ts';
import type { Log } from '../../server/runtime/log.ts';
import { failOver } from '../faults/failover.ts';
import { givenCluster, givenReplica, hasServerPrograms, type PrivateServer } from '../faults/privateServer.ts';
import { removeProcesses } from '../harness/process.ts';
import { givenProxyTo } from '../harness/proxy.ts';
import { isNight } from '../harness/sample.ts';
import { onServer } from '../harness/server.ts';

/** One fail-over is always tried; how a node chooses among hosts, at night. */
const hasServer = hasServerPrograms();
if (!hasServer) console.log('SKIPPED: fail-over of PostgreSQL. No PostgreSQL server is installed.');
const primary = isNight ? await givenCluster() : undefined;
const replica = primary && (await givenReplica(primary));

const opened: { close: () => unknown }[] = [];
afterAll(async () => {
  await removeProcesses();
  await Promise.all([...opened.map(({ close }) => close()), primary?.remove(), replica?.remove()]);
});

const hostOf = ({ url }: { url: string }) => new URL(url).host;
const portOf = ({ url }: { url: string }) => Number(new URL(url).port);
const NOWHERE = { url: 'postgresql://127.0.0.1:1/postgres' };

async function givenDatabaseOn(
  servers: { url: string }[],
  parameters = '',
  role = 'postgres',
  log?: Log,
): Promise<Database> {
  const DATABASE_URL = `postgresql://${role}:hunter2@${servers.map(hostOf)}/postgres${parameters}`;
  const JWT_SECRET = 'a secret for tests that nobody else uses';
  const database = await connect(readSettings({ DATABASE_URL, JWT_SECRET, DATABASE_POOL_SIZE: '4' }), log);
  opened.push(database);
  return database;
}

const PORT = sql<{ port: number }>`select inet_server_port() as port`;
const TABLE = 'create table written (port int)';
const WRITE = sql<{ port: number }>`insert into written select inet_server_port() returning port`;

/** The port of the server that reads, or writes. */
const portOfRead = async ({ db }: Pick<Database, 'db'>) => (await query(db, PORT))[0]?.port;
const portOfWrite = async ({ db }: Pick<Database, 'db'>) => (await query(db, WRITE))[0]?.port;
const portOfTransaction = ({ db }: Database) => transact(db, (transaction) => portOfWrite({ db: transaction }));

/** Opens all connections of the pool. */
const useAllConnections = ({ db }: Database) =>
  Promise.all(Array.from({ length: 4 }, () => query(db, sql`select pg_sleep(0.1)`)));

/** Changes a setting of a server, and waits until it has taken effect. */
async function changeSetting({ url }: PrivateServer, change: string): Promise<void> {
  const loaded = 'select pg_conf_load_time()::text as at';
  const before = await onServer(url, loaded);
  await onServer(url, `alter system ${change}`);
  await onServer(url, 'select pg_reload_conf()');
  await vi.waitFor(async () => expect(await onServer(url, loaded)).not.toEqual(before));
}

describe.skipIf(!primary)('several hosts', () => {
  const main = primary!;
  const standby = replica!;

  beforeAll(() => onServer(main.url, TABLE));

  it('are tried in order until one accepts writes', async () => {
    expect(await portOfWrite(await givenDatabaseOn([NOWHERE, standby, main]))).toBe(portOf(main));
    const any = await givenDatabaseOn([NOWHERE, standby, main], '?target_session_attrs=any');
    expect(await portOfRead(any)).toBe(portOf(standby));
  });

  it('are named when none accepts writes, without the password', async () => {
    const { message } = await givenDatabaseOn([NOWHERE, standby]).catch((error) => error);

    expect(message).toBe(
      `DATABASE_URL: can't use the database postgres on 127.0.0.1:1,${hostOf(standby)}: no host can be used (127.0.0.1:1: ` +
        `connect ECONNREFUSED 127.0.0.1:1; ${hostOf(standby)}: read-only).`,
    );
  });

  it('a node is read-only, not unavailable, while the primary is gone and no standby was promoted', async () => {
    const proxy = await givenProxyTo(main.url);
    opened.push(proxy);
    const database = await givenDatabaseOn([proxy, standby]);
    const readiness = makeReadiness(database);

    proxy.refuse();
    proxy.close();

    const state = await vi.waitFor(async () => {
      const found = await readiness();
      expect(found).toMatchObject({ reason: 'read_only' });
      return found!;
    });
    const { err } = pino.stdSerializers;
    expect(err(state.cause as Error).message).toBe(
      `no host can be used (${hostOf(proxy)}: connect ECONNREFUSED ${hostOf(proxy)}; ${hostOf(standby)}: read-only)`,
    );
  });

  it('a node starts on a standby, and writes nothing there', async () => {
    await migrate(await givenDatabaseOn([main]));
    await vi.waitFor(() => onServer(standby.url, 'select number from incarnations'));

    expect(await migrate(await givenDatabaseOn([standby], '?target_session_attrs=any'))).toEqual([]);
  });

  it('a standby is refused if it must be writable, and not ready otherwise', async () => {
    await expect(givenDatabaseOn([standby], '?target_session_attrs=read-write')).rejects.toThrow(/read-only/);
    expect(await makeReadiness(await givenDatabaseOn([standby]))()).toEqual({ reason: 'read_only' });
  });

  it('one that does not answer is tried once, not for each connection', async () => {
    const silent = await givenProxyTo(main.url);
    opened.push(silent);
    silent.silence();

    const database = await givenDatabaseOn([silent, main]);
    await useAllConnections(database);

    expect(database.connections()).toMatchObject({ idle: 4 });
    expect(silent.opened()).toBe(1);
  });

  it('a late failure of one that is not used any more changes nothing', async () => {
    const lines: string[] = [];
    const keep = (line: string) => lines.push(line);
    const log = { debug: keep, info: keep, warn: keep, error: keep } as unknown as Log;
    const hosts = makeHosts({ urls: [main.url, NOWHERE.url], mustBeWritable: true }, log);
    const chosen = await hosts.choose();

    hosts.doubt({ host: '127.0.0.1', port: 1 }, 'the connection was lost');

    expect(await hosts.choose()).toBe(chosen);
    expect(lines).toEqual([`Uses the database on ${hostOf(main)}.`]);
  });

  it.each<[string, (proxy: Awaited<ReturnType<typeof givenProxyTo>>) => void, RegExp]>([
    ['refuses connections', ({ refuse }) => refuse(), /^connect ECONNREFUSED 127\.0\.0\.1:\d+$/],
    ['is a standby', ({ leadTo }) => leadTo(standby.url), /^the database is read-only$/],
  ])('a write succeeds although the host that was used last %s now, and the log says so', async (_, change, why) => {
    const proxy = await givenProxyTo(main.url);
    opened.push(proxy);
    const lines: string[] = [];
    const keep = (line: string) => lines.push(line);
    const log = { debug: keep, info: keep, warn: keep, error: keep } as unknown as Log;
    const database = await givenDatabaseOn([proxy, main], '', 'postgres', log);

    const written = await database.db.transaction().execute(async (transaction) => {
      expect(await portOfRead({ db: transaction })).toBe(portOf(main));
      change(proxy);
      return portOfWrite(database);
    });

    expect(written).toBe(portOf(main));
    const [first, second, ...others] = lines;
    expect(first).toBe(`Uses the database on ${hostOf(proxy)}.`);
    const moved = `Uses the database on ${hostOf(main)}, no longer on ${hostOf(proxy)}: `;
    expect(second?.slice(0, moved.length)).toBe(moved);
    expect(second?.slice(moved.length, -1)).toMatch(why);
    expect(others).toEqual([]);
  });
});

/** A server of its own, for a test that changes it. */
const givenServer = async (make: Promise<PrivateServer | undefined>) => {
  const server = (await make)!;
  opened.push({ close: server.remove });
  return server;
};

describe('a server that stops accepting writes', { timeout: 180_000 }, () => {
  it.skipIf(!primary)('is left although its connections stay open, and may come back as a standby', async () => {
    const main = (await givenCluster())!;
    const standby = await givenReplica(main);
    opened.push({ close: standby.remove });
    await onServer(main.url, TABLE);
    const databases = await Promise.all([1, 2, 3].map(() => givenDatabaseOn([main, standby])));
    const [writing, reading, unprotected] = databases as [Database, Database, Database];
    await Promise.all(databases.map(useAllConnections));

    await standby.promote();
    await changeSetting(main, 'set default_transaction_read_only = on');
    const refused = await portOfWrite(unprotected).catch(({ code }) => code);
    await portOfRead(reading);

    expect(refused).toBe('25006');
    expect(await portOfTransaction(writing)).toBe(portOf(standby));
    expect(await portOfWrite(reading)).toBe(portOf(standby));
    expect(await portOfWrite(unprotected)).toBe(portOf(standby));

    await main.remove();
    const returned = await givenServer(givenReplica(standby, { port: portOf(main) }));
    await useAllConnections(writing);

    expect(await portOfWrite(writing)).toBe(portOf(standby));
    expect(await portOfWrite(await givenDatabaseOn([returned, standby]))).toBe(portOf(standby));
  });

  // Concurrent, since they mostly wait.
  it.skipIf(!primary)(
    'is not ready while commits wait for a lost standby, and at most one check waits with them',
    { concurrent: true },
    async () => {
      const server = await givenServer(givenCluster());
      await onServer(server.url, 'create role plain login');
      await onServer(server.url, 'grant create on schema public to plain');
      const database = await givenDatabaseOn([server], '', 'plain');
      await migrate(database);
      const readiness = makeReadiness(database);
      expect(await readiness()).toBeUndefined();

      await changeSetting(server, "set synchronous_standby_names = 'gone'");
      const isWaiting = async () => expect(await readiness()).toEqual({ reason: 'commits_waiting' });
      await vi.waitFor(isWaiting);
      const checks = await Promise.all([makeReadiness(database)(), readiness(), readiness()]);

      expect(checks).toEqual(Array(3).fill({ reason: 'commits_waiting' }));
      const waiting = "select 1 from pg_stat_activity where wait_event = 'SyncRep'";
      expect(await onServer(server.url, waiting)).toHaveLength(1);
      await changeSetting(server, 'reset synchronous_standby_names');
      await vi.waitFor(async () => expect(await readiness()).toBeUndefined());
    },
  );

  it.skipIf(!hasServer)(
    'and is replaced by its synchronous standby loses no acknowledged write and stores each once',
    { concurrent: true },
    async () => {
      expect((await failOver(1, 200)).violations).toEqual([]);
    },
  );
});
