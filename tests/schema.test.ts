import { randomUUID } from 'node:crypto';
import { type RawBuilder, sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { Migration20261115100300_clean_descriptions as CleanDescriptions } from '../server/database/migrations/Migration20261115100300_clean_descriptions.ts';
import { Migration20261115182126_unique_master_identifiers as UniqueIdentifiers } from '../server/database/migrations/Migration20261115182126_unique_master_identifiers.ts';
import { Migration20261116030943_keep_default_projects as KeepDefaultProjects } from '../server/database/migrations/Migration20261116030943_keep_default_projects.ts';
import { Migration20261116050000_free_subscriptions as FreeSubscriptions } from '../server/database/migrations/Migration20261116050000_free_subscriptions.ts';
import { Migration20261116100000_unique_copy_identifiers as UniqueCopyIdentifiers } from '../server/database/migrations/Migration20261116100000_unique_copy_identifiers.ts';
import { query, transact } from '../server/database/query.ts';
import { schemaDifference } from '../server/database/schemaDifference.ts';
import { waitingFor } from './harness/lock.ts';
import { databaseUrl, testDatabase } from './harness/service.ts';
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
} from './harness/world.ts';

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

describe('the migration that cleans descriptions', () => {
  it('sanitises old descriptions of copies, and escapes those that nest too deeply; those of regular cards stay', async () => {
    const { orm } = await testDatabase();
    const project = await givenProject();
    const given = async (description: string) =>
      givenCard(project, { description, master_card_id: (await givenMasterBoard()).card });
    const [plain, harmful, empty, deep, regular] = [
      await given('plain'),
      await given('<p onclick="x()">a & b</p>'),
      await given('<script>x</script>'),
      await given('<b>'.repeat(101)),
      await givenCard(project, { description: 'vector<int>' }),
    ];

    await new CleanDescriptions(orm.em.getDriver() as never, orm.config).up();

    const after = async (id: number) => (await stored('cards', id)).description;
    expect(await after(plain)).toBe('plain');
    expect(await after(harmful)).toBe('<p>a &amp; b</p>');
    expect(await after(empty)).toBeNull();
    expect(await after(deep)).toBe('&lt;b&gt;'.repeat(101));
    expect(await after(regular)).toBe('vector<int>');
  });
});

describe('the migration that keeps default projects', () => {
  it('stores the lowest active project of users without a default, and leaves the others', async () => {
    const { orm } = await testDatabase();
    const [inactive, low, high] = [
      await givenProject({ is_active: false }),
      await givenProject(),
      await givenProject(),
    ];
    const chosen = await givenUser({ default_project_id: high.id });
    const [several, none] = [await givenUser(), await givenUser()];
    for (const user of [chosen, several])
      for (const project of [high, inactive, low]) await givenMember(user, project, 'member');

    const migration = new KeepDefaultProjects(orm.em.getDriver() as never, orm.config);
    migration.up();
    for (const statement of migration.getQueries()) await query(await testDb(), sql.raw(String(statement)));

    const after = async ({ id }: { id: number }) => (await stored('users', id)).default_project_id;
    expect([await after(chosen), await after(several), await after(none)]).toEqual([high.id, low.id, null]);
  });
});

describe('the migration of free subscriptions', () => {
  it('makes those free that were stored as paid with a free plan, and leaves the others', async () => {
    const { orm } = await testDatabase();
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
    const subscriptions = { free: await given(0), paid: await given(1900), both: await given(0, 1900) };

    const migration = new FreeSubscriptions(orm.em.getDriver() as never, orm.config);
    migration.up();
    for (const statement of migration.getQueries()) await query(db, sql.raw(String(statement)));

    const after = async (id: number) => (await stored('subscriptions', id)).status;
    expect(await after(subscriptions.free)).toBe('free');
    expect([await after(subscriptions.paid), await after(subscriptions.both)]).toEqual(['paid', 'paid']);
  });
});

describe('the migration that makes identifiers of master cards unique', () => {
  it('appends the id to all but the oldest, within 100 characters', async () => {
    const { orm } = await testDatabase();
    const db = await testDb();
    await query(db, sql`drop index cards_master_identifier`);
    const given = async (unique_identifier: string, more: object = {}) =>
      (await givenMasterBoard({ card: { unique_identifier, ...more } })).card;
    const [short, long] = [randomUUID(), 'x'.repeat(100)];
    const deleted = await given(short, { deleted_at: new Date() });
    const oldest = await given(short);
    const second = await given(short);
    const taken = await given(`${short}-${second}`);
    const longest = [await given(long), await given(long)] as const;

    const migration = new UniqueIdentifiers(orm.em.getDriver() as never, orm.config);
    await migration.up();
    for (const statement of migration.getQueries()) await query(db, sql.raw(String(statement)));

    const after = async (id: number) => (await stored('cards', id)).unique_identifier;
    expect(await after(deleted)).toBe(short);
    expect(await after(oldest)).toBe(short);
    expect(await after(second)).toBe(`${short}-${second}`);
    expect(await after(taken)).toMatch(/^[0-9a-f-]{36}$/);
    expect(await after(longest[0])).toBe(long);
    expect(await after(longest[1])).toBe(`${long.slice(0, 99 - String(longest[1]).length)}-${longest[1]}`);
  });
});

describe('the migration that makes identifiers of copies unique', () => {
  it('gives copies that of their template; of equal ones, the copy of a live template keeps it, else the oldest', async () => {
    const { orm } = await testDatabase();
    const db = await testDb();
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
    const after = await transact(db, async (db) => {
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

      const migration = new UniqueCopyIdentifiers(orm.em.getDriver() as never, orm.config);
      migration.up();
      for (const statement of migration.getQueries()) await query(db, sql.raw(String(statement)));
      const found = await db.selectFrom('cards').select(['id', 'unique_identifier']).execute();
      const identifiers = new Map(found.map(({ id, unique_identifier }) => [id, unique_identifier]));
      return Object.fromEntries(Object.entries(copies).map(([name, id]) => [name, identifiers.get(id)]));
    });

    const generated = expect.stringMatching(/^[0-9a-f-]{36}$/);
    expect(after).toEqual({
      deleted: generated,
      renamed: z,
      current: x,
      older: y,
      newer: generated,
      elsewhere: y,
      gone: y,
    });
    expect(new Set(Object.values(after)).size).toBe(5);
  });
});

describe('the tables', () => {
  it('match the entities, except for the tenant foreign keys, the triggers and the search index', async () => {
    const { orm } = await testDatabase();

    expect(await schemaDifference(orm)).toEqual([]);
  });

  it('refuse a card in a group, with a tag or an owner of another project', async () => {
    const [project, other] = [await givenProject(), await givenProject()];
    const card = await givenCard(project);
    const change = (column: string, id: number) =>
      attempt(sql`update cards set ${sql.ref(column)} = ${id} where id = ${card}`);

    expect(await change('group_id', await givenGroup(other, await givenBoard(other)))).toBe(FOREIGN_KEY);
    expect(await change('tag_id', await givenTag(other))).toBe(FOREIGN_KEY);
    expect(await change('owner_id', (await givenUser({ project: other })).id)).toBe(FOREIGN_KEY);
    expect(await change('platform_id', other.platform_id)).toBe(FOREIGN_KEY);
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

    expect(await insert({ group_id: UNKNOWN })).toBe(FOREIGN_KEY);
    expect(await insert({ group_id: await givenGroup(other, await givenBoard(other)) })).toBe(FOREIGN_KEY);
    expect(await insert({ platform_id: other.platform_id })).toBe(FOREIGN_KEY);
    expect(await insert({ project_id: UNKNOWN, group_id: null })).toBe(FOREIGN_KEY);
    expect(await insert({ master_card_id: UNKNOWN })).toBe(FOREIGN_KEY);
    expect(await insert({ created_by: UNKNOWN })).toBe(FOREIGN_KEY);
    expect(await insert({})).toBe('accepted');
  });

  it('refuse a card with an unknown template, creator or group, and a master card in a regular group', async () => {
    const project = await givenProject();
    const card = await givenCard(project);
    const { card: master } = await givenMasterBoard();
    const change = (id: number, column: string, value: number) =>
      attempt(sql`update cards set ${sql.ref(column)} = ${value} where id = ${id}`);

    expect(await change(card, 'master_card_id', UNKNOWN)).toBe(FOREIGN_KEY);
    expect(await change(card, 'created_by', UNKNOWN)).toBe(FOREIGN_KEY);
    expect(await change(card, 'group_id', UNKNOWN)).toBe(FOREIGN_KEY);
    expect(await change(master, 'group_id', UNKNOWN)).toBe(FOREIGN_KEY);
    expect(await change(master, 'group_id', await givenGroup(project, await givenBoard(project)))).toBe(FOREIGN_KEY);
  });

  it('refuse to delete a row that a card refers to, or to change its key', async () => {
    const project = await givenProject();
    const { id: created_by } = await givenUser();
    const group_id = await givenGroup(project, await givenBoard(project));
    const { card: master_card_id } = await givenMasterBoard();
    const card = await givenCard(project, { created_by, group_id, master_card_id });
    const outside = await givenProject();
    const loose = await givenCard(outside);

    for (const [table, id] of Object.entries({
      cards: master_card_id,
      groups: group_id,
      users: created_by,
      projects: outside.id,
    })) {
      expect(await attempt(sql`delete from ${sql.table(table)} where id = ${id}`)).toBe(FOREIGN_KEY);
      expect(await attempt(sql`update ${sql.table(table)} set id = ${UNKNOWN} where id = ${id}`)).toBe(FOREIGN_KEY);
    }
    expect(await attempt(sql`update projects set platform_id = ${project.platform_id} where id = ${outside.id}`)).toBe(
      FOREIGN_KEY,
    );
    expect(await attempt(sql`truncate groups, template_runs, template_outcomes`)).toBe(FOREIGN_KEY);
    await query(await testDb(), sql`delete from cards where id = any(${[card, loose]}::int[])`);
    for (const [table, id] of Object.entries({
      cards: master_card_id,
      groups: group_id,
      users: created_by,
      projects: outside.id,
    })) {
      expect(await attempt(sql`delete from ${sql.table(table)} where id = ${id}`)).toBe('accepted');
    }
  });

  it('refuse to delete a group under repeatable read, whose snapshot may miss cards', async () => {
    const project = await givenProject();
    const group = await givenGroup(project, await givenBoard(project));

    const removal = transact(await testDb(), async (db) => {
      await query(db, sql`set transaction isolation level repeatable read`);
      await query(db, sql`delete from groups where id = ${group}`);
    });

    await expect(removal).rejects.toMatchObject({ code: '0A000' });
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

  it('refuse a second copy of a master card in a project, even if the first is deleted', async () => {
    const project = await givenProject();
    const { card: master_card_id } = await givenMasterBoard();
    await givenCard(project, { master_card_id, deleted_at: new Date() });

    const second = sql`insert into cards (project_id, platform_id, title, master_card_id) values (${project.id}, ${project.platform_id}, 'x', ${master_card_id})`;
    expect(await attempt(second)).toBe(UNIQUE);
  });

  it('refuse a second live copy with the same identifier in a project', async () => {
    const project = await givenProject();
    const [first, second] = [await givenMasterBoard(), await givenMasterBoard()];
    const unique_identifier = randomUUID();
    const copy = (master: number) => sql`
      insert into cards (project_id, platform_id, title, master_card_id, unique_identifier)
      values (${project.id}, ${project.platform_id}, 'x', ${master}, ${unique_identifier})`;
    await query(await testDb(), copy(first.card));

    expect(await attempt(copy(second.card))).toBe(UNIQUE);
    await query(await testDb(), sql`update cards set deleted_at = now() where master_card_id = ${first.card}`);
    expect(await attempt(copy(second.card))).toBe('accepted');
  });

  it('refuse a master card with a project, and a regular card without one', async () => {
    const { id, platform_id } = await givenProject();

    expect(
      await attempt(
        sql`insert into cards (project_id, platform_id, title, is_master) values (${id}, ${platform_id}, 'x', true)`,
      ),
    ).toBe(CHECK);
    expect(await attempt(sql`insert into cards (title) values ('x')`)).toBe(CHECK);
  });

  it('refuse two users with the same e-mail address, ignoring case', async () => {
    const { email } = await givenUser();

    expect(
      await attempt(sql`insert into users (name, email, password_hash) values ('x', ${email.toUpperCase()}, 'x')`),
    ).toBe(UNIQUE);
  });

  it('refuse a published version without approval', async () => {
    const { platform_id } = await givenProject();
    const theme = sql`with theme as (insert into themes (platform_id, name) values (${platform_id}, 'x') returning id)`;

    expect(
      await attempt(
        sql`${theme} insert into theme_versions (theme_id, version, theme_status) select id, '1', 'published' from theme`,
      ),
    ).toBe(CHECK);
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
