import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { workOff } from '../../server/database/background.ts';
import { query } from '../../server/database/query.ts';
import { CLEARING, MOST_AT_ONCE } from '../../server/domain/board/deletion.ts';
import { refusalOf } from '../harness/caller.ts';
import { addCards, markAll } from '../harness/largeGroups.ts';
import { givenTemplate, hideEarlierProjects, pushCard, sync } from '../harness/template.ts';
import {
  givenBoard,
  givenCard,
  givenComment,
  givenGroup,
  givenMasterBoard,
  givenWorld,
  NOWHERE,
  stored,
  testDb,
} from '../harness/world.ts';

hideEarlierProjects();

const liveCardsOf = async (...groups: number[]) => {
  const counted = sql<{ count: number }>`
    select count(*)::int as count from cards where group_id = any(${groups}::int[]) and deleted_at is null`;
  return (await query(await testDb(), counted))[0]!.count;
};

/** A board with a group that has more cards than a deletion marks at once; the first one is a tour card with a comment. */
async function givenLargeBoard() {
  await markAll();
  const world = await givenWorld();
  const { project, users } = world;
  const board = await givenBoard(project);
  const group = await givenGroup(project, board);
  const other = await givenGroup(project, board);
  const card = await givenCard(project, { group_id: group, title: 'The first', tour_key: 'welcome' });
  const comment = await givenComment(project, card, users.member);
  const kept = await givenCard(project, { title: 'Outside', sort_order: 5000 });
  await addCards(group, project, MOST_AT_ONCE);
  return { ...world, board, group, other, card, comment, kept };
}

describe.each(['groups', 'boards'] as const)('%s.delete with more than 1,000 cards', (table) => {
  it('hides the cards at once, wherever they are asked for', async () => {
    const { asMember, asOwner, board, group, other, card, comment, kept } = await givenLargeBoard();
    const { rpc } = asMember;

    await rpc[table].delete.mutate({ id: table === 'groups' ? group : board });

    expect(await liveCardsOf(group)).toBe(MOST_AT_ONCE + 1);
    const refused = {
      get: () => rpc.cards.get.query({ id: card }),
      update: () => rpc.cards.update.mutate({ id: card, title: 'Changed' }),
      move: () => rpc.cards.move.mutate({ id: card, group_id: null }),
      snooze: () => rpc.cards.snooze.mutate({ id: card }),
      delete: () => rpc.cards.delete.mutate({ id: card }),
      comment: () => rpc.comments.create.mutate({ card_id: card, comment: 'Too late' }),
      comments: () => rpc.comments.list.query({ card_id: card }),
      replies: () => rpc.comments.listReplies.query({ id: comment }),
      read: () => rpc.comments.markRead.mutate({ id: comment }),
      deleteComment: () => asOwner.rpc.comments.delete.mutate({ id: comment }),
    };
    for (const [name, call] of Object.entries(refused))
      expect({ name, ...(await refusalOf(call())) }).toMatchObject({ name, status: 404 });
    for (const filter of [{}, { text: 'the first' }, { text: 'o' }, { group_id: group }, { status: 'open' }]) {
      const { cards } = await rpc.cards.list.query(filter);
      expect({ filter, ids: cards.map(({ id }) => id) }).toEqual({
        filter,
        ids: 'group_id' in filter || ('text' in filter && filter.text !== 'o') ? [] : [kept],
      });
    }
    expect(await rpc.tour.dismissAll.mutate()).toEqual({ dismissed_count: 0 });
    const { boards } = await rpc.boards.list.query({});
    expect(boards.map(({ id, cards_count }) => [id, cards_count])).toEqual(table === 'groups' ? [[board, 0]] : []);
    if (table === 'groups')
      expect((await rpc.boards.get.query({ id: board })).board.groups.map(({ id }) => id)).toEqual([other]);
  });

  it('marks them in steps, with the time of their group; each step leaves nothing visible', async () => {
    const { asMember, board, group, card } = await givenLargeBoard();
    await asMember.rpc[table].delete.mutate({ id: table === 'groups' ? group : board });
    const db = await testDb();

    const counts = [await CLEARING.step(db, { rows: 600 }), await CLEARING.step(db, { rows: 600 })];

    expect(counts.map(({ count }) => count)).toEqual([600, 401]);
    expect(await liveCardsOf(group)).toBe(0);
    const { deleted_at, is_clearing } = await stored('groups', group);
    expect(is_clearing).toBe(false);
    expect(await stored('cards', card)).toMatchObject({ deleted_at, updated_at: deleted_at });
    expect(await CLEARING.step(db, { rows: 600 })).toEqual({ count: 0 });
  });
});

describe('a deletion', () => {
  it('of up to 1,000 cards marks them itself', async () => {
    const { asMember, project } = await givenWorld();
    const board = await givenBoard(project);
    const groups = [await givenGroup(project, board), await givenGroup(project, board)];
    for (const group of groups) await addCards(group, project, MOST_AT_ONCE / 2);

    await asMember.rpc.boards.delete.mutate({ id: board });

    expect(await liveCardsOf(...groups)).toBe(0);
    expect(await stored('groups', groups[0]!)).toMatchObject({ is_clearing: false });
  });

  it('is finished by several nodes at once', async () => {
    const { asMember, board, group } = await givenLargeBoard();
    await asMember.rpc.boards.delete.mutate({ id: board });

    await Promise.all([markAll(), markAll(), markAll()]);
    await markAll();

    expect(await liveCardsOf(group)).toBe(0);
    expect(await stored('groups', group)).toMatchObject({ is_clearing: false });
  });

  it('of a master board hides its cards at once, and frees their identifiers', async () => {
    const { rpc } = (await givenWorld()).asSuperadmin;
    const { board, group, card } = await givenMasterBoard();
    const { group: group_id } = await givenMasterBoard();
    await addCards(group, {}, MOST_AT_ONCE);
    const { unique_identifier } = await stored('cards', card);

    await rpc.masterBoards.delete.mutate({ id: board });

    expect(await refusalOf(rpc.masterCards.update.mutate({ id: card, title: 'Changed' }))).toMatchObject({
      status: 404,
    });
    const cards = [{ id: card, position: 1 }];
    expect(await refusalOf(rpc.masterCards.reorder.mutate({ group_id, cards }))).toMatchObject({ status: 404 });
    const created = await rpc.masterCards.create.mutate({ group_id, title: 'Again', unique_identifier });
    expect(created.card).toMatchObject({ unique_identifier });
    expect(await liveCardsOf(group)).toBe(0);
  });

  it('of a copy with many cards stays one for the next push: the copy is not adopted, and its identifier is free', async () => {
    const template = await givenTemplate();
    await sync(template);
    const [project] = template.projects;
    const rpc = template.asSuperadmin.rpc;
    const [old] = template.cards;
    const { unique_identifier } = await stored('cards', old);
    const copies = await query(
      await testDb(),
      sql<{ id: number; group_id: number }>`
        select id, group_id from cards where project_id = ${project.id} and master_card_id = ${old}`,
    );
    const { id: copy, group_id } = copies[0]!;
    await addCards(group_id, project, MOST_AT_ONCE);
    await rpc.groups.delete.mutate({ id: group_id });
    await rpc.masterCards.delete.mutate({ id: old });
    const replacement = await givenCard(NOWHERE, {
      is_master: true,
      group_id: template.groups[1],
      unique_identifier,
    });

    await pushCard(template, replacement);

    const found = await query(
      await testDb(),
      sql`
        select master_card_id, deleted_at is null as is_live from cards
        where project_id = ${project.id} and unique_identifier = ${unique_identifier} order by id`,
    );
    expect(found).toEqual([
      { master_card_id: old, is_live: false },
      { master_card_id: replacement, is_live: true },
    ]);
    expect(await stored('cards', copy)).toMatchObject({ master_card_id: old });
  });

  it('of a board with many groups is finished in one go, also behind groups without cards', async () => {
    const { project, asMember } = await givenWorld();
    const board = await givenBoard(project);
    let group = 0;
    for (let position = 1; position <= 101; position++) group = await givenGroup(project, board, { position });
    await addCards(group, project, MOST_AT_ONCE + 1);
    await asMember.rpc.boards.delete.mutate({ id: board });

    await workOff(await testDb(), CLEARING, { rows: 1000, pauseMilliseconds: 0, isStopped: () => false });

    expect(await liveCardsOf(group)).toBe(0);
    expect(await stored('groups', group)).toMatchObject({ is_clearing: false });
  });
});
