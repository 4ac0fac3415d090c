import { setTimeout } from 'node:timers/promises';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../server/database/connect.ts';
import { prepared } from '../../server/database/prepared.ts';
import { query } from '../../server/database/query.ts';
import { makeCaller } from '../harness/caller.ts';
import { givenProxyTo } from '../harness/proxy.ts';
import { countStatements, databaseUrl, givenDatabase, givenService, testDatabase } from '../harness/service.ts';
import { givenProject, givenToken, givenUser } from '../harness/world.ts';

const LIST = '/services/operations/v1/operations/boards/list';
const LANE = 'deckhand lane';

const backendOf = prepared<{ number: number }, { number: number; pid: number; name: string }>(
  (value) => sql`
    select ${value('number')}::int as number, pg_backend_pid() as pid, current_setting('application_name') as name`,
  { isShort: true },
);

const opened: Database[] = [];
const closeAll = () => Promise.all(opened.splice(0).map((database) => database.close()));

/** A database of this test's own, whose lane is connected. */
async function givenLane(settings: Record<string, string> = {}): Promise<Database> {
  const database = await givenDatabase(settings);
  opened.push(database);
  await connectedLane(database);
  return database;
}

async function connectedLane(database: Database) {
  await backendOf(database.db, { number: 0 });
  await expect.poll(() => database.connections()?.lane?.idle).toBe(2);
}

const numbers = (count: number) => Array.from({ length: count }, (_, number) => ({ number }));

const lockOrWait = prepared<{ id: number }, { id: number }>(
  (value) => sql`select ${value('id')}::int as id, pg_advisory_xact_lock(${value('id')})`,
  { isFirst: true },
);

describe.skipIf(!databaseUrl)('short reads', () => {
  beforeAll(() => testDatabase());
  afterEach(closeAll);

  it('share two of the connections, and each gets its own rows', async () => {
    const { db, connections } = await givenLane();

    const found = await Promise.all(numbers(100).map((values) => backendOf(db, values)));

    expect(found.map(([row]) => row?.number)).toEqual(numbers(100).map(({ number }) => number));
    expect(new Set(found.map(([row]) => row?.pid)).size).toBe(2);
    expect(found.every(([row]) => row?.name === LANE)).toBe(true);
    expect(connections()).toMatchObject({ max: 8, lane: { max: 2, pending: 0 } });
  });

  it('use the pool if it is small', async () => {
    const database = await givenDatabase({ DATABASE_POOL_SIZE: '7' });
    opened.push(database);

    expect(database.connections()).toMatchObject({ max: 7, lane: undefined });
    expect(await backendOf(database.db, { number: 1 })).toMatchObject([{ name: 'deckhand' }]);
  });

  it('may be the last before the database is closed, while the lane still connects', async () => {
    const database = await givenDatabase();

    expect(await backendOf(database.db, { number: 1 })).toMatchObject([{ number: 1 }]);
    await database.close();
  });

  it('inside a transaction are part of it', async () => {
    const { db } = await givenLane();

    const [own, read] = await db.transaction().execute(async (transaction) => {
      const [backend] = await query(transaction, sql<{ pid: number }>`select pg_backend_pid() as pid`);
      const [row] = await backendOf(transaction, { number: 1 });
      return [backend?.pid, row?.pid];
    });

    expect(read).toBe(own);
  });

  it('are answered while all other connections are in use', async () => {
    const database = await givenLane();
    const service = await givenService({}, { database });
    const caller = makeCaller(service.url, await givenToken(await givenUser({ project: await givenProject() })));
    const release = Promise.withResolvers<void>();
    const holding = Array.from({ length: 8 }, () => database.db.transaction().execute(() => release.promise));
    await expect.poll(() => database.connections()?.used).toBe(8);

    const { status } = await caller.post(LIST);
    release.resolve();
    await Promise.all(holding);

    expect(status).toBe(200);
    expect(database.connections()?.pending).toBe(0);
  });

  it('fail alone', async () => {
    const { db } = await givenLane();
    const divide = prepared<{ by: number }, { result: number }>(
      (value) => sql`select 12 / ${value('by')}::int as result`,
      { isShort: true },
    );

    const all = [3, 0, 4, 0, 6].map((by) => divide(db, { by }));
    // Prepared by now, so that the second time differs.
    await Promise.allSettled(all);
    const again = await Promise.allSettled([3, 0, 4, 0, 6].map((by) => divide(db, { by })));

    const failed = { status: 'rejected', reason: { code: '22012' } };
    const results = [[{ result: 4 }], failed, [{ result: 3 }], failed, [{ result: 2 }]];
    for (const outcomes of [await Promise.allSettled(all), again])
      expect(outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : outcome))).toMatchObject(
        results,
      );
  });

  it('that wait for a lock do so on the pool', async () => {
    const { db } = await givenLane();
    const holder = await givenDatabase();
    opened.push(holder);
    const count = prepared<{ id: number }, { name: string; count: number }>(
      (value) => sql`
        select current_setting('application_name') as name, count(*)::int as count from platforms where id = ${value('id')}`,
      { isShort: true },
    );
    const waitingBackends = sql<{ name: string }>`
      select application_name as name from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;

    const reading = await holder.db.transaction().execute(async (lock) => {
      await query(lock, sql`lock table platforms in access exclusive mode`);
      const rows = count(db, { id: -1 });
      await expect.poll(() => query(lock, waitingBackends)).toEqual([{ name: 'deckhand' }]);
      return { rows };
    });

    expect(await reading.rows).toEqual([{ name: 'deckhand', count: 0 }]);
  });

  it('that took long are executed on the pool from then on', async () => {
    const { db } = await givenLane();
    const sleep = prepared<{ seconds: number }, { name: string }>(
      (value) => sql`select current_setting('application_name') as name from pg_sleep(${value('seconds')}::float8)`,
      { isShort: true },
    );

    expect(await sleep(db, { seconds: 0.1 })).toEqual([{ name: LANE }]);
    expect(await sleep(db, { seconds: 0.1 })).toEqual([{ name: 'deckhand' }]);
  });

  it('that took long are remembered for a time, the last 1,000 of them', async () => {
    const { db } = await givenLane();
    await query(
      db,
      sql`create function time_out_on_lane(number int) returns int language plpgsql as $$ begin
        if current_setting('application_name') = ${sql.lit(LANE)} then raise query_canceled; end if;
        return number;
      end $$`,
    );
    const read = prepared<{ number: number }, { number: number }>(
      (value) => sql`select time_out_on_lane(${value('number')}::int) as number`,
      { isShort: true },
    );
    const statementsOf = (number: number) =>
      countStatements(async () => expect(await read(db, { number })).toEqual([{ number }]));

    const statements: number[] = [];
    for (const { number } of numbers(1001)) statements.push(await statementsOf(number));

    // On the lane, and then on the pool.
    expect(new Set(statements)).toEqual(new Set([2]));
    expect([await statementsOf(1000), await statementsOf(0)]).toEqual([1, 2]);
    await query(db, sql`drop function time_out_on_lane`);
  });

  it('are executed on the pool if their connection is lost, and the lane connects again', async () => {
    const database = await givenLane();
    const sleep = prepared<{ seconds: number }, { name: string }>(
      (value) => sql`
        select current_setting('application_name') as name from pg_sleep(
          case when current_setting('application_name') = ${LANE} then ${value('seconds')}::float8 else 0 end)`,
      { isShort: true },
    );
    const other = await givenDatabase();
    opened.push(other);
    await query(other.db, sql`select 1`);
    const reads = Array.from({ length: 6 }, () => sleep(database.db, { seconds: 0.9 }));
    const lost = new Set<number>();
    const loseRunning = async () => {
      const ended = await query(
        other.db,
        sql<{ pid: number }>`select pid, pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and application_name = ${LANE} and state = 'active'`,
      );
      for (const { pid } of ended) lost.add(pid);
      return lost.size;
    };

    await expect.poll(loseRunning, { interval: 10 }).toBeGreaterThanOrEqual(2);

    expect(await Promise.all(reads)).toEqual(Array(6).fill([{ name: 'deckhand' }]));
    await connectedLane(database);
  });

  it('are prepared again after a migration has changed their columns', async () => {
    const { db } = await givenLane();
    const table = sql.table(`lane_${process.pid}_${Date.now()}`);
    await query(db, sql`create table ${table} (id int)`);
    await query(db, sql`insert into ${table} values (1)`);
    const read = prepared<{ id: number }, object>((value) => sql`select * from ${table} where id = ${value('id')}`, {
      isShort: true,
    });
    for (let time = 0; time < 6; time++) expect(await read(db, { id: 1 })).toEqual([{ id: 1 }]);

    await query(db, sql`alter table ${table} add column note text default 'new'`);
    const rows = await Promise.all(Array.from({ length: 6 }, () => read(db, { id: 1 })));
    const later = await Promise.all(Array.from({ length: 6 }, () => read(db, { id: 1 })));
    await query(db, sql`drop table ${table}`);

    expect(rows).toEqual(Array(6).fill([{ id: 1, note: 'new' }]));
    expect(later).toEqual(rows);
  });
});

/** At the same time, since all wait for seconds. */
describe('while the database is slow', { skip: !databaseUrl, concurrent: true }, () => {
  beforeAll(() => testDatabase());
  afterAll(closeAll);

  it('short reads fail while the database does not respond, and work as soon as it does', async () => {
    const proxy = await givenProxyTo(databaseUrl!);
    const database = await givenLane({ DATABASE_URL: proxy.url });
    const service = await givenService({}, { database });
    const caller = makeCaller(service.url, await givenToken(await givenUser({ project: await givenProject() })));
    expect((await caller.post(LIST)).status).toBe(200);

    proxy.silence();
    const silent = await Promise.all(numbers(5).map(() => caller.post(LIST)));
    proxy.restore();

    expect(silent.map(({ status }) => status)).toEqual(Array(5).fill(500));
    expect((await caller.post(LIST)).status).toBe(200);
    proxy.close();
  });

  it('short reads fail while the database does not respond, also those with others behind them', async () => {
    const proxy = await givenProxyTo(databaseUrl!);
    const database = await givenLane({ DATABASE_URL: proxy.url });

    proxy.silence();
    const failure = (number: number) => backendOf(database.db, { number }).then(String, ({ message }) => message);
    let first: string | undefined;
    const reads = [failure(0).then((message) => (first = message))];
    for (let number = 1; number < 600 && first === undefined; number++) {
      reads.push(failure(number));
      await setTimeout(100);
    }

    expect(first).toBe('the database did not answer in time');
    await Promise.all(reads);
    proxy.close();
  });

  it('the first write of a request fails within seconds while the database does not respond', async () => {
    const proxy = await givenProxyTo(databaseUrl!);
    const { db } = await givenLane({ DATABASE_URL: proxy.url });
    await lockOrWait(db, { id: 2 });

    proxy.silence();
    const begun = performance.now();
    const failure = await lockOrWait(db, { id: 2 }).then(String, ({ message }) => message);
    proxy.close();

    expect(failure).toBe('the database did not answer in time');
    // It would be 32 seconds without the read on the lane.
    expect(performance.now() - begun).toBeLessThan(32_000);
  });

  it('the first write of a request waits for a lock as long as the database responds to others', async () => {
    const { db } = await givenLane();
    const isLocked = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    const holder = db.transaction().execute(async (locking) => {
      await query(locking, sql`select pg_advisory_xact_lock(3)`);
      isLocked.resolve();
      await end.promise;
    });
    await isLocked.promise;

    const waiting = lockOrWait(db, { id: 3 });
    await setTimeout(3_500);
    end.resolve();

    expect(await waiting).toMatchObject([{ id: 3 }]);
    await holder;
  });
});

describe.skipIf(!databaseUrl)('the first write of a request', () => {
  beforeAll(() => testDatabase());
  afterEach(closeAll);

  it('returns nothing until the lane is connected', async () => {
    const database = await givenDatabase();
    opened.push(database);

    expect(await lockOrWait(database.db, { id: 1 })).toEqual([]);
    await connectedLane(database);
    expect(await lockOrWait(database.db, { id: 1 })).toMatchObject([{ id: 1 }]);
  });

  it('returns nothing on a server that has become read-only', async () => {
    const { db } = await givenLane();
    const write = prepared<{ on: string }, object>(
      (value) => sql`
        with became as materialized (select set_config('transaction_read_only', ${value('on')}::text, true))
        select nextval(pg_get_serial_sequence('cards', 'id')) from became where set_config is not null`,
      { isFirst: true },
    );

    expect(await write(db, { on: 'off' })).toHaveLength(1);
    expect(await write(db, { on: 'on' })).toEqual([]);
  });
});
