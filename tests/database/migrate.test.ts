import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, type Database } from '../../server/database/connect.ts';
import { migrate, migrationNames } from '../../server/database/migrate.ts';
import { findOpen } from '../../server/database/openTransactions.ts';
import { type Db, query } from '../../server/database/query.ts';
import { schemaDifference } from '../../server/database/schemaDifference.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { onServer } from '../harness/server.ts';
import { databaseUrl, TEST_SECRET, testDatabase } from '../harness/service.ts';

/** Names that migrations had in the previous version. */
const OLD_NAMES = ['Migration20261115000000', 'Migration20261115000001', 'Migration20261115041535'];

describe.skipIf(!databaseUrl)('migrations on a PostgreSQL server', () => {
  const made: { name: string; nodes: Database[] }[] = [];
  let migrated: string;
  beforeAll(async () => {
    const [node] = await givenNodes(1);
    await migrate(node!);
    await node!.close();
    migrated = made.pop()!.name;
  });
  afterAll(async () => {
    for (const { name, nodes } of made) {
      await Promise.all(nodes.map(({ close }) => close()));
      await onServer(addressOf('postgres'), `drop database ${name}`);
    }
    await onServer(addressOf('postgres'), `drop database ${migrated}`);
  });

  const addressOf = (name: string) => Object.assign(new URL(databaseUrl!), { pathname: `/${name}` }).href;

  /** Nodes on a new database, which may be a copy of another one, with one connection each. */
  const givenNodes = async (count: number, template = 'template1'): Promise<Database[]> => {
    const name = `deckhand_migrate_${randomBytes(6).toString('hex')}`;
    await onServer(addressOf('postgres'), `create database ${name} template ${template}`);
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
    const [node, other] = await givenNodes(2, migrated);
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

  it('that find rows which a new foreign key refuses name database verify, and go on after the repair', async () => {
    const [node] = await givenNodes(1, migrated);
    const name = 'Migration20261116101200_validate_cards_foreign_keys';
    const key = 'foreign key (group_id, project_id) references groups (id, project_id)';
    for (const statement of [
      `delete from mikro_orm_migrations where name = '${name}'`,
      'alter table cards drop constraint cards_same_tenant_group',
      `insert into platforms (name) values ('x')`,
      `insert into projects (platform_id, name) values (1, 'x')`,
      `insert into cards (project_id, platform_id, group_id, title) values (1, 1, 99, 'x')`,
      `alter table cards add constraint cards_same_tenant_group ${key} not valid`,
    ])
      await query(node!.db, sql.raw(statement));

    await expect(migrate(node!)).rejects.toThrow(
      `${name} failed: rows of cards violate cards_same_tenant_group: npx deckhand database verify finds them and says what to do.`,
    );
    await query(node!.db, sql`update cards set group_id = null`);

    expect(await migrate(node!)).toEqual([name]);
  });

  it('replace the triggers of cards that the previous version had by foreign keys', async () => {
    const [node] = await givenNodes(1, migrated);
    const names = (await migrationNames()).filter((name) => /_(template_parents|.*cards_foreign_keys)$/.test(name));
    await query(node!.db, sql`delete from mikro_orm_migrations where name = any(${names})`);
    await givenTriggers(node!.db);

    expect(await migrate(node!)).toEqual(names);

    expect(await schemaDifference(await node!.orm())).toEqual([]);
    const triggers = await query(
      node!.db,
      sql<{ name: string }>`select tgname as name from pg_trigger where not tgisinternal order by tgname`,
    );
    expect(triggers.map(({ name }) => name)).toEqual([
      ...['boards_raise_version', 'cards_fill_template_group_id', 'cards_raise_version'],
      ...['comments_fill_thread', 'comments_raise_version', 'groups_fill_template_board_id'],
      ...['groups_raise_version', 'tags_raise_version'],
    ]);
    const group = sql<{ template_group_id: number | null; group_id: number }>`
      select template_group_id, group_id from cards where is_master`;
    const [card] = await query(node!.db, group);
    expect(card!.template_group_id).toBe(card!.group_id);
  });

  it('have no time limits, also where the role has some', async () => {
    const limits = 'statement_timeout lock_timeout idle_in_transaction_session_timeout'.split(' ');
    const options = encodeURIComponent(limits.map((limit) => `-c ${limit}=4567`).join(' '));
    const settings = readSettings({
      DATABASE_URL: `${addressOf('postgres')}?options=${options}`,
      JWT_SECRET: TEST_SECRET,
    });
    const node = await connect(settings);
    const shown = async ({ db }: Database) =>
      Promise.all(
        limits.map(
          async (limit) =>
            (await query(db, sql<{ value: string }>`select current_setting(${limit}) as value`))[0]!.value,
        ),
      );

    expect(await node.withoutTimeouts(shown)).toEqual(['0', '0', '0']);
    expect(await shown(node)).toEqual(['30s', '10s', '30s']);
    await node.close();
  });

  it('name transactions of others that stay open, and not their own', async () => {
    const [node, other] = await givenNodes(2);
    await other!.db.transaction().execute(async (db) => {
      const [{ pid }] = (await query(db, sql`select pg_backend_pid() as pid`)) as [{ pid: number }];

      const found = await node!.withoutTimeouts(({ db: migrating }) =>
        migrating.transaction().execute(async (own) => {
          await query(own, sql`select 1`);
          return findOpen(node!.db, 0);
        }),
      );

      expect(found).toEqual([{ pid, name: 'deckhand', state: 'idle in transaction', seconds: expect.any(Number) }]);
    });
  });

  it('that were renamed are not run again, and their old names stay recorded', async () => {
    const [node] = await givenNodes(1, migrated);
    for (const name of OLD_NAMES) {
      await query(node!.db, sql`update mikro_orm_migrations set name = ${name} where name like ${`${name}\\_%`}`);
    }

    expect(await migrate(node!)).toEqual([]);

    const recorded = await query(node!.db, sql<{ name: string }>`select name from mikro_orm_migrations order by name`);
    expect(recorded.map(({ name }) => name)).toEqual([...(await migrationNames()), ...OLD_NAMES].sort());
  });
});

/** What the previous version had instead of the foreign keys, with a master card. */
async function givenTriggers(db: Db): Promise<void> {
  const references = {
    cards_created_by_foreign: 'users',
    cards_same_tenant_platform: 'projects',
    cards_same_tenant_group: 'groups',
    cards_master_card_id_foreign: 'cards',
  };
  for (const statement of [
    ...Object.keys(references).map((name) => `alter table cards drop constraint ${name}`),
    'alter table cards drop column template_group_id cascade',
    'drop function cards_fill_template_group_id() cascade',
    'alter table groups drop column template_board_id cascade',
    'drop function groups_fill_template_board_id() cascade',
    'alter table groups drop constraint groups_id_project_id_unique, drop constraint groups_id_is_master_unique',
    'alter table boards drop constraint boards_id_is_master_unique',
    'alter table groups add constraint groups_board_id_foreign foreign key (board_id) references boards (id)',
    'alter function comments_fill_thread() reset search_path',
    ...Object.entries(references).flatMap(([name, table]) => [
      `create function ${name}() returns trigger language plpgsql as 'begin return null; end'`,
      `create trigger ${name}_delete after delete on ${table} for each row execute function ${name}()`,
    ]),
    ...['added', 'changed'].flatMap((event) => [
      `create function cards_check_${event}() returns trigger language plpgsql as 'begin return null; end'`,
      `create trigger cards_check_${event} after insert on cards for each statement execute function cards_check_${event}()`,
    ]),
    `insert into boards (is_master, title) values (true, 'x')`,
    `insert into groups (is_master, board_id, title) values (true, 1, 'x')`,
    `insert into cards (is_master, group_id, title) values (true, 1, 'x')`,
  ])
    await query(db, sql.raw(statement));
}

describe('migrations', () => {
  it('change nothing when run again', async () => {
    expect(await migrate(await testDatabase())).toEqual([]);
  });
});
