import { randomUUID } from 'node:crypto';
import { ReferenceKind } from '@mikro-orm/core';
import { type RawBuilder, sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { Migration20261115100300_clean_descriptions as CleanDescriptions } from '../../server/database/migrations/Migration20261115100300_clean_descriptions.ts';
import { Migration20261115182126_unique_master_identifiers as UniqueIdentifiers } from '../../server/database/migrations/Migration20261115182126_unique_master_identifiers.ts';
import { Migration20261116030943_keep_default_projects as KeepDefaultProjects } from '../../server/database/migrations/Migration20261116030943_keep_default_projects.ts';
import { Migration20261116050000_free_subscriptions as FreeSubscriptions } from '../../server/database/migrations/Migration20261116050000_free_subscriptions.ts';
import { Migration20261116100000_unique_copy_identifiers as UniqueCopyIdentifiers } from '../../server/database/migrations/Migration20261116100000_unique_copy_identifiers.ts';
import { query, transact } from '../../server/database/query.ts';
import { schemaDifference } from '../../server/database/schemaDifference.ts';
import { TENANT_KEYS } from '../../server/database/tenantKeys.ts';
import { waitingFor } from '../harness/lock.ts';
import { runMigration } from '../harness/migration.ts';
import { databaseUrl, testDatabase } from '../harness/service.ts';
import {
  givenBoard,
  givenCard,
  givenGroup,
  givenMasterBoard,
  givenMember,
  givenProject,
  givenTag,
  givenTrial,
  givenUser,
  insert,
  stored,
  testDb,
} from '../harness/world.ts';

/** Runs a statement and returns its error code, or "accepted". */
const attempt = async (statement: RawBuilder<unknown>) =>
  query(await testDb(), statement).then(
    () => 'accepted',
    ({ code }) => code,
  );

/** An id that no row has. */
const UNKNOWN = 2_000_000_000;

const FOREIGN_KEY = '23503';
const UNIQUE = '23505';
const CHECK = '23514';
const FEATURE_NOT_SUPPORTED = '0A000';
const GENERATED = expect.stringMatching(/^[0-9a-f-]{36}$/);

describe('the migration', () => {
  it('that cleans descriptions sanitises old descriptions of copies, and escapes those that nest too deeply; those of regular cards stay', async () => {
    const project = await givenProject();
    const given = async (description: string) =>
      givenCard(project, { description, master_card_id: (await givenMasterBoard()).card });
    const cards = [
      await given('plain'),
      await given('<p onclick="x()">a & b</p>'),
      await given('<script>x</script>'),
      await given('<b>'.repeat(101)),
      await givenCard(project, { description: 'vector<int>' }),
    ];

    await runMigration(CleanDescriptions);

    const after = await Promise.all(cards.map(async (id) => (await stored('cards', id)).description));
    expect(after).toEqual(['plain', '<p>a &amp; b</p>', null, '&lt;b&gt;'.repeat(101), 'vector<int>']);
  });

  it('that keeps default projects stores the lowest active project of users without a default, and leaves the others', async () => {
    const [inactive, low, high] = [
      await givenProject({ is_active: false }),
      await givenProject(),
      await givenProject(),
    ];
    const chosen = await givenUser({ default_project_id: high.id });
    const [several, none] = [await givenUser(), await givenUser()];
    for (const user of [chosen, several])
      for (const project of [high, inactive, low]) await givenMember(user, project, 'member');

    await runMigration(KeepDefaultProjects);

    const after = async ({ id }: { id: number }) => (await stored('users', id)).default_project_id;
    expect([await after(chosen), await after(several), await after(none)]).toEqual([high.id, low.id, null]);
  });

  it('of free subscriptions makes those free that were stored as paid with a free plan, and leaves the others', async () => {
    const db = await testDb();
    const given = async (...prices: number[]) => {
      const { id, product } = await givenTrial(await givenProject());
      const [plan] = await query(db, sql<{ id: number }>`select id from plans where product = ${product} limit 1`);
      for (const price_cents of prices)
        await insert('checkouts', {
          subscription_id: id,
          plan_id: plan!.id,
          price_cents,
          currency: 'EUR',
          provider: 'none',
          status: 'paid',
        });
      await query(
        db,
        sql`update subscriptions set status = 'paid', plan_id = ${plan!.id}, paid_at = now() where id = ${id}`,
      );
      return id;
    };
    const subscriptions = [await given(0), await given(1900), await given(0, 1900)];

    await runMigration(FreeSubscriptions);

    const after = await Promise.all(subscriptions.map(async (id) => (await stored('subscriptions', id)).status));
    expect(after).toEqual(['free', 'paid', 'paid']);
  });

  it('that makes identifiers of master cards unique appends the id to all but the oldest, within 100 characters', async () => {
    await query(await testDb(), sql`drop index cards_master_identifier`);
    const given = async (unique_identifier: string, more: object = {}) =>
      (await givenMasterBoard({ card: { unique_identifier, ...more } })).card;
    const [short, long] = [randomUUID(), 'x'.repeat(100)];
    const deleted = await given(short, { deleted_at: new Date() });
    const oldest = await given(short);
    const second = await given(short);
    const taken = await given(`${short}-${second}`);
    const [first, last] = [await given(long), await given(long)];

    await runMigration(UniqueIdentifiers);

    const cards = [deleted, oldest, second, taken, first, last];
    const after = await Promise.all(cards.map(async (id) => (await stored('cards', id)).unique_identifier));
    const cut = `${long.slice(0, 99 - String(last).length)}-${last}`;
    expect(after).toEqual([short, short, `${short}-${second}`, GENERATED, long, cut]);
  });

  it('that makes identifiers of copies unique gives copies that of their template; of equal ones, the copy of a live template keeps it, else the oldest', async () => {
    const [project, other] = [await givenProject(), await givenProject()];
    const [x, y, z] = [randomUUID(), randomUUID(), randomUUID()];
    const master = async (unique_identifier: string, more: object = {}) =>
      (await givenMasterBoard({ card: { unique_identifier, ...more } })).card;
    const deleted_at = new Date();
    const templates = {
      deleted: await master(x, { deleted_at }),
      renamed: await master(z),
      current: await master(x),
      older: await master(y, { deleted_at }),
      newer: await master(y, { deleted_at }),
    };

    // In one transaction, since other tests could add copies without the index.
    const after = await transact(await testDb(), async (db) => {
      await query(db, sql`drop index cards_copy_identifier, cards_deleted_identifier_index`);
      await query(db, sql`create index cards_copies_index on cards (project_id) where master_card_id is not null`);
      const copy = async (of: number, unique_identifier: string, more: object = {}) => {
        const { id: project_id, platform_id } = project;
        const row = { project_id, platform_id, title: 'A copy', master_card_id: of, unique_identifier, ...more };
        return (await db.insertInto('cards').values(row).returning('id').executeTakeFirstOrThrow()).id;
      };
      const elsewhere = { project_id: other.id, platform_id: other.platform_id };
      const copies = {
        deleted: await copy(templates.deleted, x),
        renamed: await copy(templates.renamed, x),
        current: await copy(templates.current, x),
        older: await copy(templates.older, y),
        newer: await copy(templates.newer, y),
        elsewhere: await copy(templates.newer, y, elsewhere),
        gone: await copy(templates.older, y, { ...elsewhere, deleted_at }),
      };

      await runMigration(UniqueCopyIdentifiers, db);
      const found = await db.selectFrom('cards').select(['id', 'unique_identifier']).execute();
      const identifiers = new Map(found.map(({ id, unique_identifier }) => [id, unique_identifier]));
      return Object.fromEntries(Object.entries(copies).map(([name, id]) => [name, identifiers.get(id)]));
    });

    const others = { renamed: z, current: x, older: y, elsewhere: y, gone: y };
    expect(after).toEqual({ deleted: GENERATED, newer: GENERATED, ...others });
    expect(new Set(Object.values(after)).size).toBe(5);
  });
});

describe('the tables', () => {
  it('match the entities, except for the tenant foreign keys, the triggers and the search index', async () => {
    const { orm } = await testDatabase();

    expect(await schemaDifference(await orm())).toEqual([]);
  });

  it('refuse a card that refers to an unknown row or to another project, and a master card in a regular group', async () => {
    const [project, other] = [await givenProject(), await givenProject()];
    const card = await givenCard(project);
    const { card: master, group: masterGroup } = await givenMasterBoard();
    const board = await givenBoard(project);

    for (const [id, column, value] of [
      [card, 'group_id', await givenGroup(other, await givenBoard(other))],
      [card, 'tag_id', await givenTag(other)],
      [card, 'owner_id', (await givenUser({ project: other })).id],
      [card, 'platform_id', other.platform_id],
      [card, 'master_card_id', UNKNOWN],
      [card, 'created_by', UNKNOWN],
      [card, 'group_id', UNKNOWN],
      [master, 'group_id', UNKNOWN],
      [master, 'group_id', await givenGroup(project, board)],
    ] as const)
      expect(await attempt(sql`update cards set ${sql.ref(column)} = ${value} where id = ${id}`), column).toBe(
        FOREIGN_KEY,
      );
    for (const value of [UNKNOWN, board])
      expect(await attempt(sql`update groups set board_id = ${value} where id = ${masterGroup}`)).toBe(FOREIGN_KEY);
  });

  it('refuse to insert several cards if one refers to an unknown row or to another project', async () => {
    const [project, other] = [await givenProject(), await givenProject()];
    const { card: master_card_id } = await givenMasterBoard();
    const valid = {
      project_id: project.id,
      platform_id: project.platform_id,
      group_id: await givenGroup(project, await givenBoard(project)),
      master_card_id,
      created_by: (await givenUser({ project })).id,
    };
    const insert = (change: object) =>
      attempt(sql`
        insert into cards (project_id, platform_id, group_id, master_card_id, created_by, title)
        select *, 'x' from jsonb_to_recordset(${JSON.stringify([
          { ...valid, master_card_id: null },
          { ...valid, ...change },
        ])}::jsonb)
          as card (project_id int, platform_id int, group_id int, master_card_id int, created_by int)`);

    for (const change of [
      { group_id: UNKNOWN },
      { group_id: await givenGroup(other, await givenBoard(other)) },
      { platform_id: other.platform_id },
      { project_id: UNKNOWN, group_id: null },
      { master_card_id: UNKNOWN },
      { created_by: UNKNOWN },
    ])
      expect(await insert(change), JSON.stringify(change)).toBe(FOREIGN_KEY);
    expect(await insert({})).toBe('accepted');
  });

  it('refuse to delete a row that a card refers to, or to change its key', async () => {
    const project = await givenProject();
    const { id: created_by } = await givenUser();
    const group_id = await givenGroup(project, await givenBoard(project));
    const { card: master_card_id } = await givenMasterBoard();
    const card = await givenCard(project, { created_by, group_id, master_card_id });
    const outside = await givenProject();
    const loose = await givenCard(outside);

    const referred = Object.entries({
      cards: master_card_id,
      groups: group_id,
      users: created_by,
      projects: outside.id,
    });
    for (const [table, id] of referred) {
      expect(await attempt(sql`delete from ${sql.table(table)} where id = ${id}`)).toBe(FOREIGN_KEY);
      expect(await attempt(sql`update ${sql.table(table)} set id = ${UNKNOWN} where id = ${id}`)).toBe(FOREIGN_KEY);
    }
    expect(await attempt(sql`update projects set platform_id = ${project.platform_id} where id = ${outside.id}`)).toBe(
      FOREIGN_KEY,
    );
    expect(await attempt(sql`truncate groups, template_runs, template_outcomes`)).toBe(FEATURE_NOT_SUPPORTED);
    await query(await testDb(), sql`delete from cards where id = any(${[card, loose]}::int[])`);
    for (const [table, id] of referred)
      expect(await attempt(sql`delete from ${sql.table(table)} where id = ${id}`)).toBe('accepted');
  });

  it('let a repeatable read transaction delete a group, unless a card is in it', async () => {
    const project = await givenProject();
    const [empty, used] = [
      await givenGroup(project, await givenBoard(project)),
      await givenGroup(project, await givenBoard(project)),
    ];
    await givenCard(project, { group_id: used });

    const remove = async (group: number) =>
      transact(await testDb(), async (db) => {
        await query(db, sql`set transaction isolation level repeatable read`);
        await query(db, sql`delete from groups where id = ${group}`);
      });

    await remove(empty);
    await expect(remove(used)).rejects.toMatchObject({ code: FOREIGN_KEY });
  });

  it('refuse an orphan although a temporary table of the session has the name and a row of its parent', async () => {
    const { id, platform_id } = await givenProject();

    const insertion = transact(await testDb(), async (db) => {
      for (const table of ['groups', 'cards', 'projects', 'users', 'boards'])
        await query(
          db,
          sql`create temporary table ${sql.table(table)} on commit drop as select ${UNKNOWN}::int as id, ${id}::int as project_id, true as is_master`,
        );
      await query(
        db,
        sql`insert into public.cards (project_id, platform_id, group_id, title) values (${id}, ${platform_id}, ${UNKNOWN}, 'x')`,
      );
    });

    await expect(insertion).rejects.toMatchObject({ code: FOREIGN_KEY });
  });

  it('refuse an orphan although the owner has disabled all triggers that an owner may disable', async () => {
    const { id, platform_id } = await givenProject();
    const { card: master, group } = await givenMasterBoard();

    for (const statement of [
      sql`insert into cards (project_id, platform_id, group_id, title) values (${id}, ${platform_id}, ${UNKNOWN}, 'x')`,
      sql`insert into cards (is_master, group_id, template_group_id, title) values (true, ${UNKNOWN}, ${UNKNOWN}, 'x')`,
      sql`update cards set group_id = ${UNKNOWN} where id = ${master}`,
      sql`update groups set board_id = ${UNKNOWN} where id = ${group}`,
      sql`delete from groups where id = ${group}`,
    ]) {
      const work = transact(await testDb(), async (db) => {
        for (const table of ['cards', 'groups', 'boards', 'projects', 'users'])
          await query(db, sql`alter table ${sql.table(table)} disable trigger user`);
        await query(db, statement);
      });

      await expect(work).rejects.toMatchObject({ code: expect.stringMatching(/^(23503|23514)$/) });
    }
  });

  it('hold every reference of every table with a valid foreign key', async () => {
    const { orm } = await testDatabase();
    const keys = await query(
      await testDb(),
      sql<{ table: string; columns: string[]; isValid: boolean }>`
      select conrelid::regclass::text as table, convalidated as "isValid", array(
        select attname::text from pg_attribute where attrelid = conrelid and attnum = any(conkey)) as columns
      from pg_constraint where contype = 'f' and connamespace = current_schema()::regnamespace`,
    );
    const held = new Set(keys.flatMap(({ table, columns }) => columns.map((column) => `${table}.${column}`)));
    const references = [...(await orm()).getMetadata().getAll().values()].flatMap(({ tableName, props }) =>
      props
        .filter(({ kind, name }) => kind === ReferenceKind.MANY_TO_ONE || /_(id|by)$/.test(name))
        .map(({ name }) => `${tableName}.${name}`),
    );
    // What happened stays known after its rows are removed. A deletion is a number that the rows share which it deleted.
    const lasting =
      /^(events|audit_entries|deletions)\.|^webhook_deliveries\.event_id$|\.deletion_id$|^webhooks\.key_id$|^template_runs\.(release|aborted_rollout)_id$|^rollout_(targets\.previous_release|changes\.copy)_id$/;

    expect(keys.filter(({ isValid }) => !isValid)).toEqual([]);
    expect(references.filter((reference) => !held.has(reference) && !lasting.test(reference))).toEqual([
      // A master board or a master group, by the kind of the row; a release stays as it was after that one is removed.
      'release_rows.parent_id',
      // Ids of the payment provider.
      'checkouts.session_id',
      'checkouts.provider_subscription_id',
      // Contents and releases that are in use are never removed, and a key would slow down a sync.
      'cards.base_id',
      'boards.rolled_out_id',
    ]);
  });

  it('have the composite foreign keys of tenantKeys.ts', async () => {
    const found = await query(
      await testDb(),
      sql<{ name: string; definition: string }>`
      select conname as name, pg_get_constraintdef(oid) as definition from pg_constraint
      where contype = 'f' and cardinality(conkey) > 1 and connamespace = current_schema()::regnamespace order by conname`,
    );

    const expected = Object.entries(TENANT_KEYS).map(([name, { columns, target, key, onDelete }]) => ({
      name,
      definition: `FOREIGN KEY (${columns.join(', ')}) REFERENCES ${target}(${key.join(', ')})${onDelete ? ` ON DELETE ${onDelete}` : ''}`,
    }));
    expect(found).toEqual(expected.toSorted((one, other) => (one.name < other.name ? -1 : 1)));
  });

  it('have trigger functions with a fixed search path, or with qualified names', async () => {
    const functions = await query(
      await testDb(),
      sql<{ name: string; settings: string[] | null }>`
      select proname as name, proconfig as settings from pg_proc
      where prorettype = 'trigger'::regtype and pronamespace = current_schema()::regnamespace order by proname`,
    );

    const settings = ['search_path=pg_catalog, pg_temp'];
    expect(functions).toEqual([
      { name: 'boards_raise_version', settings: null },
      { name: 'cards_fill_template_group_id', settings },
      { name: 'cards_raise_version', settings: null },
      { name: 'comments_fill_thread', settings },
      { name: 'comments_raise_version', settings: null },
      { name: 'groups_fill_template_board_id', settings },
      { name: 'groups_raise_version', settings: null },
      { name: 'tags_raise_version', settings: null },
    ]);
  });

  it('raise the version with each column, except for those that callers do not see', async () => {
    const tables = ['boards', 'groups', 'cards', 'comments', 'tags'];
    const functions = await query(
      await testDb(),
      sql<{ table: string; text: string }>`
        select tgrelid::regclass::text as table, prosrc as text
        from pg_trigger t join pg_proc on pg_proc.oid = tgfoid join pg_class on pg_class.oid = tgrelid
        where tgname like '%raise_version' and relnamespace = current_schema()::regnamespace`,
    );

    const unseen = functions.flatMap(({ table, text }) =>
      [...text.matchAll(/before\.(\w+) :=/g)].map(([, column]) => `${table}.${column}`),
    );
    expect(functions.map(({ table }) => table).sort()).toEqual(tables.toSorted());
    expect(unseen.sort()).toEqual(
      [
        ...tables.flatMap((table) => ['updated_at', 'deletion_id', 'version'].map((column) => `${table}.${column}`)),
        ...['boards.brought', 'boards.rolled_out_id', 'boards.template_key', 'cards.base_id', 'cards.base_values'],
        ...['cards.template_group_id', 'groups.brought', 'groups.is_clearing', 'groups.template_board_id'],
        'groups.template_key',
      ].sort(),
    );
  });

  it.skipIf(!databaseUrl)('refuse to delete a group while a card is inserted into it, and the reverse', async () => {
    const project = await givenProject();
    const [first, second] = [
      await givenGroup(project, await givenBoard(project)),
      await givenGroup(project, await givenBoard(project)),
    ];
    const insert = (group: number) =>
      sql`insert into cards (project_id, platform_id, group_id, title) values (${project.id}, ${project.platform_id}, ${group}, 'x')`;
    const remove = (group: number) => sql`delete from groups where id = ${group}`;
    expect(await waitingFor([insert(first)], () => attempt(remove(first)))).toBe(FOREIGN_KEY);
    expect(await waitingFor([remove(second)], () => attempt(insert(second)))).toBe(FOREIGN_KEY);
  });

  it('refuse a second copy of a master card in a project, even if the first is deleted, and one with its identifier', async () => {
    const { id, platform_id } = await givenProject();
    const [first, second] = [await givenMasterBoard(), await givenMasterBoard()];
    const identifier = randomUUID();
    const copy = (master: number) =>
      attempt(sql`
        insert into cards (project_id, platform_id, title, master_card_id, unique_identifier)
        values (${id}, ${platform_id}, 'x', ${master}, ${identifier})`);

    expect([await copy(first.card), await copy(second.card)]).toEqual(['accepted', UNIQUE]);
    await query(await testDb(), sql`update cards set deleted_at = now() where master_card_id = ${first.card}`);
    expect([await copy(first.card), await copy(second.card)]).toEqual([UNIQUE, 'accepted']);
  });

  it('refuse a master card with a project, a regular card without one, and a published version without approval', async () => {
    const { id, platform_id } = await givenProject();
    const theme = sql`with theme as (insert into themes (platform_id, name) values (${platform_id}, 'x') returning id)`;

    for (const statement of [
      sql`insert into cards (project_id, platform_id, title, is_master) values (${id}, ${platform_id}, 'x', true)`,
      sql`insert into cards (title) values ('x')`,
      sql`${theme} insert into theme_versions (theme_id, version, theme_status) select id, '1', 'published' from theme`,
    ])
      expect(await attempt(statement)).toBe(CHECK);
  });

  it('refuse two users with the same e-mail address, ignoring case', async () => {
    const { email } = await givenUser();

    const second = sql`insert into users (name, email, password_hash) values ('x', ${email.toUpperCase()}, 'x')`;
    expect(await attempt(second)).toBe(UNIQUE);
  });

  it('refuse a trial with a plan, and any other subscription without one', async () => {
    const { id } = await givenTrial(await givenProject());
    const change = (status: string, plan: RawBuilder<unknown>, paidAt: RawBuilder<unknown>) =>
      attempt(
        sql`update subscriptions set status = ${status}, plan_id = ${plan}, paid_at = ${paidAt} where id = ${id}`,
      );
    const [none, plan, now] = [sql`null`, sql`(select min(id) from plans)`, sql`now()`];

    expect(await change('trial', plan, now)).toBe(CHECK);
    expect(await change('free', plan, now)).toBe(CHECK);
    expect(await change('free', none, none)).toBe(CHECK);
    expect(await change('free', plan, none)).toBe('accepted');
    for (const status of ['paid', 'past_due', 'ended']) {
      expect(await change(status, none, now)).toBe(CHECK);
      expect(await change(status, plan, none)).toBe(CHECK);
      expect(await change(status, plan, now)).toBe('accepted');
    }
    expect(await change('gone', plan, now)).toBe(CHECK);
  });

  it('clear the owner of cards when a member is removed', async () => {
    const project = await givenProject();
    const user = await givenUser({ project });
    const card = await givenCard(project, { owner_id: user.id });

    await query(await testDb(), sql`delete from members where user_id = ${user.id}`);

    expect(await stored('cards', card)).toMatchObject({ owner_id: null, project_id: project.id });
  });
});
