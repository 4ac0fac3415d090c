import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import type { ProjectContext } from '../../server/domain/access/context.ts';
import { listCards } from '../../server/domain/board/cardList.ts';
import { eventsOf } from '../harness/events.ts';
import { waitingFor } from '../harness/lock.ts';
import { databaseUrl } from '../harness/service.ts';
import { boardIn, copiesIn, givenTemplate, hideEarlierProjects, type Template, titlesIn } from '../harness/template.ts';
import {
  givenBoard,
  givenCard,
  givenComment,
  givenGroup,
  givenTag,
  givenThemeVersion,
  givenUser,
  givenWorld,
  stored,
  type TestProject,
  testDb,
} from '../harness/world.ts';

const OPERATIONS = '/services/operations/v1/operations';

hideEarlierProjects();

const times = <Part>(count: number, part: (at: number) => Part) => Array.from({ length: count }, (_, at) => part(at));

const deleted = (table: string, id: number) =>
  sql`update ${sql.table(table)} set deleted_at = now() where id = ${id} and deleted_at is null`;

async function givenGroups(project: TestProject, count: number): Promise<number[]> {
  const board = await givenBoard(project);
  const groups: number[] = [];
  for (let position = 1; position <= count; position++) groups.push(await givenGroup(project, board, { position }));
  return groups;
}

const positionsOf = (table: string, ids: number[]) =>
  Promise.all(ids.map(async (id): Promise<number> => (await stored(table, id)).position));

/** The embedded database runs one transaction at a time. */
describe.skipIf(!databaseUrl)('a call that waits for the change of another', () => {
  it('deletes a board with a card that was created at the same moment', async () => {
    const { asMember, project } = await givenWorld();
    const board = await givenBoard(project);
    const group = await givenGroup(project, board);
    const creation = [
      sql`select from groups where id = ${group} for share`,
      sql`insert into cards (project_id, platform_id, group_id, title) values (${project.id}, ${project.platform_id}, ${group}, 'x')`,
    ];

    const answer = await waitingFor(creation, () => asMember.post(`${OPERATIONS}/boards/delete`, { id: board }));

    expect(answer.status).toBe(200);
    const left = sql`select from cards where group_id = ${group} and deleted_at is null`;
    expect(await query(await testDb(), left)).toEqual([]);
  });

  it('takes a deleted tag from a card that got it at the same moment', async () => {
    const { asMember, project } = await givenWorld();
    const tag = await givenTag(project);
    const card = await givenCard(project);
    const change = [
      sql`select from tags where id = ${tag} for share`,
      sql`update cards set tag_id = ${tag} where id = ${card}`,
    ];

    const answer = await waitingFor(change, () => asMember.post(`${OPERATIONS}/tags/delete`, { id: tag }));

    expect(answer.status).toBe(200);
    expect(await stored('cards', card)).toMatchObject({ tag_id: null });
    await asMember.rpc.tags.restore.mutate({ id: tag });
    expect(await stored('cards', card)).toMatchObject({ tag_id: tag });
  });

  it('names a card that got a removed member as its owner at the same moment', async () => {
    const { asOwner, project, users } = await givenWorld();
    const card = await givenCard(project);
    const change = [
      sql`select from members where project_id = ${project.id} and user_id = ${users.member.id} for key share`,
      sql`update cards set owner_id = ${users.member.id} where id = ${card}`,
    ];

    const events = await eventsOf(() =>
      waitingFor(change, () => asOwner.rpc.members.remove.mutate({ user_id: users.member.id })),
    );

    expect(events).toMatchObject([{ type: 'member.removed', data: { ids: [card] } }]);
    expect(await stored('cards', card)).toMatchObject({ owner_id: null });
  });

  it('deletes a comment with a reply that was created at the same moment', async () => {
    const { asMember, project, users } = await givenWorld();
    const card = await givenCard(project);
    const parent = await givenComment(project, card, users.member);
    const creation = [
      sql`select from comments where id = ${parent} for share`,
      sql`
        insert into comments (project_id, card_id, user_id, parent_comment_id, comment)
        values (${project.id}, ${card}, ${users.viewer.id}, ${parent}, 'x')`,
    ];

    const answer = await waitingFor(creation, () => asMember.post(`${OPERATIONS}/comments/delete`, { id: parent }));

    expect(answer.status).toBe(200);
    const left = sql`select from comments where card_id = ${card} and deleted_at is null`;
    expect(await query(await testDb(), left)).toEqual([]);
  });

  it.each(['create', 'update'])(
    '422 for the owner of cards/%s who is just removed from the project',
    async (action) => {
      const { asMember, project } = await givenWorld();
      const { id: owner_id } = await givenUser({ project });
      const input = { id: await givenCard(project), title: 'x', owner_id };
      const removal = sql`delete from members where project_id = ${project.id} and user_id = ${owner_id}`;

      const answer = await waitingFor([removal], () => asMember.post(`${OPERATIONS}/cards/${action}`, input));

      expect(answer).toMatchObject({ status: 422, body: { message: 'owner_id is not a member of this project.' } });
    },
  );

  it('422 or 404 for a row that is just deleted', async () => {
    const { asMember, project } = await givenWorld();
    const board = await givenBoard(project);
    const add = () => givenGroup(project, board);
    const [group_id, ordered, tag_id] = [await add(), await add(), await givenTag(project)];
    const [id, card_id] = [await givenCard(project), await givenCard(project)];
    const lock = sql`select from projects where id = ${project.id} for update`;

    for (const [status, changes, path, input] of [
      [422, [deleted('groups', group_id)], 'cards/move', { id, group_id }],
      [422, [deleted('tags', tag_id)], 'cards/update', { id, tag_id }],
      [404, [deleted('cards', card_id)], 'comments/create', { card_id, comment: 'x' }],
      [404, [lock, deleted('groups', ordered)], 'groups/reorder', { groups: [{ id: ordered, position: 2 }] }],
      [404, [deleted('boards', board)], 'groups/create', { board_id: board, title: 'x' }],
    ] as const) {
      const answer = await waitingFor([...changes], () => asMember.post(`${OPERATIONS}/${path}`, input));
      expect(answer, path).toMatchObject({ status });
    }
  });

  it('keeps a change that is committed while cards/update-many waits for the card', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenCard(project);
    const change = sql`update cards set title = 'Ours', status = 'done', updated_at = now() where id = ${id}`;

    const cards = [{ id, priority: 'high', status: 'done' }];
    const answer = await waitingFor([change], () => asMember.post(`${OPERATIONS}/cards/update-many`, { cards }));

    expect(answer.status).toBe(200);
    expect(await stored('cards', id)).toMatchObject({ title: 'Ours', priority: 'high', status: 'done' });
    const noted = sql<{ data: object }>`select data from events where type = 'card.updated' and subject_id = ${id}`;
    expect(await query(await testDb(), noted)).toEqual([{ data: { fields: ['priority'], version: 3 } }]);
  });

  it('keeps a change that a project commits while a push waits for the row', async () => {
    const template = await givenTemplate();
    const { masterBoards } = template.asSuperadmin.rpc;
    await masterBoards.sync.mutate({ board_id: template.board });
    const { id } = await boardIn(template.projects[0], template);
    await masterBoards.update.mutate({ id: template.board, title: 'New', description: 'New' });

    const change = sql`update boards set title = 'Ours', updated_at = now() where id = ${id}`;
    await waitingFor([change], () => masterBoards.push.mutate({ board_id: template.board }));

    const kept = { title: 'Ours', description: 'New', brought: { title: 'Template' } };
    expect(await stored('boards', id)).toMatchObject(kept);
  });

  it('fills a new project after a sync or a change of a board, with what that left', async () => {
    const template = await givenTemplate();
    const { asSuperadmin, board, tool } = template;
    const { platform_id } = template.project;

    const { project } = await waitingFor(
      [
        sql`select pg_advisory_xact_lock(1414352972, ${board})`,
        sql`insert into groups (is_master, board_id, title, position) values (true, ${board}, 'Just added', 3)`,
      ],
      () => asSuperadmin.rpc.projects.create.mutate({ platform_id, name: 'New', tools: [tool] }),
    );

    expect(await titlesIn(project, template)).toEqual(['First', 'Second', 'Just added']);
  });
});

/** Last: loading the document with the first response delays what runs beside it. */
describe.skipIf(!databaseUrl)('a list that checks many cards', () => {
  it('misses none if cards are deleted between its statements', async () => {
    const { project, users } = await givenWorld();
    const db = await testDb();
    await query(
      db,
      sql`insert into cards (project_id, platform_id, title, status, sort_order)
        select ${project.id}, ${project.platform_id}, 'Card', case n when 5005 then 'rare' else 'open' end, n
        from generate_series(1, 5100) n`,
    );
    const deleteTen = sql`update cards set deleted_at = now() where id in (
      select id from cards where project_id = ${project.id} and deleted_at is null order by sort_order limit 10)`;
    let isPage = false;
    const disturbed = db.withPlugin({
      transformQuery: ({ node }) => {
        isPage = !JSON.stringify(node).includes('set transaction');
        return node;
      },
      transformResult: async ({ result }) => {
        if (isPage) await query(db, deleteTen);
        return result;
      },
    });
    const role = { ...project, role: 'member' as const };
    const caller = {
      id: users.member.id,
      superadmin: false,
      project: role,
      isProjectChosen: true,
      neededRole: 'viewer',
    };
    const context = { db: disturbed, hasSearchIndex: false, caller } as unknown as ProjectContext;

    const first = await listCards(context, { status: 'rare', limit: 50 });
    const second = await listCards(context, { status: 'rare', limit: 50, cursor: first.next_cursor });

    expect([first.cards.length, second.cards.length]).toEqual([0, 1]);
  });
});

describe('many calls at once', () => {
  it('create 20 cards in one group, and delete a card once', async () => {
    const { asMember, project } = await givenWorld();
    const [group_id] = (await givenGroups(project, 1)) as [number];
    const id = await givenCard(project);

    const created = await Promise.all(
      times(20, () => asMember.post(`${OPERATIONS}/cards/create`, { title: 'x', group_id })),
    );
    const removed = await Promise.all(times(20, () => asMember.post(`${OPERATIONS}/cards/delete`, { id })));

    expect(created.map(({ status }) => status)).toEqual(Array(20).fill(201));
    expect(removed.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(404)]);
  });

  it('dismiss each tour card once, and deprecate a version', async () => {
    const { asViewer, asOwner, project } = await givenWorld();
    for (const tour_key of times(5, () => 'a')) await givenCard(project, { tour_key });
    const version_id = await givenThemeVersion(project);

    const dismissed = await Promise.all(times(10, () => asViewer.post(`${OPERATIONS}/tour/cards/dismiss-all`)));
    const deprecated = await Promise.all(
      times(10, () => asOwner.post('/services/websites/v1/themes/versions/deprecate', { version_id })),
    );

    expect(dismissed.reduce((sum, { body }) => sum + body.data.dismissed_count, 0)).toBe(5);
    expect(deprecated.map(({ status }) => status)).toEqual(Array(10).fill(200));
  });

  it('reorder groups, and end with the positions of exactly one call', async () => {
    const { asMember, project } = await givenWorld();
    const groups = await givenGroups(project, 12);
    const orders = times(40, (round) =>
      groups.map((id, at) => ({ id, position: ((at * 7 + round) % 12) + round * 100 })),
    );
    const shuffled = (order: (typeof orders)[number], round: number) =>
      order.toSorted((a, b) => ((a.id * (round + 3)) % 13) - ((b.id * (round + 3)) % 13));

    const answers = await Promise.all(
      orders.map((order, round) => asMember.post(`${OPERATIONS}/groups/reorder`, { groups: shuffled(order, round) })),
    );

    expect(answers.map(({ status }) => status)).toEqual(Array(40).fill(200));
    const ended = await positionsOf('groups', groups);
    expect(orders.map((order) => order.map(({ position }) => position))).toContainEqual(ended);
  });

  it('place groups, and leave no two at one position', async () => {
    const { asMember, project } = await givenWorld();
    const groups = await givenGroups(project, 3);

    await Promise.all(
      times(40, (at) => asMember.alone().rpc.groups.update.mutate({ id: groups[at % 3]!, position: 1 + (at % 2) })),
    );

    expect(new Set(await positionsOf('groups', groups)).size).toBe(3);
  });

  it('move cards between two groups, each card once and no position twice', async () => {
    const { asMember, project } = await givenWorld();
    const groups = await givenGroups(project, 2);
    const cards: number[] = [];
    for (let at = 0; at < 6; at++) cards.push(await givenCard(project, { group_id: groups[at % 2], position: at }));

    await Promise.all(
      times(40, (round) =>
        asMember.alone().rpc.cards.move.mutate({
          id: cards[round % 6]!,
          group_id: groups[(round + 1) % 2]!,
          position: (round % 4) + 1,
        }),
      ),
    );

    const places = await Promise.all(cards.map((id) => stored('cards', id)));
    expect(new Set(places.map(({ group_id, position }) => `${group_id} ${position}`)).size).toBe(6);
  });

  it('give projects their templates while these are synced, pushed and changed: one copy each, and nothing is missing', async () => {
    const [template, other] = [await givenTemplate(), await givenTemplate()];
    const tools = [template.tool, other.tool];
    const { platform_id } = template.project;
    const { id } = template.without;
    const rpc = () => template.asSuperadmin.alone().rpc;
    const four = { group_id: template.groups[0], title: 'Four', push_to_projects: true };

    const [created] = await Promise.all([
      Promise.all(times(4, () => rpc().projects.create.mutate({ platform_id, name: 'New', tools }))),
      ...times(3, () => rpc().projects.update.mutate({ id, tools })),
      ...times(3, () => rpc().masterBoards.sync.mutate({ board_id: template.board })),
      rpc().masterBoards.sync.mutate({ board_id: other.board }),
      rpc().masterCards.create.mutate(four),
    ]);

    const titles = async (project: TestProject, of: Template) =>
      (await copiesIn(project, of)).map(({ title }) => title);
    for (const project of [template.without, ...created.map(({ project }) => project)]) {
      expect(await titles(project, template)).toEqual(['One', 'Two', 'Four', 'Three']);
      expect(await titles(project, other)).toEqual(['One', 'Two', 'Three']);
    }
  });
});
