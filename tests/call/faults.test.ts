import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Database } from '../../server/database/connect.ts';
import { query } from '../../server/database/query.ts';
import { makeReadiness } from '../../server/database/readiness.ts';
import { makeCaller, refusalOf } from '../harness/caller.ts';
import { givenProxyTo } from '../harness/proxy.ts';
import { onServer } from '../harness/server.ts';
import { countStatements, databaseUrl, givenDatabase, givenService, testDatabase } from '../harness/service.ts';
import { givenCard, givenProject, givenToken, givenUser, testDb } from '../harness/world.ts';

const CREATE = '/services/operations/v1/operations/cards/create';
const LIST = '/services/operations/v1/operations/boards/list';
const FAULT = 'Something went wrong on our side. Try again later.';

const givenCallerOn = async (database: Database) => {
  const service = await givenService({}, { database });
  return {
    ...service,
    caller: makeCaller(service.url, await givenToken(await givenUser({ project: await givenProject() }))),
  };
};

describe.skipIf(!databaseUrl)('on a PostgreSQL server', () => {
  beforeAll(() => testDatabase());

  // They spend their time waiting.
  describe.concurrent('that is slow or gone', () => {
    it('500 with the documented body, without internals, when the database was dropped', async () => {
      const name = `deckhand_gone_${randomBytes(6).toString('hex')}`;
      await onServer(databaseUrl!, `create database ${name}`);
      const database = await givenDatabase({
        DATABASE_URL: Object.assign(new URL(databaseUrl!), { pathname: `/${name}` }).href,
      });
      const { caller, url, logged } = await givenCallerOn(database);
      await onServer(databaseUrl!, `drop database ${name} with (force)`);

      const listed = await caller.post(LIST);
      const signedIn = await makeCaller(url).post('/v1/authenticate', { email: 'a@b.test', password: 'x' });

      expect(listed.status).toBe(500);
      expect(listed.body).toEqual({ error: true, message: FAULT, data: [] });
      expect(listed.headers.get('x-ratelimit-limit')).toBe('1000000');
      expect(signedIn.status).toBe(500);
      expect(signedIn.body).toEqual({ error: true, message: FAULT });
      expect(await refusalOf(caller.rpc.boards.list.query())).toEqual({ status: 500, message: FAULT });
      expect(logged.filter(({ level }) => level === 50).length).toBeGreaterThanOrEqual(3);
      expect((await fetch(`${url}/health/ready`)).status).toBe(503);
      expect((await fetch(`${url}/health/live`)).status).toBe(200);
      await database.close();
    });

    it('429 with Retry-After when the connection pool is exhausted, and later it works again', async () => {
      const database = await givenDatabase({ DATABASE_POOL_SIZE: '2' });
      const { caller, logged } = await givenCallerOn(database);
      const release = Promise.withResolvers<void>();
      const holding = Array.from({ length: 2 }, () => database.db.transaction().execute(() => release.promise));
      await expect.poll(() => database.connections()?.used).toBe(2);

      const busy = await caller.post(LIST);
      release.resolve();
      await Promise.all(holding);

      expect(busy.status).toBe(429);
      expect(busy.body).toEqual({ error: true, message: 'The service is busy. Try again shortly.' });
      expect(busy.headers.get('retry-after')).toBe('1');
      expect(logged.find(({ level }) => level === 40)).toMatchObject({
        reqId: busy.headers.get('x-request-id'),
        msg: 'The database is busy: a connection or a row lock timed out.',
        err: { message: expect.stringContaining('timeout exceeded') },
      });
      expect((await caller.post(LIST)).status).toBe(200);
      await database.close();
    });

    it('500 while the database does not respond, and 200 as soon as it does', async () => {
      const proxy = await givenProxyTo(databaseUrl!);
      const database = await givenDatabase({ DATABASE_URL: proxy.url, DATABASE_POOL_SIZE: '3' });
      const { caller, url } = await givenCallerOn(database);
      expect((await Promise.all([caller.post(LIST), caller.post(LIST)])).map(({ status }) => status)).toEqual([
        200, 200,
      ]);

      proxy.silence();
      const silent = await Promise.all([
        caller.post(LIST),
        caller.post(CREATE, { title: 'Never' }),
        makeCaller(url).post('/v1/authenticate', { email: 'a@b.test', password: 'x' }),
      ]);
      const [withoutConnection, ready] = await Promise.all([caller.post(LIST), fetch(`${url}/health/ready`)]);
      proxy.restore();

      expect(silent.map(({ status }) => status)).toEqual([500, 500, 500]);
      expect(silent[0]!.body).toEqual({ error: true, message: FAULT, data: [] });
      expect(withoutConnection.status).toBe(500);
      expect(ready.status).toBe(503);
      expect((await caller.post(LIST)).status).toBe(200);
      expect((await fetch(`${url}/health/ready`)).status).toBe(200);
      await database.close();
      proxy.close();
    });
  });

  describe('/health/ready', () => {
    const readyOf = async (url: string) => {
      const response = await fetch(`${url}/health/ready`);
      return { code: response.status, ...((await response.json()) as { status: string }) };
    };
    const READY = { code: 200, status: 'ready' };

    it.each(['access exclusive', 'share'])('503 while a migration holds a lock: %s', async (mode) => {
      const METRICS_TOKEN = 'a-token-for-prometheus';
      const { url } = await givenService({ METRICS_TOKEN });
      const holder = await givenDatabase();

      const whileLocked = await holder.db.transaction().execute(async (db) => {
        await query(db, sql.raw(`lock table ${mode === 'share' ? 'cards' : 'users'} in ${mode} mode`));
        const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } });
        return { ready: await readyOf(url), metrics: await response.text() };
      });

      expect(whileLocked.ready).toEqual({ code: 503, status: 'tables locked' });
      expect(whileLocked.metrics).toContain('deckhand_unready{reason="tables_locked"} 1');
      expect(whileLocked.metrics).toContain('deckhand_unready{reason="unavailable"} 0');
      expect(await readyOf(url)).toEqual(READY);
      await holder.close();
    });

    it('503 while the database is read-only', async () => {
      const readOnly = `${databaseUrl}?options=-c%20default_transaction_read_only%3Don`;
      const database = await givenDatabase({ DATABASE_URL: readOnly });
      const { url, logged } = await givenService({}, { database });

      expect(await readyOf(url)).toEqual({ code: 503, status: 'database read-only' });
      expect(logged.find(({ level }) => level === 40)).toMatchObject({ msg: 'Not ready: database read-only.' });
      await database.close();
    });

    it('503 once the upgrade to a later version is finished; the log says which version is needed', async () => {
      const { url, logged } = await givenService();
      await query(await testDb(), sql`update database_state set level = level + 1, version = '99.1.0'`);
      onTestFinished(async () => void (await query(await testDb(), sql`update database_state set level = level - 1`)));

      expect(await readyOf(url)).toEqual({ code: 503, status: 'the database needs a later version' });
      expect(JSON.stringify(logged)).toContain('The database needs version 99.1.0 or later of Deckhand: ');
    });

    it('asks the database once for many checks at once', async () => {
      const readiness = makeReadiness(await testDatabase());

      const statements = await countStatements(() => Promise.all(Array.from({ length: 20 }, readiness)));

      expect(statements).toBe(3);
    });
  });

  it('serves other users while one user has as many calls as allowed waiting for a lock', async () => {
    const database = await givenDatabase({ DATABASE_POOL_SIZE: '2' });
    const service = await givenService({ DATABASE_POOL_SIZE: '2' }, { database });
    const project = await givenProject();
    const [greedy, other] = [await givenUser({ project }), await givenUser({ project })];
    const card = await givenCard(project);
    const holder = await givenDatabase();
    const [locked, unlock] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const held = holder.db.transaction().execute(async (db) => {
      await query(db, sql`select from cards where id = ${card} for update`);
      locked.resolve();
      await unlock.promise;
    });
    await locked.promise;

    const { rpc } = makeCaller(service.url, await givenToken(greedy));
    const batch = Promise.all(Array.from({ length: 20 }, () => rpc.cards.update.mutate({ id: card, title: 'Mine' })));
    const caller = makeCaller(service.url, await givenToken(other));
    for (let call = 0; call < 5; call++) expect((await caller.post(LIST)).status).toBe(200);
    unlock.resolve();

    expect((await batch).map(({ card: { title } }) => title)).toEqual(Array(20).fill('Mine'));
    await held;
    await Promise.all([database.close(), holder.close()]);
  });

  it('recovers when every connection of the pool is lost inside a transaction', async () => {
    const database = await givenDatabase({ DATABASE_POOL_SIZE: '2' });
    const { caller } = await givenCallerOn(database);
    const pids: number[] = [];
    const transactions = Array.from({ length: 2 }, () =>
      database.db.transaction().execute(async (db) => {
        const [backend] = await query(db, sql<{ pid: number }>`select pg_backend_pid() as pid`);
        pids.push(backend!.pid);
        await query(db, sql`select pg_sleep(30)`);
      }),
    );
    const ended = Promise.allSettled(transactions);
    await expect.poll(() => pids.length).toBe(2);

    await onServer(databaseUrl!, `select pg_terminate_backend(pid) from unnest(array[${pids}]) as pid`);

    expect((await ended).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect((await caller.post(LIST)).status).toBe(200);
    await database.close();
  });

  it('recovers when the server closes idle connections', async () => {
    const other = await givenDatabase();
    const [begun] = await query(other.db, sql<{ at: string }>`select now()::text as at`);
    const database = await givenDatabase();
    const { caller } = await givenCallerOn(database);
    expect((await caller.post(LIST)).status).toBe(200);

    await query(
      other.db,
      // Not those of other suites.
      sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
        and backend_start > ${begun!.at}::timestamptz and state = 'idle'`,
    );
    await expect.poll(async () => (await caller.post(LIST)).status).toBe(200);

    expect((await caller.post(CREATE, { title: 'Afterwards' })).status).toBe(201);
    await database.close();
    await other.close();
  });
});
