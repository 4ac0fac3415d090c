import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { refusalOf } from '../harness/caller.ts';
import { pagesOf } from '../harness/pages.ts';
import {
  givenBoard,
  givenCard,
  givenGroup,
  givenMasterBoard,
  givenMember,
  givenProject,
  givenTag,
  givenUser,
  givenWorld,
  stored,
  type TestProject,
  testDb,
} from '../harness/world.ts';

const CREATE = '/services/operations/v1/operations/cards/create';
const UNKNOWN = 2_147_483_647;

const givenGroupIn = async (project: TestProject) => givenGroup(project, await givenBoard(project));

describe('POST …/cards/create', () => {
  it('puts cards at the end of their group, and of the project, up to the int4 maximum', async () => {
    const { asOwner, project } = await givenWorld();
    const [first, second] = [await givenGroupIn(project), await givenGroupIn(project)];
    const places = async (group_id: number | null) => {
      const { body } = await asOwner.post(CREATE, { title: 'Next', group_id });
      return [body.data.card.position, body.data.card.sort_order];
    };

    expect(await places(first)).toEqual([1, 1]);
    expect(await places(first)).toEqual([2, 2]);
    expect(await places(second)).toEqual([1, 3]);
    expect(await places(null)).toEqual([1, 4]);
    expect(await places(null)).toEqual([2, 5]);
    await givenCard(project, { group_id: first, position: UNKNOWN, sort_order: UNKNOWN });
    expect(await places(first)).toEqual([UNKNOWN, UNKNOWN]);
  });

  it('422 or 403 for a group, tag or owner that can not be used, and nothing is stored', async () => {
    const { asMember, project, otherProject, users } = await givenWorld();
    const deleted = { deleted_at: new Date() };
    const references: [object, number][] = [
      [{ group_id: UNKNOWN, tag_id: UNKNOWN, owner_id: UNKNOWN }, 422],
      [{ group_id: await givenGroup(project, await givenBoard(project), deleted) }, 422],
      [{ group_id: (await givenMasterBoard()).group }, 422],
      [{ tag_id: await givenTag(project, deleted) }, 422],
      [{ owner_id: (await givenUser({ project, is_active: false })).id }, 422],
      [{ owner_id: users.outsider.id }, 422],
      [{ group_id: await givenGroupIn(otherProject) }, 403],
      [{ tag_id: await givenTag(otherProject) }, 403],
    ];

    for (const [reference, status] of references)
      expect(await asMember.post(CREATE, { title: 'x', ...reference }), JSON.stringify(reference)).toMatchObject({
        status,
      });
    const cards = sql`select id from cards where project_id in (${project.id}, ${otherProject.id})`;
    expect(await query(await testDb(), cards)).toEqual([]);
  });

  it('403 that does not tell who is a member of the project of a foreign group', async () => {
    const { asMember, otherProject, users } = await givenWorld();
    const group_id = await givenGroupIn(otherProject);

    for (const owner_id of [users.outsider.id, users.member.id, UNKNOWN])
      expect(await asMember.post(CREATE, { title: 'x', group_id, owner_id })).toMatchObject({
        status: 403,
        body: { error: true, message: 'group_id is not in this project.' },
      });
  });

  it('201 in the project of the group, else of the tag; 403 if they are of two projects', async () => {
    const { asOwner, users, project } = await givenWorld();
    const second = await givenProject();
    await givenMember(users.owner, second, 'member');
    const [group_id, tag_id] = [await givenGroupIn(second), await givenTag(second)];
    const { id: project_id, platform_id } = second;

    for (const reference of [{ group_id }, { tag_id }, { group_id, tag_id }])
      expect(await asOwner.post(CREATE, { title: 'x', ...reference })).toMatchObject({
        status: 201,
        body: { data: { card: { project_id, platform_id } } },
      });
    const mixed = { title: 'x', group_id, tag_id: await givenTag(project) };
    expect((await asOwner.post(CREATE, mixed)).status).toBe(403);
  });
});

describe('cards over RPC', () => {
  it('list filters by each field', async () => {
    const { asViewer, project, users } = await givenWorld();
    const group_id = await givenGroupIn(project);
    const tag_id = await givenTag(project);
    const past = new Date('2020-01-01');
    const add = (sort_order: number, state: object) => givenCard(project, { sort_order, ...state });
    const grouped = await add(1, { group_id });
    const owned = await add(2, { owner_id: users.member.id });
    const tagged = await add(3, { tag_id, priority: 'urgent' });
    const late = await add(4, { due_date: past });
    const closed = await add(5, { due_date: past, status: 'closed' });
    await add(6, { deleted_at: new Date() });
    const listed = async (wanted: object) => (await asViewer.rpc.cards.list.query(wanted)).cards.map(({ id }) => id);

    expect(await listed({ group_id: null, text: '' })).toEqual([grouped, owned, tagged, late, closed]);
    expect(await listed({ group_id })).toEqual([grouped]);
    expect(await listed({ owner_id: users.member.id })).toEqual([owned]);
    expect(await listed({ tag_id, priority: 'urgent' })).toEqual([tagged]);
    expect(await listed({ tag_id, priority: 'low' })).toEqual([]);
    expect(await listed({ status: 'closed' })).toEqual([closed]);
    expect(await listed({ is_overdue: true })).toEqual([late]);
    expect(await listed({ is_overdue: false })).toEqual([grouped, owned, tagged, closed]);
    expect(await listed({ due_before: past })).toEqual([]);
    expect(await listed({ due_before: '2020-01-02' })).toEqual([late, closed]);
  });

  it('list checks a status on 5,000 cards per page: pages may be empty, and the last one has no cursor', async () => {
    const { asViewer, project } = await givenWorld();
    await query(
      await testDb(),
      sql`
        insert into cards (project_id, platform_id, title, status, sort_order)
        select ${project.id}, ${project.platform_id}, 'Card ' || n, case when n in (1, 5001) then 'rare' else 'open' end, n
        from generate_series(1, 5001) n`,
    );
    const list = (wanted: object) => pagesOf((cursor) => asViewer.rpc.cards.list.query({ ...wanted, cursor }));
    const titles = (pages: { cards: { title: string }[] }[]) =>
      pages.map(({ cards }) => cards.map(({ title }) => title));

    expect(titles(await list({ status: 'rare' }))).toEqual([['Card 1'], ['Card 5001']]);
    expect(titles(await list({ status: 'never' }))).toEqual([[], []]);
    expect((await list({ status: 'open', limit: 200 })).at(0)?.cards).toHaveLength(200);
  });

  it('list by a board finds the cards in its groups, also with another filter', async () => {
    const { asViewer, project } = await givenWorld();
    const board_id = await givenBoard(project);
    const groups = [await givenGroup(project, board_id), await givenGroup(project, board_id)];
    const tag_id = await givenTag(project);
    const last = await givenCard(project, { group_id: groups[0], sort_order: 2, tag_id });
    const first = await givenCard(project, { group_id: groups[1], sort_order: 1 });
    await givenCard(project, { group_id: await givenGroupIn(project), tag_id });
    await givenCard(project, { tag_id });
    const listed = async (wanted: object) =>
      (await asViewer.rpc.cards.list.query({ board_id, ...wanted })).cards.map(({ id }) => id);

    expect(await listed({})).toEqual([first, last]);
    expect(await listed({ group_id: groups[0] })).toEqual([last]);
    expect(await listed({ group_id: await givenGroupIn(project) })).toEqual([]);
    expect(await listed({ tag_id })).toEqual([last]);
    expect(await listed({ status: 'open', limit: 1 })).toEqual([first]);
    expect(await listed({ text: 'a card' })).toEqual([first, last]);
  });

  it('list finds no cards by a board, group or tag of a project without access', async () => {
    const { asOutsider, asViewer, project } = await givenWorld();
    const board_id = await givenBoard(project);
    const group_id = await givenGroup(project, board_id);
    const tag_id = await givenTag(project);
    const card = await givenCard(project, { group_id, tag_id });

    for (const filter of [{ board_id }, { group_id }, { tag_id }]) {
      expect((await asViewer.rpc.cards.list.query(filter)).cards).toMatchObject([{ id: card }]);
      expect((await asOutsider.rpc.cards.list.query(filter)).cards).toEqual([]);
    }
  });

  it('list pages contain each card once, also with equal sort_order', async () => {
    const { asViewer, project } = await givenWorld();
    const ids: number[] = [];
    for (let count = 0; count < 7; count++) ids.push(await givenCard(project, { sort_order: count < 5 ? 1 : 0 }));

    const pages = await pagesOf((cursor) => asViewer.rpc.cards.list.query({ limit: 3, cursor }));

    const seen = pages.flatMap(({ cards }) => cards.map(({ id }) => id));
    expect(seen).toEqual([...ids.slice(5), ...ids.slice(0, 5)]);
  });

  it('422 for unknown and 403 for foreign references in update, and nothing changes', async () => {
    const { asMember, project, otherProject, users } = await givenWorld();
    const id = await givenCard(project);
    const refused = (reference: object) =>
      refusalOf(asMember.rpc.cards.update.mutate({ id, title: 'x', ...reference }));

    expect(await refused({ tag_id: UNKNOWN })).toMatchObject({
      status: 422,
      errors: { tag_id: ['tag_id does not exist.'] },
    });
    expect(await refused({ tag_id: await givenTag(otherProject) })).toMatchObject({ status: 403 });
    expect(await refused({ owner_id: users.outsider.id })).toMatchObject({
      status: 422,
      errors: { owner_id: ['owner_id is not a member of this project.'] },
    });
    expect(await stored('cards', id)).toMatchObject({ title: 'A card' });
  });

  it('snooze sets and clears snoozed_until', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenCard(project);
    const snooze = async (until: string | null) =>
      (await asMember.rpc.cards.snooze.mutate({ id, until })).card.snoozed_until;

    expect(await snooze('2030-01-01')).toEqual(new Date('2030-01-01'));
    expect(await snooze(null)).toBeNull();
  });
});

describe('cards.move', () => {
  /** Two groups with three cards each. */
  const givenCards = async () => {
    const world = await givenWorld();
    const board = await givenBoard(world.project);
    const groups = [await givenGroup(world.project, board), await givenGroup(world.project, board)] as const;
    const ids: number[] = [];
    for (const group_id of groups)
      for (const position of [10, 20, 30]) ids.push(await givenCard(world.project, { group_id, position }));
    const order = async () => {
      const { board: full } = await world.asViewer.rpc.boards.get.query({ id: board });
      return full.groups.map(({ cards }) => cards.map(({ id }) => ids.indexOf(id)));
    };
    return { ...world, groups, ids, order, move: world.asMember.rpc.cards.move.mutate };
  };

  it('moves a card to a position in another group, and shifts the cards there; or out of its group', async () => {
    const { move, groups, ids, order } = await givenCards();

    const { card } = await move({ id: ids[1]!, group_id: groups[1], position: 2 });
    const { card: loose } = await move({ id: ids[2]!, group_id: null });

    expect(card).toMatchObject({ group_id: groups[1], position: 2 });
    expect(loose).toMatchObject({ group_id: null, position: 1 });
    expect(await order()).toEqual([[0], [3, 1, 4, 5]]);
  });

  it.each([
    ['the start', 2, 1, [2, 0, 1]],
    ['the end', 0, undefined, [1, 2, 0]],
    ['the middle', 0, 2, [1, 0, 2]],
    ['a position past the end', 0, 2_147_483_647, [1, 2, 0]],
  ] as const)('moves a card to %s of its own group', async (_, card, position, expected) => {
    const { move, groups, ids, order } = await givenCards();

    await move({ id: ids[card]!, group_id: groups[0], position });

    expect(await order()).toEqual([expected, [3, 4, 5]]);
  });

  it('422 for an unknown and 403 for a foreign group, and nothing changes', async () => {
    const { move, groups, ids, otherProject } = await givenCards();
    const [id] = ids as [number];

    expect(await refusalOf(move({ id, group_id: UNKNOWN }))).toMatchObject({ status: 422 });
    expect(await refusalOf(move({ id, group_id: await givenGroupIn(otherProject) }))).toMatchObject({ status: 403 });
    expect(await stored('cards', id)).toMatchObject({ group_id: groups[0], position: 10 });
  });
});
