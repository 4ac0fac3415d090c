import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'kysely';
import { describe, expect, it, vi } from 'vitest';
import type { Client } from '../../client/client.ts';
import { fileStorage, type MirrorStorage, openMirror } from '../../client/events/events.ts';
import { query } from '../../server/database/query.ts';
import { feedComplete } from '../harness/events.ts';
import { boardOf, loseCursor } from '../harness/mirror.ts';
import { givenDirectory } from '../harness/process.ts';
import {
  givenBoard,
  givenGroup,
  givenMasterBoard,
  givenMember,
  givenWorld,
  testDb,
  type World,
} from '../harness/world.ts';

/** A board with two groups of three cards, and its mirror. */
async function givenMirror(given: { world?: World; boardId?: number } = {}) {
  const world = given.world ?? (await givenWorld());
  const { rpc } = world.asMember;
  const boardId = given.boardId ?? (await givenBoard(world.project));
  const groups = await Promise.all([1, 2].map(() => givenGroup(world.project, boardId)));
  const add = async (group_id: number | null) => (await rpc.cards.create.mutate({ title: 'A card', group_id })).card.id;
  const cards: number[] = [];
  for (const group of groups) for (let at = 0; at < 3; at++) cards.push(await add(group));
  const path = join(await givenDirectory(), 'board.jsonl');
  const storage = fileStorage(path);
  const mirror = await openMirror(world.asViewer.rpc, { boardId, storage });
  await mirror.refresh();

  /** Brings the mirror up to date, and compares its rows and the stored ones with the board. */
  const mustBeEqual = async () => {
    await feedComplete();
    await mirror.refresh();
    const expected = await boardOf(world.asViewer.rpc, boardId);
    expect(mirror.rows).toEqual(expected);
    expect((await fileStorage(path).load())?.rows).toEqual(expected);
    return mirror.rows;
  };
  return { world, rpc, boardId, groups, cards, add, mirror, mustBeEqual, path };
}

type Given = Awaited<ReturnType<typeof givenMirror>>;

describe('a mirror', () => {
  it('has all rows of a board that is too large for one page', async () => {
    const given = await givenMirror();
    await query(
      await testDb(),
      sql`
        insert into cards (project_id, platform_id, group_id, title, position, sort_order)
        select project_id, platform_id, id, 'Card ' || n, n, n from groups, generate_series(10, 260) as n
        where id = ${given.groups[0]}`,
    );
    const mirror = await openMirror(given.rpc, { boardId: given.boardId, storage: inMemory() });
    await mirror.refresh();

    expect(mirror.rows).toEqual(await boardOf(given.rpc, given.boardId));
    expect(mirror.rows.cards.size).toBe(257);
  });

  it.each<[string, (given: Given) => Promise<unknown>]>([
    ['a change of a card', ({ rpc, cards }) => rpc.cards.update.mutate({ id: cards[0]!, due_date: '2030-01-31' })],
    ['a move in front of others', ({ rpc, cards, groups }) => move(rpc, cards[2]!, groups[0]!, 1)],
    ['a move to another group', ({ rpc, cards, groups }) => move(rpc, cards[0]!, groups[1]!, 2)],
    ['a card that leaves all groups', ({ rpc, cards }) => move(rpc, cards[0]!, null)],
    ['a card that leaves for another board', leaveFor],
    ['a card that comes from another board', comeBack],
    ['a new card, and one in no group', ({ add, groups }) => Promise.all([add(groups[0]!), add(null)])],
    ['a deleted card', ({ rpc, cards }) => rpc.cards.delete.mutate({ id: cards[0]! })],
    ['a restored card', ({ rpc, cards }) => undone(rpc.cards, cards[0]!)],
    ['a new group in front of others', ({ rpc, boardId }) => rpc.groups.create.mutate({ ...GROUP, board_id: boardId })],
    ['other positions of groups', ({ rpc, groups }) => rpc.groups.update.mutate({ id: groups[1]!, position: 1 })],
    ['a deleted group', ({ rpc, groups }) => rpc.groups.delete.mutate({ id: groups[0]! })],
    ['a restored group', ({ rpc, groups }) => undone(rpc.groups, groups[0]!)],
    ['another title', ({ rpc, boardId }) => rpc.boards.update.mutate({ id: boardId, title: 'Another title' })],
    ['a new board in front', ({ rpc }) => rpc.boards.create.mutate({ title: 'A board', position: 1 })],
    ['a deleted board', ({ rpc, boardId }) => rpc.boards.delete.mutate({ id: boardId })],
    ['a restored board', ({ rpc, boardId }) => undone(rpc.boards, boardId)],
    ['a deleted tag', untagged],
    ['a removed member', removed],
    [
      'many changes',
      ({ rpc, cards }) => rpc.cards.updateMany.mutate({ cards: cards.map((id) => ({ id, status: 'x' })) }),
    ],
  ])('follows %s', async (_, change) => {
    const given = await givenMirror();
    await change(given);

    await given.mustBeEqual();
  });

  it('follows the sync of a template', async () => {
    const world = await givenWorld();
    const { rpc } = world.asSuperadmin;
    const tool_key = `tool-${world.project.id}`;
    await query(
      await testDb(),
      sql`insert into project_tools (project_id, tool_key) values (${world.project.id}, ${tool_key})`,
    );
    const master = await givenMasterBoard({ board: { tool_key } });
    await rpc.masterBoards.sync.mutate({ board_id: master.board });
    const { boards } = await world.asMember.rpc.boards.list.query();
    const given = await givenMirror({ world, boardId: boards[0]!.id });

    await rpc.masterCards.create.mutate({ group_id: master.group, title: 'From the template' });
    await rpc.masterBoards.sync.mutate({ board_id: master.board });

    const { cards } = await given.mustBeEqual();
    expect([...cards.values()].map(({ title }) => title)).toContain('From the template');
  });

  it('reads all rows again after a lost cursor', async () => {
    const { rpc, cards, boardId, path, world } = await givenMirror();
    await rpc.cards.update.mutate({ id: cards[0]!, title: 'Changed' });
    await loseCursor(path);
    const mirror = await openMirror(world.asViewer.rpc, { boardId, storage: fileStorage(path) });
    await mirror.refresh();

    expect(mirror.rows).toEqual(await boardOf(rpc, boardId));
  });

  it('reads all rows again with the first event after a fail-over, which may have lost changes that it has', async () => {
    const { rpc, cards, boardId, path, world, mirror } = await givenMirror();
    await rpc.cards.update.mutate({ id: cards[0]!, title: 'Changed' });
    await feedComplete();
    await mirror.refresh();
    const lastEvent = (await readFile(path, 'utf8')).match(/(?<="lastEvent":")\d+/g)?.at(-1);
    const openAfter = async (event: string | undefined) => {
      const lost = (text: string) =>
        text.replaceAll('"Changed"', '"Lost"').replaceAll(`:"${lastEvent}"`, `:"${event}"`);
      const other = join(await givenDirectory(), 'board.jsonl');
      await writeFile(other, lost(await readFile(path, 'utf8')));
      return openMirror(world.asViewer.rpc, { boardId, storage: fileStorage(other) });
    };
    const mirrors = await Promise.all([lastEvent, String(Number(lastEvent) - 1_000_000_000)].map(openAfter));
    await rpc.cards.update.mutate({ id: cards[1]!, title: 'Another' });
    await feedComplete();
    for (const each of mirrors) await each.refresh();

    const titles = mirrors.map(({ rows }) => [0, 1].map((at) => rows.cards.get(cards[at]!)?.title));
    expect(titles).toEqual([
      ['Lost', 'Another'],
      ['Changed', 'Another'],
    ]);
  });

  it('does not count a line that was cut off, and goes on from the one before', async () => {
    const { rpc, cards, boardId, path, mirror, world } = await givenMirror();
    await rpc.cards.update.mutate({ id: cards[0]!, title: 'Changed' });
    await feedComplete();
    await mirror.refresh();
    await writeFile(path, (await readFile(path, 'utf8')).slice(0, -20));
    const again = await openMirror(world.asViewer.rpc, { boardId, storage: fileStorage(path) });

    expect(again.rows.cards.get(cards[0]!)?.title).toBe('A card');
    await again.refresh();
    expect(again.rows).toEqual(mirror.rows);
  });

  it('follows changes as they happen, until its signal', async () => {
    const { rpc, cards, mirror } = await givenMirror();
    const ending = new AbortController();
    const ended = mirror.follow(ending.signal);
    for (const id of cards) await rpc.cards.update.mutate({ id, title: 'Live' });

    const titles = () => [...mirror.rows.cards.values()].map(({ title }) => title);
    await vi.waitFor(() => expect(titles()).toEqual(Array(6).fill('Live')));
    ending.abort();
    await ended;
  });

  it('misses nothing after a save that failed', async () => {
    const { rpc, cards, boardId, groups, add, world } = await givenMirror();
    let fails = false;
    const save = vi.fn(async () => {
      if (fails) throw new Error('The disk is full.');
    });
    const mirror = await openMirror(world.asViewer.rpc, { boardId, storage: { load: async () => undefined, save } });
    await mirror.refresh();
    await rpc.cards.update.mutate({ id: cards[0]!, title: 'Changed' });
    await add(groups[0]!);
    await feedComplete();
    fails = true;
    await expect(mirror.refresh()).rejects.toThrow('The disk is full.');
    fails = false;

    await mirror.refresh();

    expect(mirror.rows).toEqual(await boardOf(rpc, boardId));
  });

  it('stays in its project when the default project of its user becomes another one', async () => {
    const { world, rpc, boardId, mirror } = await givenMirror();
    const { viewer } = world.users;
    await givenMember(viewer, world.otherProject, 'viewer');
    await query(
      await testDb(),
      sql`update users set default_project_id = ${world.otherProject.id} where id = ${viewer.id}`,
    );
    await rpc.boards.update.mutate({ id: boardId, title: 'Another title' });
    await feedComplete();
    await mirror.refresh();

    expect([...mirror.rows.boards.values()].map(({ title }) => title)).toEqual(['Another title']);
    expect(mirror.rows.cards.size).toBe(6);
  });

  it('refuses a call while another one is under way, and takes one afterwards', async () => {
    const { mirror } = await givenMirror();
    const ending = new AbortController();
    const following = mirror.follow(ending.signal);

    await expect(mirror.refresh()).rejects.toThrow('The mirror is being read already.');
    ending.abort();
    await following;
    await mirror.refresh();
  });

  it.each([
    ['another board', async () => undefined],
    ['another board, which was deleted', async ({ rpc, boardId }: Given) => rpc.boards.delete.mutate({ id: boardId })],
  ])('is refused with the storage of %s', async (_, change) => {
    const given = await givenMirror();
    const { world, path, boardId } = given;
    await change(given);
    await given.mustBeEqual();
    const other = await givenBoard(world.project);

    const opened = openMirror(world.asViewer.rpc, { boardId: other, storage: fileStorage(path) });

    await expect(opened).rejects.toThrow(`The storage has board ${boardId}, not ${other}.`);
  });

  it.each([
    ['a line that is cut', (text: string) => `{"cursor":\n${text}`],
    ['an empty line', (text: string) => `\n${text}`],
    ['a line of something else', (text: string) => `{}\n${text}`],
  ])('names the file with %s, and says what to do', async (_, damage) => {
    const { path } = await givenMirror();
    await writeFile(path, damage(await readFile(path, 'utf8')));

    await expect(fileStorage(path).load()).rejects.toThrow(
      `Line 1 of ${path} can't be read. Delete the file: the mirror then reads all rows again.`,
    );
  });

  it('is refused for a board that is not in the project', async () => {
    const { asViewer, otherProject } = await givenWorld();
    const boardId = await givenBoard(otherProject);
    const mirror = await openMirror(asViewer.rpc, { boardId, storage: inMemory() });

    await expect(mirror.refresh()).rejects.toThrow(`There is no board ${boardId} in this project.`);
  });
});

const inMemory = (): MirrorStorage => ({ load: async () => undefined, save: async () => undefined });

const GROUP = { title: 'In front', position: 1 };

const move = (rpc: Client, id: number, group_id: number | null, position?: number) =>
  rpc.cards.move.mutate({ id, group_id, position: position ?? null });

async function undone(noun: Client['cards' | 'groups' | 'boards'], id: number) {
  await noun.delete.mutate({ id });
  await noun.restore.mutate({ id });
}

async function leaveFor({ world, rpc, cards }: Given) {
  const group = await givenGroup(world.project, await givenBoard(world.project));
  await move(rpc, cards[0]!, group);
}

async function comeBack(given: Given) {
  await leaveFor(given);
  await given.mustBeEqual();
  await move(given.rpc, given.cards[0]!, given.groups[1]!, 1);
}

async function untagged({ rpc, cards, mustBeEqual }: Given) {
  const { tag } = await rpc.tags.create.mutate({ name: 'A tag' });
  for (const id of cards) await rpc.cards.update.mutate({ id, tag_id: tag.id });
  await mustBeEqual();
  await rpc.tags.delete.mutate({ id: tag.id });
}

async function removed({ world, rpc, cards, mustBeEqual }: Given) {
  const { member } = world.users;
  await rpc.cards.update.mutate({ id: cards[0]!, owner_id: member.id });
  await mustBeEqual();
  await world.asOwner.rpc.members.remove.mutate({ user_id: member.id });
}
