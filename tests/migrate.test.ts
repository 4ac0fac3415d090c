import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, describe, expect, it } from 'vitest';
import { connect, type Database } from '../server/database/connect.ts';
import { migrate } from '../server/database/migrate.ts';
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

  it('are run by only one of three nodes that start at the same time', async () => {
    const nodes = await givenNodes(3);

    const applied = await Promise.all(nodes.map((node) => migrate(node)));

    const [done, ...others] = applied.toSorted((one, other) => other.length - one.length);
    expect(done).not.toEqual([]);
    expect(others).toEqual([[], []]);
    expect(await query(nodes[0]!.db, sql`select name from mikro_orm_migrations order by id`)).toEqual(
      done!.map((name) => ({ name })),
    );
  });

  it('are all rolled back when one of them fails', async () => {
    const [node] = await givenNodes(1);
    await query(node!.db, sql`create table checkouts_reference_unique ()`);

    await expect(migrate(node!)).rejects.toThrow(
      'The migrations failed, and nothing was changed: ' +
        'Migration20261115041535_publication_second_factor_checkout: relation "checkouts_reference_unique" already exists.',
    );

    expect(await query(node!.db, sql`select to_regclass('users') as users`)).toEqual([{ users: null }]);
    expect(await query(node!.db, sql`select name from mikro_orm_migrations`)).toEqual([]);
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
