import { type RawBuilder, sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { migrate } from '../../server/database/migrate.ts';
import { query, transact } from '../../server/database/query.ts';
import { verifyDatabase } from '../../server/database/verify.ts';
import { testDatabase, withOwnDatabase } from '../harness/service.ts';
import {
  givenBoard,
  givenCard,
  givenComment,
  givenGroup,
  givenMasterBoard,
  givenProject,
  givenTag,
  givenThemeVersion,
  givenUser,
  insert,
  testDb,
} from '../harness/world.ts';

/** An id that no row has. */
const UNKNOWN = 2_000_000_000;

/** Runs a statement without foreign keys and triggers, as a restore with disabled triggers can; takes a superuser. */
async function runUnchecked(statement: RawBuilder<unknown>): Promise<void> {
  await transact(await testDb(), async (db) => {
    await query(db, sql`set local session_replication_role = replica`);
    await query(db, statement);
  });
}

function plant(table: string, id: number, change: object): Promise<void> {
  const values = Object.entries(change).map(([column, value]) => sql`${sql.ref(column)} = ${value}`);
  return runUnchecked(sql`update ${sql.table(table)} set ${sql.join(values)} where id = ${id}`);
}

const byProblem = (one: { problem: string }, other: { problem: string }) => (one.problem < other.problem ? -1 : 1);

async function givenRows() {
  const [project, other] = [await givenProject(), await givenProject()];
  const user = await givenUser({ project });
  const board = await givenBoard(project);
  const group = await givenGroup(project, board);
  const card = await givenCard(project, { group_id: group, tag_id: await givenTag(project), owner_id: user.id });
  const root = await givenComment(project, card, user);
  const reply = await givenComment(project, card, user, {
    parent_comment_id: root,
    root_comment_id: root,
    depth: 1,
  });
  return { project, other, user, board, group, card, reply, master: await givenMasterBoard() };
}

type Rows = Awaited<ReturnType<typeof givenRows>>;

/** The table and row, the change, and the problem that is found. */
const FAULTS: [string, (rows: Rows) => [string, number, object] | Promise<[string, number, object]>][] = [
  ['cards.group_id refers to groups that do not exist', ({ card }) => ['cards', card, { group_id: UNKNOWN }]],
  ['cards.created_by refers to users that do not exist', ({ card }) => ['cards', card, { created_by: UNKNOWN }]],
  [
    'cards.master_card_id refers to cards that do not exist',
    ({ card }) => ['cards', card, { master_card_id: UNKNOWN }],
  ],
  [
    'cards.master_card_id refers to cards that are no templates',
    async ({ card, project }) => ['cards', card, { master_card_id: await givenCard(project) }],
  ],
  [
    'cards.group_id, project_id: the group is of another project (cards_same_tenant_group)',
    async ({ card, other }) => ['cards', card, { group_id: await givenGroup(other, await givenBoard(other)) }],
  ],
  [
    'cards.project_id, platform_id: the project is of another platform (cards_same_tenant_platform)',
    ({ card, other }) => ['cards', card, { platform_id: other.platform_id }],
  ],
  [
    'cards.tag_id, project_id: the tag is of another project (cards_same_tenant_tag)',
    async ({ card, other }) => ['cards', card, { tag_id: await givenTag(other) }],
  ],
  [
    'cards.project_id, owner_id: the owner is no member of the project (cards_same_tenant_owner)',
    async ({ card }) => ['cards', card, { owner_id: (await givenUser()).id }],
  ],
  [
    'cards.template_group_id, is_master: the group of a master card is no master group (cards_same_tenant_template)',
    ({ master, group }) => ['cards', master.card, { group_id: group, template_group_id: group }],
  ],
  [
    'groups.template_board_id, is_master: the board of a master group is no master board (groups_same_tenant_template)',
    ({ master, board }) => ['groups', master.group, { board_id: board, template_board_id: board }],
  ],
  [
    'groups.board_id, project_id: the board is of another project (groups_same_tenant_board)',
    async ({ group, other }) => ['groups', group, { board_id: await givenBoard(other) }],
  ],
  [
    'cards.position is at the end of its range, so that no row fits before or behind it',
    ({ card }) => ['cards', card, { position: 2_147_483_647 }],
  ],
  [
    'cards.sort_order is at the end of its range, so that no row fits before or behind it',
    ({ card }) => ['cards', card, { sort_order: -2_147_483_648 }],
  ],
  [
    'comments.card_id, project_id: the card is of another project (comments_same_tenant_card)',
    async ({ project, other, card, user }) => [
      'comments',
      await givenComment(project, card, user),
      { card_id: await givenCard(other) },
    ],
  ],
  ['comments.user_id refers to users that do not exist', ({ reply }) => ['comments', reply, { user_id: UNKNOWN }]],
  [
    'comments.root_comment_id and depth do not follow from the parent',
    ({ reply }) => ['comments', reply, { depth: 5 }],
  ],
  [
    'theme_versions.replacement_version_id refers to a version of another theme',
    async ({ project }) => [
      'theme_versions',
      await givenThemeVersion(project),
      { replacement_version_id: await givenThemeVersion(project) },
    ],
  ],
];

describe('the verification of a database', () => {
  withOwnDatabase();

  it('finds nothing in rows that were written with all constraints', async () => {
    await givenRows();

    const { faults, pending, tables, rows } = await verifyDatabase(await testDatabase(), { rowsPerBatch: 3 });

    expect({ faults, pending }).toEqual({ faults: [], pending: [] });
    expect(tables).toBeGreaterThan(20);
    expect(rows).toBeGreaterThan(10);
  });

  it('finds each kind of fault, with the id of its row, and nothing more once it is repaired', async () => {
    const planted: { problem: string; table: string; id: number; before: object }[] = [];
    for (const [problem, faultOf] of FAULTS) {
      const [table, id, change] = await faultOf(await givenRows());
      const columns = Object.keys(change).map((column) => sql.ref(column));
      const [before] = await query(
        await testDb(),
        sql<object>`select ${sql.join(columns)} from ${sql.table(table)} where id = ${id}`,
      );
      await plant(table, id, change);
      planted.push({ problem, table, id, before: before! });
    }

    const { faults } = await verifyDatabase(await testDatabase(), { rowsPerBatch: 7 });
    for (const { table, id, before } of planted) await plant(table, id, before);
    const repaired = await verifyDatabase(await testDatabase());

    const found = faults.map(({ problem, rows, ids }) => ({ problem, rows, ids }));
    const expected = planted.map(({ problem, id }) => ({ problem, rows: 1, ids: [String(id)] }));
    expect(found.toSorted(byProblem)).toEqual(expected.toSorted(byProblem));
    expect(repaired.faults).toEqual([]);
  });

  it('finds rows of tables without an id, by the columns of their primary key', async () => {
    const project = await givenProject();
    const user = await givenUser({ project });
    const card = await givenCard(project);
    await query(await testDb(), sql`insert into tour_dismissals (user_id, card_id) values (${user.id}, ${card})`);

    await runUnchecked(sql`delete from cards where id = ${card}`);
    const { faults } = await verifyDatabase(await testDatabase());
    await runUnchecked(sql`delete from tour_dismissals where card_id = ${card}`);

    expect(faults).toEqual([
      {
        problem: 'tour_dismissals.card_id refers to cards that do not exist',
        rows: 1,
        ids: [`${user.id}/${card}`],
        whatToDo: expect.stringContaining('backup'),
      },
    ]);
  });

  it('counts all rows of a fault, and names the first five', async () => {
    const project = await givenProject();
    const cards = await Promise.all(Array.from({ length: 12 }, () => givenCard(project)));
    for (const card of cards) await plant('cards', card, { created_by: UNKNOWN });

    const { faults } = await verifyDatabase(await testDatabase(), { rowsPerBatch: 5 });
    for (const card of cards) await plant('cards', card, { created_by: null });

    const ids = cards.toSorted((one, other) => one - other).slice(0, 5);
    expect(faults).toMatchObject([{ rows: 12, ids: ids.map(String) }]);
  });

  it('finds a counter that is behind the ids of its table', async () => {
    const db = await testDb();
    const last = await insert('platforms', { name: 'x' });
    await query(db, sql`select setval('platforms_id_seq', ${last - 1})`);

    const { faults } = await verifyDatabase(await testDatabase());
    await query(db, sql`select setval('platforms_id_seq', ${last})`);

    expect(faults).toMatchObject([
      {
        problem: expect.stringMatching(/^platforms\.id: the next new row/),
        whatToDo: expect.stringContaining('setval'),
      },
    ]);
  });

  it('finds constraints that are missing or not validated, and rows that one would refuse', async () => {
    const db = await testDb();
    const card = await givenCard(await givenProject());
    const run = async (...statements: string[]) => {
      for (const statement of statements) await query(db, sql.raw(statement));
    };
    const check = `add constraint cards_priority_check check (priority in ('low', 'normal', 'high', 'urgent'))`;

    await run(
      'alter table cards drop constraint cards_same_tenant_group, drop constraint cards_priority_check',
      `update cards set priority = 'none' where id = ${card}`,
      `alter table cards ${check} not valid`,
    );
    const { faults } = await verifyDatabase(await testDatabase());
    await run(
      'alter table cards drop constraint cards_priority_check',
      `update cards set priority = 'low' where id = ${card}`,
      `alter table cards ${check}`,
      ...faults.flatMap(({ whatToDo }) => /^Run: (.*)/.exec(whatToDo)?.[1] ?? []),
    );

    expect(faults).toMatchObject([
      { problem: expect.stringMatching(/^cards violates cards_priority_check/), rows: 1, ids: [String(card)] },
      { problem: 'The foreign key cards_same_tenant_group is missing' },
      { problem: 'The constraint cards_priority_check is not validated' },
    ]);
    expect((await verifyDatabase(await testDatabase())).faults).toEqual([]);
  });

  it('finds triggers of versions that are missing or disabled', async () => {
    const database = await testDatabase();
    await query(database.db, sql`alter table boards enable replica trigger boards_raise_version`);
    await query(database.db, sql`alter table cards disable trigger cards_raise_version`);
    await query(database.db, sql`drop function tags_raise_version cascade`);

    const { faults } = await verifyDatabase(database);
    for (const { whatToDo } of faults)
      for (const statement of /^Run: (.*;)/.exec(whatToDo)![1]!.split('; '))
        await query(database.db, sql.raw(statement));
    await migrate(database);

    expect(faults).toMatchObject([
      { problem: 'The trigger boards_raise_version is disabled: versions of boards do not rise' },
      { problem: 'The trigger cards_raise_version is disabled: versions of cards do not rise' },
      { problem: 'The trigger tags_raise_version is missing: versions of tags do not rise' },
    ]);
    expect((await verifyDatabase(database)).faults).toEqual([]);
  });

  it('leaves out what pending migrations have yet to add', async () => {
    const db = await testDb();
    const name = 'Migration20261116101200_validate_cards_foreign_keys';
    await query(db, sql`delete from mikro_orm_migrations where name = ${name}`);
    await query(db, sql`drop index cards_tour_index`);

    const { pending, faults } = await verifyDatabase(await testDatabase());
    await query(db, sql`insert into mikro_orm_migrations (name) values (${name})`);
    const { faults: later } = await verifyDatabase(await testDatabase());
    for (const { whatToDo } of later) await query(db, sql.raw(whatToDo.replace('Run: ', '')));

    expect({ pending, faults }).toEqual({ pending: [name], faults: [] });
    expect(later).toMatchObject([{ whatToDo: expect.stringMatching(/^Run: create index "cards_tour_index"/) }]);
  });
});
