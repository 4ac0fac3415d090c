import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { query } from '../server/database/query.ts';
import { analyzeChanged } from '../server/database/upkeep.ts';
import { databaseUrl } from './harness/service.ts';
import { testDb } from './harness/world.ts';

describe.skipIf(databaseUrl)('the upkeep of the embedded database', () => {
  beforeEach(async () => {
    await query(
      await testDb(),
      sql`create table growing (id int generated always as identity, deleted_at timestamptz)`,
    );
  });
  afterEach(async () => {
    await query(await testDb(), sql`drop table growing`);
  });

  /** PostgreSQL counts changes at its leisure unless it is told to. */
  async function add(rows: number) {
    const db = await testDb();
    await query(db, sql`insert into growing (deleted_at) select null from generate_series(1, ${rows}::int)`);
    await query(db, sql`select pg_stat_force_next_flush()`);
  }

  /** -1 where it was never analyzed. */
  async function knownRows(): Promise<number> {
    const [table] = await query(
      await testDb(),
      sql<{ reltuples: number }>`select reltuples from pg_class where oid = 'growing'::regclass`,
    );
    return table!.reltuples;
  }

  it('analyzes a table as soon as something is in it', async () => {
    const db = await testDb();
    await analyzeChanged(db);
    expect(await knownRows()).toBe(-1);

    await add(3);
    await analyzeChanged(db);

    expect(await knownRows()).toBe(3);
  });

  it('analyzes it again after a tenth of it changed, at least 50 rows', async () => {
    const db = await testDb();
    await add(1000);
    await analyzeChanged(db);

    await add(100);
    await analyzeChanged(db);
    expect(await knownRows()).toBe(1000);

    await add(100);
    await analyzeChanged(db);
    expect(await knownRows()).toBe(1200);
  });
});
