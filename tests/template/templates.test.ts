import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { oneRow, query, transact } from '../../server/database/query.ts';
import { interruptAllRuns, recordProgress } from '../../server/domain/template/templateRun.ts';
import { makeCaller, refusalOf } from '../harness/caller.ts';
import { databaseUrl, givenService, testDatabase } from '../harness/service.ts';
import {
  boardIn,
  copiesIn,
  givenTemplate,
  groupsIn,
  hideEarlierProjects,
  outcomesOf,
  pushBoard,
  pushCard,
  pushGroup,
  reportOf,
  sync,
  type Template,
  titlesIn,
} from '../harness/template.ts';
import {
  givenBoard,
  givenCard,
  givenGroup,
  givenMasterBoard,
  givenProject,
  givenWorld,
  NOWHERE,
  stored,
  testDb,
} from '../harness/world.ts';

const ADMIN = '/services/operations/v1/admin';

hideEarlierProjects();

const previewOf = (template: Template) =>
  outcomesOf(template.asSuperadmin.rpc.masterBoards.previewSync.query({ board_id: template.board }), template);
const runsOf = async ({ asSuperadmin, board }: Template) =>
  (await asSuperadmin.rpc.templateRuns.list.query({ board_id: board })).runs;

describe('a sync', () => {
  it('copies the board, groups and cards to each active project with access, once, and uses up no ids then', async () => {
    const template = await givenTemplate();
    const inactive = await givenProject({ tools: [template.tool], is_active: false });

    expect(await sync(template)).toEqual({ synced_count: 2, skipped_no_access: 3 });

    for (const project of template.projects) {
      const copies = await copiesIn(project, template);
      expect(copies).toMatchObject([
        { board_title: 'Template', group_title: 'First', title: 'One', position: 1, sort_order: 1 },
        { board_title: 'Template', group_title: 'First', title: 'Two', position: 2, sort_order: 2, tour_key: 'tour' },
        { group_title: 'Second', title: 'Three', position: 1, sort_order: 3, status: 'blocked' },
      ]);
      expect(copies[0]).toMatchObject({
        is_master: false,
        master_card_id: template.cards[0],
        platform_id: project.platform_id,
        description: '<p>1</p>',
        priority: 'high',
        unique_identifier: `${template.tool}-one`,
        status: 'open',
      });
    }
    for (const project of [template.without, inactive]) expect(await copiesIn(project, template)).toEqual([]);

    const before = await copiesIn(template.projects[0], template);
    const id = await givenCard(template.project);
    expect(await sync(template)).toMatchObject({ synced_count: 2 });
    expect(await givenCard(template.project)).toBe(id + 1);
    expect(await copiesIn(template.projects[0], template)).toEqual(before);
  });

  it('adds new cards after those that a project has, and keeps what it deleted or changed', async () => {
    const template = await givenTemplate();
    await sync(template);
    const [project] = template.projects;
    const [one, two, three] = await copiesIn(project, template);
    const db = await testDb();
    await query(db, sql`update cards set deleted_at = now() where id = ${one.id}`);
    await query(db, sql`update cards set title = 'Mine', group_id = null where id = ${two.id}`);
    await query(db, sql`update groups set deleted_at = now() where id = ${three.group_id}`);
    await givenCard(project, { group_id: one.group_id, position: 9, sort_order: 40 });
    const added = { is_master: true, title: 'New', position: 0 };
    for (const group_id of template.groups) await givenCard(NOWHERE, { ...added, group_id });

    await sync(template);

    expect((await stored('cards', one.id)).deleted_at).not.toBeNull();
    expect(await stored('cards', two.id)).toMatchObject({ title: 'Mine', group_id: null });
    expect(await copiesIn(project, template)).toMatchObject([
      { id: one.id },
      { title: 'New', group_id: one.group_id, position: 10, sort_order: 41 },
      { id: three.id },
    ]);
  });

  it('copies a board without a tool to every active project', async () => {
    const template = await givenTemplate();
    await query(await testDb(), sql`update boards set tool_key = null where id = ${template.board}`);

    expect(await sync(template)).toEqual({ synced_count: 5, skipped_no_access: 0 });

    expect(await copiesIn(template.without, template)).toHaveLength(3);
    await template.asSuperadmin.rpc.masterBoards.delete.mutate({ id: template.board });
  });
});

describe('a push of a card', () => {
  it('adds missing copies, and updates the fields of the template', async () => {
    const template = await givenTemplate();
    const [one] = template.cards;
    expect(await pushCard(template, one)).toEqual({ projects_updated: 2 });
    const copies = await copiesIn(template.projects[0], template);
    expect(copies.map(({ title }) => title)).toEqual(['One']);
    const own = { status: 'closed', priority: 'low', position: 7 };
    await query(
      await testDb(),
      sql`update cards set status = 'closed', priority = 'low', title = 'Mine', position = 7 where id = ${copies[0].id}`,
    );

    const brought = { title: 'New', short_description: 's', tour_key: 't', is_active: false };
    await template.asSuperadmin.rpc.masterCards.update.mutate({ id: one, status: 'to_check', ...brought });

    expect(await pushCard(template, one)).toEqual({ projects_updated: 2 });
    expect(await stored('cards', copies[0].id)).toMatchObject({ ...brought, ...own });
    expect(await pushCard(template, one)).toEqual({ projects_updated: 0 });
  });

  it('is reported by project: added, updated, unchanged or skipped', async () => {
    const template = await givenTemplate();
    const [one] = template.cards;
    await sync(template);
    template.projects.push(await givenProject({ tools: [template.tool] }));
    const [copy] = await copiesIn(template.projects[0], template);
    await query(await testDb(), sql`update cards set deleted_at = now() where id = ${copy.id}`);
    const { masterCards, templateRuns } = template.asSuperadmin.rpc;

    const preview = await outcomesOf(masterCards.previewPush.query({ card_id: one }), template);
    await masterCards.update.mutate({ id: one, title: 'Changed' });
    expect(await pushCard(template, one)).toEqual({ projects_updated: 2 });

    expect(preview).toMatchObject([
      { outcome: 'skipped', reason: 'deleted_by_project' },
      { outcome: 'unchanged', reason: null },
      { outcome: 'skipped', reason: 'no_access' },
      { outcome: 'added', boards_added: 1, groups_added: 1, cards_added: 1 },
    ]);
    expect(await stored('cards', copy.id)).toMatchObject({ title: 'One' });
    const [run] = await runsOf(template);
    const { projects } = await templateRuns.report.query({ id: run!.id, outcome: 'updated' });
    expect(projects).toMatchObject([{ project_id: template.projects[1].id, cards_updated: 1 }]);
  });
});

describe('master boards, groups and cards', () => {
  it('are read with everything on them, in order, tour cards included', async () => {
    const { asSuperadmin, board: id, groups, cards } = await givenTemplate();
    const { masterBoards, masterGroups } = asSuperadmin.rpc;
    await givenGroup(NOWHERE, id, { is_master: true, deleted_at: new Date() });
    const zero = await givenCard(NOWHERE, { is_master: true, group_id: groups[1], position: 0 });

    const { board } = await masterBoards.get.query({ id });

    expect(board).toMatchObject({ id, is_master: true, project_id: null });
    expect(board.groups.map((group) => [group.id, group.cards.map((card) => card.id)])).toEqual([
      [groups[0], [cards[0], cards[1]]],
      [groups[1], [zero, cards[2]]],
    ]);
    expect(board.groups[0]!.cards[0]!.created_at).toBeInstanceOf(Date);
    expect((await masterGroups.list.query({ board_id: id })).groups).toMatchObject([
      { id: groups[0], title: 'First', color: 'blue', cards_count: 2 },
      { id: groups[1], title: 'Second', cards_count: 2 },
    ]);
  });

  it('404 for those of a project', async () => {
    const { asSuperadmin, project } = await givenWorld();
    const { masterBoards, masterGroups } = asSuperadmin.rpc;
    const board_id = await givenBoard(project);
    const group_id = await givenGroup(project, board_id);

    for (const call of [
      () => masterBoards.get.query({ id: board_id }),
      () => masterGroups.list.query({ board_id }),
      () => masterBoards.push.mutate({ board_id }),
      () => masterBoards.previewPush.query({ board_id }),
      () => masterGroups.push.mutate({ group_id }),
      () => masterGroups.previewPush.query({ group_id }),
    ])
      expect(await refusalOf(call())).toMatchObject({
        status: 404,
        message: expect.stringMatching(/^There is no such master (board|group)\.$/),
      });
  });

  it('422 for the identifier of another master card, also in an update, unless that is deleted', async () => {
    const template = await givenTemplate();
    const { asSuperadmin, groups, cards, tool, projects } = template;
    const [one, two] = cards;
    const unique_identifier = `${tool}-one`;
    const changes = { title: 'x', unique_identifier };
    const taken = { group_id: groups[1], ...changes };
    const { masterCards } = asSuperadmin.rpc;
    await sync(template);
    const before = await copiesIn(projects[0], template);

    const errors = { unique_identifier: ['unique_identifier belongs to another master card.'] };
    const { create, update } = masterCards;
    for (const call of [() => create.mutate(taken), () => update.mutate({ id: two, ...changes })])
      expect(await refusalOf(call())).toMatchObject({ status: 422, errors });
    expect(await copiesIn(projects[0], template)).toEqual(before);
    await update.mutate({ id: one, unique_identifier });
    await masterCards.delete.mutate({ id: one });
    expect((await create.mutate(taken)).card).toMatchObject({ unique_identifier });
  });

  it('422 for one of two cards with the same identifier that are created at once', async () => {
    const [first, second] = [await givenTemplate(), await givenTemplate()];
    const create = ({ asSuperadmin, groups }: Template) =>
      asSuperadmin.post(`${ADMIN}/master-cards/create`, {
        group_id: groups[0],
        title: 'x',
        unique_identifier: `${first.tool}-new`,
      });

    const answers = await Promise.all([create(first), create(second)]);

    expect(answers.map(({ status }) => status).sort()).toEqual([201, 422]);
  });

  it('are deleted with what is in them; copies stay, unless a card is deleted from projects, too', async () => {
    const template = await givenTemplate();
    const { masterBoards, masterGroups, masterCards } = template.asSuperadmin.rpc;
    const [one, two, three] = template.cards;
    const [first, second] = template.groups;
    const four = await givenCard(NOWHERE, { is_master: true, group_id: first, position: 4 });
    await sync(template);
    const areDeleted = async (table: string, ...ids: number[]) =>
      (await Promise.all(ids.map((id) => stored(table, id)))).map(({ deleted_at }) => deleted_at !== null);

    await masterCards.delete.mutate({ id: one });
    await masterCards.delete.mutate({ id: two, delete_from_projects: true });
    await masterGroups.delete.mutate({ id: first });
    expect(await areDeleted('cards', one, two, four, three)).toEqual([true, true, true, false]);
    await masterBoards.delete.mutate({ id: template.board });

    expect(await areDeleted('groups', first, second)).toEqual([true, true]);
    expect(await areDeleted('cards', three)).toEqual([true]);
    const copies = await copiesIn(template.projects[0], template);
    expect(copies.map(({ deleted_at }) => deleted_at !== null)).toEqual([false, true, false, false]);
  });

  it('are reordered, and cards moved between groups; 404, 422 or 400 for others, and nothing changes', async () => {
    const { asSuperadmin, board, groups, cards } = await givenTemplate();
    const other = await givenMasterBoard();
    const { masterBoards, masterGroups, masterCards } = asSuperadmin.rpc;
    const placed = (...ids: number[]) => ids.map((id, at) => ({ id, position: 5 + at }));
    const [second, one, three] = [groups[1], cards[0], cards[2]!];

    await masterCards.reorder.mutate({ group_id: second, cards: placed(three, one) });
    const moved = { group_id: second, position: 6 };
    expect(await stored('cards', one)).toMatchObject(moved);

    expect(await refusalOf(masterBoards.reorder.mutate({ boards: placed(board, 2147483647) }))).toMatchObject({
      status: 404,
    });
    expect(
      await refusalOf(masterGroups.reorder.mutate({ board_id: board, groups: placed(second, other.group) })),
    ).toMatchObject({ status: 422, errors: { 'groups.1.id': ['groups.1.id is not a group of this board.'] } });
    expect(
      await refusalOf(masterCards.reorder.mutate({ group_id: groups[0], cards: placed(one, other.card) })),
    ).toMatchObject({ status: 400 });
    expect((await stored('boards', board)).position).not.toBe(5);
    expect(await stored('groups', second)).toMatchObject({ position: 2 });
    expect(await stored('cards', one)).toMatchObject(moved);
  });
});

describe('the preview, the report and the history', () => {
  it('agree: the preview of a sync changes nothing, and the report equals it', async () => {
    const template = await givenTemplate();
    const [first, second] = template.projects;

    const preview = await previewOf(template);
    expect(await copiesIn(first, template)).toEqual([]);
    await sync(template);

    const updated = { boards_updated: 0, groups_updated: 0, cards_updated: 0, project_name: 'A project' };
    const added = { outcome: 'added', reason: null, boards_added: 1, groups_added: 2, cards_added: 3, ...updated };
    expect(preview).toEqual([
      { project_id: first.id, ...added },
      { project_id: second.id, ...added },
      {
        project_id: template.without.id,
        ...updated,
        outcome: 'skipped',
        reason: 'no_access',
        boards_added: 0,
        groups_added: 0,
        cards_added: 0,
      },
    ]);
    expect(await reportOf(template)).toEqual(preview);
  });

  it('record who synced and pushed what, newest first, with counts', async () => {
    const template = await givenTemplate();
    const { asSuperadmin, board, groups, cards, users } = template;
    const { masterGroups, templateRuns } = asSuperadmin.rpc;
    await sync(template);
    await masterGroups.update.mutate({ id: groups[0], title: 'New' });
    await pushBoard(template);
    await pushGroup(template, groups[1]);
    await pushCard(template, cards[0]);

    const runs = await runsOf(template);

    const counts = { projects_total: 5, projects_done: 5, projects_with_access: 2, projects_skipped: 3 };
    const by = { board_id: board, user_id: users.superadmin.id, user_name: 'A user', finished_at: expect.any(Date) };
    const all = { ...counts, ...by, group_id: null, card_id: null, projects_changed: 0, groups_updated: 0 };
    expect(runs).toMatchObject([
      { ...all, kind: 'push', card_id: cards[0], card_title: 'One', cards_added: 0 },
      { ...all, kind: 'push_group', group_id: groups[1], group_title: 'Second' },
      { ...all, kind: 'push_board', boards_updated: 0, groups_updated: 2, projects_changed: 2 },
      { ...all, kind: 'sync', board_title: 'Template', projects_changed: 2, cards_added: 6 },
    ]);
    expect(await templateRuns.get.query({ id: runs[0]!.id })).toEqual({ run: runs[0] });
    for (const call of [templateRuns.get, templateRuns.report])
      expect(await refusalOf(call.query({ id: 2147483647 }))).toMatchObject({
        status: 404,
        message: 'There is no such run.',
      });
  });
});

describe('an unfinished run', () => {
  const RUNNING = { finished_at: null, interrupted_at: null };
  const INTERRUPTED = { finished_at: null, interrupted_at: expect.any(Date) };
  const FINISHED = { finished_at: expect.any(Date), interrupted_at: null };

  /** Runs a statement in a trigger each time a run records its outcome for a project. */
  async function withOutcomeTrigger(statement: string, work: () => Promise<void>) {
    const db = await testDb();
    const name = sql.ref(`test_${randomUUID()}`);
    const body = sql.lit(`begin ${statement}; return null; end`);
    await query(db, sql`create function ${name}() returns trigger language plpgsql as ${body}`);
    await query(
      db,
      sql`create trigger ${name} after insert on template_outcomes for each row execute function ${name}()`,
    );
    try {
      await work();
    } finally {
      await query(db, sql`drop trigger ${name} on template_outcomes`);
      await query(db, sql`drop function ${name}()`);
    }
  }

  it('500 when it fails, is marked as interrupted at once, and the next run finishes', async () => {
    const template = await givenTemplate();

    await withOutcomeTrigger(`raise exception 'A fault'`, async () => {
      expect(await refusalOf(sync(template))).toMatchObject({ status: 500 });
    });
    expect(await runsOf(template)).toMatchObject([INTERRUPTED]);
    await sync(template);

    expect(await runsOf(template)).toMatchObject([FINISHED, INTERRUPTED]);
  });

  it('429 on a stopping node, and it is marked as interrupted at once', async () => {
    const template = await givenTemplate();
    const { url } = await givenService({}, { isStopping: () => true });
    const { masterBoards } = makeCaller(url, template.asSuperadmin.token).rpc;

    expect(await refusalOf(masterBoards.sync.mutate({ board_id: template.board }))).toMatchObject({
      status: 429,
      message: 'The service is stopping. Run this again: finished projects stay.',
    });
    expect(await runsOf(template)).toMatchObject([INTERRUPTED]);
  });

  it('counts as interrupted after three minutes without progress, until it progresses again', async () => {
    const template = await givenTemplate();
    const db = await testDb();
    await query(db, sql`insert into template_runs (kind, board_id) values ('sync', ${template.board})`);

    for (const [age, state] of [
      ['2 minutes', RUNNING],
      ['4 minutes', INTERRUPTED],
      ['0 minutes', RUNNING],
    ] as const) {
      const progressed = sql`update template_runs set progressed_at = now() - ${age}::interval`;
      await query(db, sql`${progressed} where board_id = ${template.board}`);
      expect(await runsOf(template)).toMatchObject([state]);
    }
  });

  it('finishes normally even if it was marked as interrupted meanwhile', async () => {
    const template = await givenTemplate();
    const mark = `update template_runs set interrupted_at = now(), progressed_at = now() - interval '1 hour' where id = new.run_id`;

    await withOutcomeTrigger(mark, async () => void (await sync(template)));

    expect(await runsOf(template)).toMatchObject([FINISHED]);
  });

  it('shows as running again after its next step, if it was only delayed', async () => {
    const template = await givenTemplate();
    const db = await testDb();
    const insert = sql<{
      id: number;
    }>`insert into template_runs (kind, board_id) values ('sync', ${template.board}) returning id`;
    const { id } = oneRow(await query(db, insert));
    await interruptAllRuns(db);
    expect(await runsOf(template)).toMatchObject([INTERRUPTED]);

    await recordProgress(db, id, 1);

    expect(await runsOf(template)).toMatchObject([RUNNING]);
  });

  it('is marked as interrupted when the embedded database is opened again; a finished run is not', async () => {
    const template = await givenTemplate();
    await sync(template);
    const db = await testDb();
    await query(db, sql`insert into template_runs (kind, board_id) values ('sync', ${template.board})`);

    await interruptAllRuns(db);

    expect(await runsOf(template)).toMatchObject([INTERRUPTED, FINISHED]);
  });
});

describe('concurrent runs', () => {
  it('of all kinds with edits of the template and of a project: no errors, one copy each, and nothing of the project is lost', async () => {
    const template = await givenTemplate();
    const { board, groups, cards, projects } = template;
    await sync(template);
    const [first] = projects;
    const [{ id: boardId }, [mine], [copy]] = [
      await boardIn(first, template),
      await groupsIn(first, template),
      await copiesIn(first, template),
    ];
    for (let count = 0; count < 2; count++) projects.push(await givenProject({ tools: [template.tool] }));
    const alone = () => ({ ...template, asSuperadmin: template.asSuperadmin.alone() });
    const { masterBoards, masterGroups, masterCards } = template.asSuperadmin.rpc;
    const inFirst = template.asSuperadmin.in(first.id).rpc;

    await Promise.all([
      ...Array.from({ length: 4 }, () => sync(alone())),
      ...Array.from({ length: 3 }, () => pushBoard(alone())),
      ...groups.map((group) => pushGroup(alone(), group)),
      ...cards.map((card) => pushCard(alone(), card)),
      masterBoards.update.mutate({ id: board, title: 'New', description: 'New' }),
      masterGroups.update.mutate({ id: groups[0], title: 'New', description: 'New' }),
      masterGroups.reorder.mutate({ board_id: board, groups: [{ id: groups[1], position: 0 }] }),
      masterGroups.create.mutate({ board_id: board, title: 'Third' }),
      masterCards.update.mutate({ id: cards[1], title: 'Edited' }),
      inFirst.boards.update.mutate({ id: boardId, title: 'Ours' }),
      inFirst.groups.update.mutate({ id: mine.id, title: 'Ours' }),
      inFirst.cards.delete.mutate({ id: copy.id }),
    ]);
    await sync(template);

    for (const project of projects) {
      const title = project === first ? 'Ours' : 'New';
      expect(await titlesIn(project, template)).toEqual(['Second', title, 'Third']);
      expect((await groupsIn(project, template))[1]).toMatchObject({ description: 'New' });
      expect(await boardIn(project, template)).toMatchObject({ title, description: 'New' });
      const copies = await copiesIn(project, template);
      expect(copies.map(({ master_card_id }) => master_card_id).sort()).toEqual(cards.toSorted());
    }
    expect((await stored('cards', copy.id)).deleted_at).not.toBeNull();
    const outcomes = (await previewOf(template)).map(({ outcome }) => outcome);
    expect(outcomes).toEqual(['unchanged', 'unchanged', 'skipped', 'unchanged', 'unchanged']);
  });

  it.skipIf(!databaseUrl)(
    '500 for a run that loses its connection: no project is half done, and the next run completes it',
    async () => {
      const { asSuperadmin } = await givenWorld();
      const database = {
        ...(await testDatabase()),
        bulkPace: { rowsPerStep: 30, stepsAtOnce: 2, pause: async () => {} },
      };
      const { url } = await givenService({}, { database });
      const caller = makeCaller(url, asSuperadmin.token);
      const tool = randomUUID();
      const { board, group } = await givenMasterBoard({ board: { tool_key: tool } });
      const CARDS = 10;
      for (let count = 1; count < CARDS; count++) await givenCard(NOWHERE, { is_master: true, group_id: group });
      for (let count = 0; count < 10; count++) await givenProject({ tools: [tool] });
      const copies = async () => {
        const counts = sql<{ count: number }>`
          select count(c.id)::int as count from project_tools t
          left join cards c on c.project_id = t.project_id and c.master_card_id is not null
          where t.tool_key = ${tool} group by t.project_id`;
        return (await query(await testDb(), counts)).map(({ count }) => count);
      };
      const isBlocked = sql`datname = current_database() and wait_event_type = 'Lock'`;
      const run = () => caller.post(`${ADMIN}/master-boards/sync`, { board_id: board });

      const { status } = await transact(await testDb(), async (db) => {
        // Uncommitted, and last in order: the sync blocks on its unique key after writing all other copies of the step.
        const [copy] = await query(
          db,
          sql<{ id: number }>`
            insert into cards (project_id, platform_id, title, master_card_id)
            select p.id, p.platform_id, 'Copy', m.id from projects p, cards m where m.group_id = ${group}
            order by p.id desc, m.id desc limit 1 returning id`,
        );
        let answer: Awaited<ReturnType<typeof run>> | undefined;
        const cut = run().then((received) => {
          answer = received;
        });
        // Again and again, since the two steps of a run also wait for each other for a moment.
        const terminate = async () => {
          await query(db, sql`select pg_terminate_backend(pid) from pg_stat_activity where ${isBlocked}`);
          return answer?.status;
        };
        await expect.poll(terminate, { interval: 20 }).toBe(500);
        await cut;
        await query(db, sql`delete from cards where id = ${copy!.id}`);
        return answer!;
      });
      const left = await copies();
      const again = await run();

      expect(status).toBe(500);
      expect(new Set(left)).toEqual(new Set([0, CARDS]));
      expect(again.body.data.synced_count).toBe(10);
      expect(await copies()).toEqual(Array(10).fill(CARDS));
    },
  );
});
