import { sql } from 'kysely';
import { afterAll, describe, expect, it } from 'vitest';
import { connect, type Database } from '../../server/database/connect.ts';
import { prepared } from '../../server/database/prepared.ts';
import { query, transact } from '../../server/database/query.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { givenCluster, givenPgBouncer, hasPgBouncer } from '../faults/privateServer.ts';

const cluster = hasPgBouncer() ? await givenCluster() : undefined;
const pooler = cluster && (await givenPgBouncer(cluster.url));
if (!pooler) console.log('SKIPPED: PgBouncer in front of PostgreSQL. It is not installed.');

let database: Database | undefined;
afterAll(async () => {
  await database?.close();
  await pooler?.remove();
  await cluster?.remove();
});

const square = prepared<{ number: number }, { result: number }>(
  (value) => sql`select ${value('number')}::int * ${value('number')}::int as result`,
  { isShort: true },
);
const numbers = Array.from({ length: 200 }, (_, number) => number);

describe.skipIf(!pooler)('behind PgBouncer in transaction mode', () => {
  it('many short reads at once, with failures and transactions among them, get their own rows, without a lane', async () => {
    const settings = { DATABASE_URL: pooler!.url, JWT_SECRET: 'a secret for tests that nobody else uses' };
    database = await connect(readSettings({ ...settings, PREPARED_STATEMENTS: 'off' }));
    const { db, connections } = database;
    const work = numbers.map(async (number) => {
      // Too large for an integer.
      if (number % 50 === 7) return square(db, { number: 100_000 }).catch(({ code }) => code);
      if (number % 10 === 3) return transact(db, (inside) => query(inside, sql`select ${number}::int as result`));
      return square(db, { number });
    });

    const expected = numbers.map((number) => {
      if (number % 50 === 7) return '22003';
      return [{ result: number % 10 === 3 ? number : number * number }];
    });
    expect(await Promise.all(work)).toEqual(expected);
    // PgBouncer drops its timeouts.
    expect(connections()?.lane).toMatchObject({ used: 0, idle: 0 });
  });
});
