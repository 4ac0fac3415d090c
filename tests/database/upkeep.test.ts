import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { vacuumChanged } from '../../server/database/embedded/upkeep.ts';
import { query } from '../../server/database/query.ts';
import { databaseUrl } from '../harness/service.ts';
import { testDb } from '../harness/world.ts';

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

  /** Flushes the statistics: PostgreSQL would otherwise count the changes later. */
  async function add(rows: number) {
    const db = await testDb();
    await query(db, sql`insert into growing (deleted_at) select null from generate_series(1, ${rows}::int)`);
    await query(db, sql`select pg_stat_force_next_flush()`);
  }

  /** What the planner knows about the table; -1 rows if it was never analyzed. */
  async function statistics() {
    const [table] = await query(
      await testDb(),
      sql<{ rows: number; isVacuumed: boolean }>`
        select reltuples as rows, relallvisible = relpages as "isVacuumed" from pg_class where oid = 'growing'::regclass`,
    );
    return table;
  }

  it('vacuums and analyzes a table as soon as it has rows', async () => {
    const db = await testDb();
    await vacuumChanged(db);
    expect(await statistics()).toMatchObject({ rows: -1 });

    await add(3);
    await vacuumChanged(db);

    expect(await statistics()).toEqual({ rows: 3, isVacuumed: true });
  });

  it('does so again after 50 rows plus a tenth of the table have changed', async () => {
    const db = await testDb();
    await add(1000);
    await vacuumChanged(db);

    await add(100);
    await vacuumChanged(db);
    expect(await statistics()).toMatchObject({ rows: 1000 });

    await add(100);
    await vacuumChanged(db);
    expect(await statistics()).toEqual({ rows: 1200, isVacuumed: true });
  });
});
