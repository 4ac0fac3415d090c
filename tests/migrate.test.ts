import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, describe, expect, it } from 'vitest';
import { connect, type Database } from '../server/database/connect.ts';
import { migrate, migrationNames } from '../server/database/migrate.ts';
import { query } from '../server/database/query.ts';
import { readSettings } from '../server/runtime/env.ts';
import { createDatabase, onServer } from './harness/server.ts';
import { databaseUrl, TEST_SECRET, testDatabase } from './harness/service.ts';

/** Names that migrations had in the previous version. */
const OLD_NAMES = ['Migration20261115000000', 'Migration20261115000001', 'Migration20261115041535'];

describe.skipIf(!databaseUrl)('migrations on a PostgreSQL server', () => {
  const made: { name: string; nodes: Database[] }[] = [];
  afterAll(async () => {
    for (const { name, nodes } of made) {
      await Promise.all(nodes.map(({ close }) => close()));
      await onServer(addressOf('postgres'), `drop database ${name}`);
    }
  });

  const addressOf = (name: string) => Object.assign(new URL(databaseUrl!), { pathname: `/${name}` }).href;

  /** Nodes on a new database, with one connection each. */
  const givenNodes = async (count: number): Promise<Database[]> => {
    const name = `deckhand_migrate_${randomBytes(6).toString('hex')}`;
    await createDatabase(addressOf(name));
    const settings = readSettings({ DATABASE_URL: addressOf(name), JWT_SECRET: TEST_SECRET });
    const connecting = Array.from({ length: count }, () => connect({ ...settings, DATABASE_POOL_SIZE: 1 }));
    const nodes = await Promise.all(connecting);
    made.push({ name, nodes });
    return nodes;
  };

  const recordedIn = async (node: Database) => {
    const rows = await query(node.db, sql<{ name: string }>`select name from mikro_orm_migrations order by id`);
    return rows.map(({ name }) => name);
  };

  it('are each run by one of three nodes that start at the same time', async () => {
    const nodes = await givenNodes(3);

    const applied = await Promise.all(nodes.map((node) => migrate(node)));

    expect(applied.flat().sort()).toEqual(await migrationNames());
    expect(await recordedIn(nodes[0]!)).toEqual(await migrationNames());
  });

  it('end at one that fails: those before it are done, and the next start goes on with it', async () => {
    const [node] = await givenNodes(1);
    const all = await migrationNames();
    const failing = 'Migration20261116033918_idempotency_usage';
    await query(node!.db, sql`create table idempotency_usage ()`);

    await expect(migrate(node!)).rejects.toThrow(
      `${failing} failed: relation "idempotency_usage" already exists. The migrations before it are done; a new start goes on.`,
    );

    expect(await recordedIn(node!)).toEqual(all.slice(0, all.indexOf(failing)));
    await query(node!.db, sql`drop table idempotency_usage`);
    expect(await migrate(node!)).toEqual(all.slice(all.indexOf(failing)));
  });

  it('give way to a transaction that holds a lock, and are repeated', async () => {
    const [node, other] = await givenNodes(2);
    await migrate(node!);
    const name = 'Migration20261116040047_due_at_midnight';
    await query(node!.db, sql`alter table cards drop column is_due_at_midnight`);
    await query(node!.db, sql`delete from mikro_orm_migrations where name = ${name}`);
    const [locked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const holder = other!.db.transaction().execute(async (db) => {
      await query(db, sql`lock table cards in share mode`);
      locked.resolve();
      await released.promise;
    });
    await locked.promise;

    const attempts: string[] = [];
    const applied = migrate(node!, {
      onMigration: (name) => {
        if (attempts.push(name) === 2) released.resolve();
      },
    });

    expect(await applied).toEqual([name]);
    expect(attempts.slice(0, 2)).toEqual([name, name]);
    await holder;
  });

  it('that were renamed are not run again, and their old names stay recorded', async () => {
    const [node] = await givenNodes(1);
    const applied = await migrate(node!);
    for (const name of OLD_NAMES) {
      await query(node!.db, sql`update mikro_orm_migrations set name = ${name} where name like ${`${name}\\_%`}`);
    }

    expect(await migrate(node!)).toEqual([]);

    const recorded = await query(node!.db, sql<{ name: string }>`select name from mikro_orm_migrations order by name`);
    expect(recorded.map(({ name }) => name)).toEqual([...applied, ...OLD_NAMES].sort());
  });
});

describe('migrations', () => {
  it('change nothing when run again', async () => {
    expect(await migrate(await testDatabase())).toEqual([]);
  });
});
