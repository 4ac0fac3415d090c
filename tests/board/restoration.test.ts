import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { procedures } from '../../server/api/procedures.ts';
import { query } from '../../server/database/query.ts';
import { CLEARING, MOST_AT_ONCE } from '../../server/domain/board/deletion.ts';
import { refusalOf } from '../harness/caller.ts';
import { eventsOf } from '../harness/events.ts';
import { addCards, markAll } from '../harness/largeGroups.ts';
import { waitingFor } from '../harness/lock.ts';
import { pagesOf } from '../harness/pages.ts';
import { databaseUrl } from '../harness/service.ts';
import { givenTemplate, hideEarlierProjects, sync } from '../harness/template.ts';
import {
  givenBoard,
  givenCard,
  givenComment,
  givenGroup,
  givenMasterBoard,
  givenMember,
  givenTag,
  givenWorld,
  NOWHERE,
  stored,
  testDb,
} from '../harness/world.ts';

hideEarlierProjects();

const TABLES = ['boards', 'groups', 'cards', 'comments', 'tags'] as const;
type Table = (typeof TABLES)[number];

/** All rows of a project, or all templates, as they are stored. */
async function rowsOf({ id }: { id: number | null }, table: Table): Promise<Record<string, unknown>[]> {
  const rows = await query(
    await testDb(),
    sql<{ row: Record<string, unknown> }>`
      select to_jsonb(t) - 'updated_at' - 'version' as row from ${sql.table(table)} t where project_id is not distinct from ${id}::int order by id`,
  );
  return rows.map(({ row }) => row);
}

async function snapshotOf(project: { id: number | null }) {
  const tables = TABLES.filter((table) => project.id !== null || !['comments', 'tags'].includes(table));
  return Object.fromEntries(await Promise.all(tables.map(async (table) => [table, await rowsOf(project, table)])));
}

const deletionsOf = async (project: { id: number | null }) =>
  query(await testDb(), sql`select * from deletions where project_id is not distinct from ${project.id}::int`);

/** A board with two groups, cards, tags and threads. Of each, one was deleted before. */
async function givenFullBoard() {
  const world = await givenWorld();
  const { project, users, asMember } = world;
  const board = await givenBoard(project, { title: 'Launch', position: 3 });
  const groups = [await givenGroup(project, board, { position: 1 }), await givenGroup(project, board, { position: 2 })];
  const tag = await givenTag(project);
  const cards: number[] = [];
  for (const [at, group_id] of [groups[0], groups[0], groups[1]].entries())
    cards.push(
      await givenCard(project, { group_id, tag_id: tag, owner_id: users.member.id, position: at, sort_order: at }),
    );
  const comment = await givenComment(project, cards[0]!, users.member);
  const reply = (
    await asMember.rpc.comments.create.mutate({ card_id: cards[0]!, comment: 'A reply', parent_comment_id: comment })
  ).comment.id;
  const gone = {
    group: await givenGroup(project, board, { position: 9 }),
    card: await givenCard(project, { group_id: groups[0], position: 9, sort_order: 9 }),
    comment: await givenComment(project, cards[0]!, users.member),
  };
  await asMember.rpc.groups.delete.mutate({ id: gone.group });
  await asMember.rpc.cards.delete.mutate({ id: gone.card });
  await asMember.rpc.comments.delete.mutate({ id: gone.comment });
  return { ...world, board, groups, cards, tag, comment, reply, gone };
}

describe('a restored row', () => {
  it.each(TABLES)('of %s is as it was before, with what was deleted with it, and nothing else', async (table) => {
    const { board, groups, cards, comment, tag, project, asMember } = await givenFullBoard();
    const ids = { boards: board, groups: groups[0]!, cards: cards[0]!, comments: comment, tags: tag };
    const counts = { boards: 6, groups: 3, cards: 1, comments: 2, tags: 4 };
    const before = await snapshotOf(project);
    const deletions = await deletionsOf(project);

    await asMember.rpc[table].delete.mutate({ id: ids[table] });
    expect(await snapshotOf(project)).not.toEqual(before);
    const { restored_count } = await asMember.rpc[table].restore.mutate({ id: ids[table] });

    expect(restored_count).toBe(counts[table]);
    expect(await snapshotOf(project)).toEqual(before);
    expect(await deletionsOf(project)).toEqual(deletions);
  });

  it('is returned as it is if it is not deleted: no event, no new version', async () => {
    const { board, asMember } = await givenFullBoard();
    const { version } = await asMember.rpc.boards.get.query({ id: board });
    const events = await eventsOf(async () => {
      const restored = await asMember.rpc.boards.restore.mutate({ id: board });

      expect(restored).toMatchObject({ board: { id: board, title: 'Launch' }, version, restored_count: 0 });
    });

    expect(events).toEqual([]);
  });

  it('has a new version, and an event with the number of rows that came back', async () => {
    const { board, groups, cards, comment, tag, users, asMember } = await givenFullBoard();
    const { version } = await asMember.rpc.boards.get.query({ id: board });
    const { rpc } = asMember;
    await rpc.tags.delete.mutate({ id: tag });
    await rpc.comments.delete.mutate({ id: comment });
    await rpc.cards.delete.mutate({ id: cards[2]! });
    await rpc.groups.delete.mutate({ id: groups[0]! });
    await rpc.boards.delete.mutate({ id: board });

    const events = await eventsOf(async () => {
      const restored = await rpc.boards.restore.mutate({ id: board });
      expect(restored.version).not.toBe(version);
      await rpc.groups.restore.mutate({ id: groups[0]! });
      await rpc.cards.restore.mutate({ id: cards[2]! });
      await rpc.comments.restore.mutate({ id: comment });
      await rpc.tags.restore.mutate({ id: tag });
    });

    expect(events).toMatchObject([
      { type: 'board.restored', subject_id: board, user_id: users.member.id, data: { count: 1 } },
      { type: 'group.restored', subject_id: groups[0], data: { board_id: board, count: 2 } },
      { type: 'card.restored', subject_id: cards[2], data: { group_id: groups[1], count: 0 } },
      { type: 'comment.restored', subject_id: comment, data: { card_id: cards[0], count: 1 } },
      { type: 'tag.restored', subject_id: tag, data: { count: 3 } },
    ]);
  });

  it('goes to its old place, or to the end where another row has it', async () => {
    const { project, asMember } = await givenWorld();
    const { rpc } = asMember;
    const board_id = await givenBoard(project, { position: 1 });
    const group_id = await givenGroup(project, board_id, { position: 1 });
    const made = {
      boards: async (position: number) => givenBoard(project, { position }),
      groups: async (position: number) => givenGroup(project, board_id, { position }),
      cards: async (position: number) => givenCard(project, { group_id, position, sort_order: position }),
      tags: async (position: number) => givenTag(project, { position }),
    };
    for (const table of ['boards', 'groups', 'cards', 'tags'] as const) {
      const [first, second] = [await made[table](5), await made[table](6)];
      await rpc[table].delete.mutate({ id: first });
      await rpc[table].restore.mutate({ id: first });
      expect({ table, ...(await stored(table, first)) }).toMatchObject({ table, position: 5 });

      await rpc[table].delete.mutate({ id: first });
      const taken = await made[table](5);
      await rpc[table].restore.mutate({ id: first });

      const rows = [await stored(table, taken), await stored(table, second), await stored(table, first)];
      expect({ table, positions: rows.map(({ position }) => position) }).toEqual({ table, positions: [5, 6, 7] });
      if (table === 'cards') expect(rows.map(({ sort_order }) => sort_order)).toEqual([5, 6, 7]);
    }
  });

  it('of a card that lies outside groups keeps its place there', async () => {
    const { project, asMember } = await givenWorld();
    const card = await givenCard(project, { position: 2, sort_order: 2 });
    await asMember.rpc.cards.delete.mutate({ id: card });
    await givenCard(project, { position: 2, sort_order: 3 });

    const restored = await asMember.rpc.cards.restore.mutate({ id: card });

    expect(restored.card).toMatchObject({ position: 3, sort_order: 2, group_id: null });
  });

  it('comes back without the tag and the owner that are gone', async () => {
    const { cards, tag, users, asMember, asOwner } = await givenFullBoard();
    await asMember.rpc.cards.delete.mutate({ id: cards[0]! });
    await asMember.rpc.tags.delete.mutate({ id: tag });
    await asOwner.rpc.members.remove.mutate({ user_id: users.member.id });

    const { card } = await asOwner.rpc.cards.restore.mutate({ id: cards[0]! });

    expect(card).toMatchObject({ tag_id: null, owner_id: null });
  });
});

it('restores wait until all nodes know their events', () => {
  const restores = procedures.filter(({ name }) => name.endsWith('.restore'));

  expect(restores).toHaveLength(8);
  expect(restores.map(({ level }) => level)).toEqual(restores.map(() => 1));
});

describe('a restored tag', () => {
  it('comes back to the cards that it was taken from, deleted ones too, but not to those that got another', async () => {
    const { project, asMember } = await givenWorld();
    const { rpc } = asMember;
    const [tag, other, last] = [await givenTag(project), await givenTag(project), await givenTag(project)];
    const cards: number[] = [];
    for (let count = 0; count < 5; count++) cards.push(await givenCard(project, { tag_id: tag }));
    const [kept, deleted, changed, lost, cleared] = cards as [number, number, number, number, number];
    await rpc.cards.delete.mutate({ id: deleted });
    await rpc.tags.delete.mutate({ id: tag });
    await rpc.cards.update.mutate({ id: changed, tag_id: other });
    await rpc.cards.update.mutate({ id: lost, tag_id: last });
    await rpc.tags.delete.mutate({ id: last });
    await rpc.cards.update.mutate({ id: cleared, tag_id: null });

    const { restored_count } = await rpc.tags.restore.mutate({ id: tag });

    const tags = await Promise.all(cards.map(async (id) => (await stored('cards', id)).tag_id));
    expect(tags).toEqual([tag, tag, other, null, tag]);
    expect(restored_count).toBe(4);
    await rpc.tags.restore.mutate({ id: last });
    expect(await stored('cards', lost)).toMatchObject({ tag_id: last });
    expect(await stored('cards', kept)).toMatchObject({ tag_id: tag });
  });
});

describe('400', () => {
  it('for a row in a deleted one, which it names', async () => {
    const { board, groups, cards, comment, reply, asMember } = await givenFullBoard();
    const { rpc } = asMember;
    const refused = async (call: Promise<unknown>) => (await refusalOf(call)).message;

    await rpc.comments.delete.mutate({ id: reply });
    await rpc.comments.delete.mutate({ id: comment });
    expect(await refusalOf(rpc.comments.restore.mutate({ id: reply }))).toEqual({
      status: 400,
      message: `The comment ${comment} is deleted. Restore it first.`,
    });
    await rpc.cards.delete.mutate({ id: cards[0]! });
    expect(await refused(rpc.comments.restore.mutate({ id: comment }))).toBe(
      'The card "A card" is deleted. Restore it first.',
    );
    await rpc.groups.delete.mutate({ id: groups[0]! });
    expect(await refused(rpc.cards.restore.mutate({ id: cards[0]! }))).toBe(
      'The group "A group" is deleted. Restore it first.',
    );
    await rpc.boards.delete.mutate({ id: board });
    expect(await refused(rpc.groups.restore.mutate({ id: groups[0]! }))).toBe(
      'The board "Launch" is deleted. Restore it first.',
    );
  });

  it('for the 1,001st board of a project and group of a board', async () => {
    const { project, asMember } = await givenWorld();
    const board_id = await givenBoard(project);
    const group = await givenGroup(project, board_id);
    const board = await givenBoard(project);
    await asMember.rpc.groups.delete.mutate({ id: group });
    await asMember.rpc.boards.delete.mutate({ id: board });
    await query(
      await testDb(),
      sql`
        with board as (
          insert into boards (project_id, platform_id, title) select ${project.id}, ${project.platform_id}, 'x' from generate_series(1, 999))
        insert into groups (project_id, platform_id, board_id, title)
        select ${project.id}, ${project.platform_id}, ${board_id}, 'x' from generate_series(1, 1000)`,
    );

    expect(await refusalOf(asMember.rpc.groups.restore.mutate({ id: group }))).toEqual({
      status: 400,
      message: 'A board has at most 1000 groups.',
    });
    expect(await refusalOf(asMember.rpc.boards.restore.mutate({ id: board }))).toEqual({
      status: 400,
      message: 'A project has at most 1000 boards.',
    });
  });
});

describe('403 and 404', () => {
  it('for who did not write the comment, as for deletes', async () => {
    const { comment, users, asMember, asOwner, asOutsider, project } = await givenFullBoard();
    await asMember.rpc.comments.delete.mutate({ id: comment });
    await givenMember(users.outsider, project, 'member');
    expect(await refusalOf(asOutsider.in(project.id).rpc.comments.restore.mutate({ id: comment }))).toEqual({
      status: 403,
      message: 'Only its author or an owner may restore a comment.',
    });
    expect((await asOwner.rpc.comments.restore.mutate({ id: comment })).restored_count).toBe(2);
  });

  it('for a master row, which belongs to no project', async () => {
    const { asMember } = await givenWorld();
    const { board } = await givenMasterBoard({ board: { deleted_at: new Date() } });

    expect(await refusalOf(asMember.rpc.boards.restore.mutate({ id: board }))).toMatchObject({ status: 404 });
  });
});

describe('a large deletion', () => {
  it.each([0, 1, 2])('is undone after %i steps in the background', async (steps) => {
    await markAll();
    const { board, groups, project, asMember } = await givenFullBoard();
    await addCards(groups[0]!, project, MOST_AT_ONCE);
    const before = await snapshotOf(project);
    await asMember.rpc.boards.delete.mutate({ id: board });
    for (let step = 0; step < steps; step++) await CLEARING.step(await testDb(), { rows: 600 });
    const [entry] = (await asMember.rpc.trash.list.query({})).entries;

    const { restored_count } = await asMember.rpc.boards.restore.mutate({ id: board });

    expect([entry?.count, restored_count]).toEqual([5 + MOST_AT_ONCE, 6 + MOST_AT_ONCE]);
    await markAll();
    expect(await snapshotOf(project)).toEqual(before);
  });

  it('400 for a card of it, marked or not', async () => {
    await markAll();
    const { groups, cards, project, asMember } = await givenFullBoard();
    await addCards(groups[0]!, project, MOST_AT_ONCE);
    await asMember.rpc.groups.delete.mutate({ id: groups[0]! });
    const restore = () => refusalOf(asMember.rpc.cards.restore.mutate({ id: cards[0]! }));

    expect(await restore()).toMatchObject({ status: 400 });
    await markAll();
    expect(await restore()).toMatchObject({ status: 400 });
  });
});

/** What nodes of the version before did: no ids, and the time of the transaction, which the board has as `updated_at`. */
const OLD_TIME = '2026-01-31T10:00:00.123Z';

describe('a deletion by a node of the version before', () => {
  it('is undone by its time: what was deleted before stays deleted', async () => {
    const { project, asMember } = await givenWorld();
    const board = await givenBoard(project);
    const [group, gone] = [await givenGroup(project, board), await givenGroup(project, board)];
    const card = await givenCard(project, { group_id: group });
    const goneCard = await givenCard(project, { group_id: group, deleted_at: new Date('2026-01-30') });
    await query(await testDb(), sql`update groups set deleted_at = '2026-01-30' where id = ${gone}`);
    await query(
      await testDb(),
      sql`
        with b as (update boards set deleted_at = ${OLD_TIME}::timestamptz + interval '3 ms', updated_at = ${OLD_TIME} where id = ${board}),
          g as (update groups set deleted_at = ${OLD_TIME}, updated_at = ${OLD_TIME} where id = ${group})
        update cards set deleted_at = ${OLD_TIME}, updated_at = ${OLD_TIME} where id = ${card}`,
    );

    const { restored_count } = await asMember.rpc.boards.restore.mutate({ id: board });

    expect(restored_count).toBe(3);
    const rows = [
      ['groups', group],
      ['cards', card],
      ['groups', gone],
      ['cards', goneCard],
    ] as const;
    const isLive = await Promise.all(rows.map(async ([table, id]) => (await stored(table, id)).deleted_at === null));
    expect(isLive).toEqual([true, true, false, false]);
  });

  it('is undone if such a node marked the cards of a deletion with an id', async () => {
    await markAll();
    const { groups, project, asMember } = await givenFullBoard();
    await addCards(groups[0]!, project, MOST_AT_ONCE);
    const before = await snapshotOf(project);
    await asMember.rpc.groups.delete.mutate({ id: groups[0]! });
    await markAll();
    await query(
      await testDb(),
      sql`update cards set deletion_id = null where group_id = ${groups[0]} and title = 'One of many'`,
    );

    await asMember.rpc.groups.restore.mutate({ id: groups[0]! });

    expect(await snapshotOf(project)).toEqual(before);
  });
});

describe('templates', () => {
  it('come back with what was deleted with them', async () => {
    const { asSuperadmin } = await givenWorld();
    const { rpc } = asSuperadmin;
    const { board, group, card } = await givenMasterBoard({ board: { position: 77 } });
    const gone = await givenCard(NOWHERE, { is_master: true, group_id: group });
    await rpc.masterCards.delete.mutate({ id: gone });
    const before = await snapshotOf({ id: null });

    await rpc.masterBoards.delete.mutate({ id: board });
    const [entry] = (await rpc.masterTrash.list.query({ limit: 1 })).entries;
    expect(await refusalOf(rpc.masterGroups.restore.mutate({ id: group }))).toMatchObject({
      status: 400,
      message: 'The master board "A board" is deleted. Restore it first.',
    });
    expect(await rpc.masterBoards.restore.mutate({ id: board })).toMatchObject({ restored_count: 3 });
    await rpc.masterGroups.delete.mutate({ id: group });
    expect(await rpc.masterGroups.restore.mutate({ id: group })).toMatchObject({ restored_count: 2 });
    await rpc.masterCards.delete.mutate({ id: card });
    expect(await rpc.masterCards.restore.mutate({ id: card })).toMatchObject({ restored_count: 1 });

    expect(entry).toMatchObject({ type: 'board', id: board, title: 'A board', count: 2 });
    expect(await snapshotOf({ id: null })).toEqual(before);
  });

  it('422 for an identifier that another master card has by now', async () => {
    const { rpc } = (await givenWorld()).asSuperadmin;
    const { group, card } = await givenMasterBoard();
    const { unique_identifier } = await stored('cards', card);
    await rpc.masterCards.delete.mutate({ id: card });
    await rpc.masterCards.create.mutate({ group_id: group, title: 'Another', unique_identifier });

    expect(await refusalOf(rpc.masterCards.restore.mutate({ id: card }))).toMatchObject({
      status: 422,
      errors: { unique_identifier: ['unique_identifier belongs to another card by now.'] },
    });
  });

  it('master cards come back with the copies that their deletion deleted, except those without a place', async () => {
    const template = await givenTemplate();
    await sync(template);
    const { rpc } = template.asSuperadmin;
    const [card] = template.cards;
    const copies = () =>
      testDb().then((db) =>
        query(
          db,
          sql<{ id: number; project_id: number; group_id: number; is_live: boolean }>`
            select id, project_id, group_id, deleted_at is null as is_live from cards where master_card_id = ${card} order by project_id`,
        ),
      );
    const [first, second, ...others] = await copies();
    await rpc.cards.delete.mutate({ id: first!.id });
    await rpc.masterCards.delete.mutate({ id: card!, delete_from_projects: true });
    const trash = await template.asSuperadmin.in(second!.project_id).rpc.trash.list.query({});
    expect(trash.entries[0]).toMatchObject({ type: 'card', id: second!.id, count: 0 });
    await rpc.groups.delete.mutate({ id: second!.group_id });

    const { restored_count } = await rpc.masterCards.restore.mutate({ id: card! });

    expect((await copies()).map(({ is_live }) => is_live)).toEqual([false, false, ...others.map(() => true)]);
    expect(restored_count).toBe(1 + others.length);
    await rpc.groups.restore.mutate({ id: second!.group_id });
    await rpc.cards.restore.mutate({ id: second!.id });
    await rpc.cards.restore.mutate({ id: first!.id });
    expect((await copies()).every(({ is_live }) => is_live)).toBe(true);
  });

  it('a copy that a project restored stays: a sync neither deletes nor adds it again', async () => {
    const template = await givenTemplate();
    await sync(template);
    const { rpc } = template.asSuperadmin;
    const [project] = template.projects;
    const before = await snapshotOf(project);
    const board = (before.boards as { id: number }[])[0]!.id;
    await rpc.boards.delete.mutate({ id: board });
    await sync(template);
    expect((await rowsOf(project, 'boards')).every(({ deleted_at }) => deleted_at !== null)).toBe(true);

    await rpc.boards.restore.mutate({ id: board });
    await sync(template);

    expect(await snapshotOf(project)).toEqual(before);
  });

  it('422 for a copy whose identifier another copy has by now', async () => {
    const { project, asMember } = await givenWorld();
    const { card } = await givenMasterBoard();
    const { card: other } = await givenMasterBoard();
    const copy = await givenCard(project, { master_card_id: card, unique_identifier: 'step' });
    await asMember.rpc.cards.delete.mutate({ id: copy });
    await givenCard(project, { master_card_id: other, unique_identifier: 'step' });

    expect(await refusalOf(asMember.rpc.cards.restore.mutate({ id: copy }))).toMatchObject({ status: 422 });
    expect((await stored('cards', copy)).deleted_at).not.toBeNull();
  });
});

describe('trash.list', () => {
  it('has one entry for each deletion, newest first, with who did it and what it took along', async () => {
    const { board, groups, cards, comment, tag, gone, users, asMember, asOwner } = await givenFullBoard();
    await asOwner.rpc.tags.delete.mutate({ id: tag });
    await asMember.rpc.comments.delete.mutate({ id: comment });
    await asMember.rpc.groups.delete.mutate({ id: groups[0]! });
    await asMember.rpc.boards.delete.mutate({ id: board });

    const pages = await pagesOf((cursor) => asMember.rpc.trash.list.query({ limit: 3, cursor }));

    const entries = pages.flatMap(({ entries }) => entries);
    expect(pages.map(({ entries }) => entries.length)).toEqual([3, 3, 1]);
    expect(entries).toMatchObject([
      { type: 'board', id: board, title: 'Launch', count: 2, deleted_by: users.member.id },
      { type: 'group', id: groups[0], title: 'A group', count: 2 },
      { type: 'comment', id: comment, title: null, count: 1 },
      { type: 'tag', id: tag, title: 'A tag', count: 3, deleted_by: users.owner.id },
      { type: 'comment', id: gone.comment },
      { type: 'card', id: gone.card, count: 0 },
      { type: 'group', id: gone.group },
    ]);
    expect(cards).toHaveLength(3);
  });

  it('leaves out what was restored, and what is removed for good', async () => {
    const { project, asMember } = await givenWorld();
    const [kept, restored, removed] = [await givenCard(project), await givenCard(project), await givenCard(project)];
    for (const id of [kept, restored, removed]) await asMember.rpc.cards.delete.mutate({ id });
    await asMember.rpc.cards.restore.mutate({ id: restored });
    await query(await testDb(), sql`delete from cards where id = ${removed}`);

    expect((await asMember.rpc.trash.list.query({})).entries).toMatchObject([{ id: kept }]);
  });
});

describe('trash.preview', () => {
  it('counts what a deletion would take along, without what is deleted', async () => {
    const { board, groups, cards, comment, reply, tag, asMember } = await givenFullBoard();
    const preview = (type: 'board' | 'group' | 'card' | 'comment' | 'tag', id: number) =>
      asMember.rpc.trash.preview.query({ type, id });
    const nothing = { groups_count: 0, cards_count: 0, comments_count: 0 };

    expect(await preview('board', board)).toEqual({ ...nothing, title: 'Launch', groups_count: 2, cards_count: 3 });
    expect(await preview('group', groups[0]!)).toEqual({ ...nothing, title: 'A group', cards_count: 2 });
    expect(await preview('card', cards[0]!)).toEqual({ ...nothing, title: 'A card' });
    expect(await preview('comment', comment)).toEqual({ ...nothing, title: null, comments_count: 1 });
    expect(await preview('comment', reply)).toEqual({ ...nothing, title: null });
    expect(await preview('tag', tag)).toEqual({ ...nothing, title: 'A tag', cards_count: 3 });
  });
});

describe('at the same time', () => {
  it('two restores bring a board back once', async () => {
    const { board, project, asMember } = await givenFullBoard();
    const before = await snapshotOf(project);
    await asMember.rpc.boards.delete.mutate({ id: board });

    let counts: number[] = [];
    const events = await eventsOf(async () => {
      const restores = [1, 2, 3].map(() => asMember.alone().rpc.boards.restore.mutate({ id: board }));
      counts = (await Promise.all(restores)).map(({ restored_count }) => restored_count);
    });

    expect(counts.sort()).toEqual([0, 0, 6]);
    expect(events.map(({ type }) => type)).toEqual(['board.restored']);
    expect(await snapshotOf(project)).toEqual(before);
  });

  it.runIf(databaseUrl)(
    'a card that is deleted while its group is deleted stays deleted when the group comes back',
    async () => {
      const { groups, cards, asMember } = await givenFullBoard();
      const [group] = groups;
      const [card] = cards;
      const isIn = sql`id = ${card} and group_id = ${group}`;
      const deletion = sql`update cards set deleted_at = now(), deletion_id = nextval('deletions_id_seq') where ${isIn}`;

      await waitingFor([deletion], () => asMember.rpc.groups.delete.mutate({ id: group! }));
      await asMember.rpc.groups.restore.mutate({ id: group! });

      expect((await stored('cards', card!)).deleted_at).not.toBeNull();
    },
  );

  it('a restore and the deletion of the parent leave no live row in a deleted one', async () => {
    const { board, groups, cards, asMember, project } = await givenFullBoard();
    for (let round = 0; round < 5; round++) {
      await asMember.rpc.cards.delete.mutate({ id: cards[0]! });
      await asMember.rpc.groups.delete.mutate({ id: groups[0]! });
      const calls = [
        asMember.alone().rpc.groups.restore.mutate({ id: groups[0]! }),
        asMember.alone().rpc.cards.restore.mutate({ id: cards[0]! }),
        asMember.alone().rpc.boards.delete.mutate({ id: board }),
      ];
      const settled = await Promise.allSettled(calls);
      for (const { reason } of settled.filter((result) => result.status === 'rejected'))
        expect(reason.reason).toBe('parent_deleted');

      const lost = await query(
        await testDb(),
        sql`
          select c.id from cards c join groups g on g.id = c.group_id and g.deleted_at is not null
          where c.project_id = ${project.id} and c.deleted_at is null
          union all
          select g.id from groups g join boards b on b.id = g.board_id and b.deleted_at is not null
          where g.project_id = ${project.id} and g.deleted_at is null`,
      );
      expect(lost).toEqual([]);
      await asMember.rpc.boards.restore.mutate({ id: board });
      for (const restore of [
        () => asMember.rpc.groups.restore.mutate({ id: groups[0]! }),
        () => asMember.rpc.cards.restore.mutate({ id: cards[0]! }),
      ])
        await restore();
    }
  });

  it('a restore and the background, which marks its cards, end with all rows of before', async () => {
    await markAll();
    const { board, groups, project, asMember } = await givenFullBoard();
    await addCards(groups[1]!, project, MOST_AT_ONCE);
    const before = await snapshotOf(project);
    for (let round = 0; round < 3; round++) {
      await asMember.rpc.boards.delete.mutate({ id: board });

      await Promise.all([markAll(), asMember.rpc.boards.restore.mutate({ id: board }), markAll()]);

      await markAll();
      expect(await snapshotOf(project)).toEqual(before);
    }
  });

  it('restores and syncs of the same copies and templates end with one copy each', async () => {
    const template = await givenTemplate();
    await sync(template);
    const { asSuperadmin, projects } = template;
    const before = await Promise.all(projects.map(snapshotOf));
    const boards = before.map(({ boards }) => (boards as { id: number }[])[0]!.id);
    for (const id of boards) await asSuperadmin.rpc.boards.delete.mutate({ id });
    await asSuperadmin.rpc.masterCards.delete.mutate({ id: template.cards[0], delete_from_projects: true });

    await Promise.all([
      sync(template),
      asSuperadmin.alone().rpc.masterCards.restore.mutate({ id: template.cards[0] }),
      ...boards.map((id) => asSuperadmin.alone().rpc.boards.restore.mutate({ id })),
      sync(template),
    ]);

    expect(await Promise.all(projects.map(snapshotOf))).toEqual(before);
  });
});
