import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { refusalOf } from '../harness/caller.ts';
import { pagesOf } from '../harness/pages.ts';
import { patientQueues } from '../harness/patientQueue.ts';
import { countStatements, givenService } from '../harness/service.ts';
import {
  givenBoard,
  givenCard,
  givenComment,
  givenGroup,
  givenMasterBoard,
  givenWorld,
  NOWHERE,
  testDb,
} from '../harness/world.ts';

/** One answer has at most 8 MiB of JSON. */

const LONG_TEXT = { boards: 'description', groups: 'description', cards: 'description', comments: 'comment' };

/** Makes the text of a row longer than callers can send. JSON escapes take two bytes for a quote, six for U+0001. */
async function lengthen(table: keyof typeof LONG_TEXT, id: number, megabytes: number, character = 'x') {
  const text = sql`repeat(${character}, ${Math.round(megabytes * 1024 * 1024)})`;
  const column = sql.ref(LONG_TEXT[table]);
  await query(await testDb(), sql`update ${sql.table(table)} set ${column} = ${text} where id = ${id}`);
  return id;
}

describe('a batch', () => {
  it('429 for the calls that start when its answers have reached the limit; a retry works', async () => {
    const { asViewer, project } = await givenWorld(await givenService({}, await patientQueues()));
    const id = await givenBoard(project);
    await lengthen('groups', await givenGroup(project, id), 2);
    const read = () => asViewer.rpc.boards.get.query({ id });

    const calls = await Promise.allSettled(Array.from({ length: 12 }, read));

    const refused = calls.filter((call) => call.status === 'rejected');
    expect(refused.length).toBeGreaterThanOrEqual(1);
    expect(refused.length).toBeLessThanOrEqual(8);
    for (const { reason } of refused)
      expect(reason).toMatchObject({
        status: 429,
        message: 'The answers of this batch are too large. Retry the remaining calls.',
        retryAfterSeconds: 1,
      });
    expect((await read()).board.id).toBe(id);
  });
});

describe('boards.get', () => {
  it('400 for a board that is too large, before it is built; cards.list still pages through its cards', async () => {
    const { asViewer, project } = await givenWorld();
    const id = await givenBoard(project);
    const group_id = await givenGroup(project, id);
    await query(
      await testDb(),
      sql`
        insert into cards (project_id, platform_id, group_id, title, description, position, sort_order)
        select ${project.id}, ${project.platform_id}, ${group_id}, 'A card', repeat('x', 65536), n, n
        from generate_series(1, 130) as n`,
    );
    const list = (cursor: string | null) => asViewer.rpc.cards.list.query({ board_id: id, limit: 2, cursor });

    let answer: unknown;
    const statements = await countStatements(async () => {
      answer = await asViewer.post('/services/operations/v1/operations/boards/get', { id });
    });
    const page = await list(null);
    const next = await list(page.next_cursor);

    const message =
      'The board is too large for one answer. Read it page by page: groups.list and cards.list with its board_id.';
    expect(answer).toMatchObject({ status: 400, body: { error: true, message, data: [] } });
    // The caller, whether it is a small board, and its size.
    expect(statements).toBe(3);
    expect([...page.cards, ...next.cards].map(({ position }) => position)).toEqual([1, 2, 3, 4]);
    expect((await asViewer.rpc.groups.list.query({ board_id: id })).groups).toMatchObject([{ id: group_id }]);
  });

  it.each([
    ['200 just below the limit', [7], 'x', 'Viewer', 200],
    ['400 when the groups alone are too large', [3, 3, 3], 'x', 'Viewer', 400],
    ['400 because of quotes, which JSON escapes', [5], '"', 'Viewer', 400],
    ['403 for a large board of another project', [9], 'x', 'Outsider', 403],
  ] as const)('%s', async (_, megabytes, character, caller, status) => {
    const { project, ...callers } = await givenWorld();
    const id = await givenBoard(project);
    for (const size of megabytes) await lengthen('groups', await givenGroup(project, id), size, character);

    const read = callers[`as${caller}`].rpc.boards.get.query({ id });

    expect(status === 200 ? { status: (await read) && 200 } : await refusalOf(read)).toMatchObject({ status });
  });
});

describe('a list of boards or groups', () => {
  it('400 when they are too large; those of one tool can still be listed', async () => {
    const { asViewer, project } = await givenWorld();
    const { list } = asViewer.rpc.boards;
    for (let n = 0; n < 3; n++) await lengthen('boards', await givenBoard(project), 3);
    const tool = await lengthen('boards', await givenBoard(project, { tool_key: 'escaped' }), 2, '\u0001');
    await givenBoard(project, { tool_key: 'seo' });

    const message = 'The boards are too large for one answer. List those of one tool_key.';
    expect(await refusalOf(list.query())).toEqual({ status: 400, message });
    expect(await refusalOf(list.query({ tool_key: 'escaped' }))).toMatchObject({ status: 400 });
    expect((await list.query({ tool_key: 'seo' })).boards).toHaveLength(1);
    expect(tool).toBeGreaterThan(0);
  });

  it.each([
    ['long texts', 9, 'x'],
    ['characters that JSON escapes', 2, '\u0001'],
  ])('400 for templates with %s', async (_, megabytes, character) => {
    const { masterBoards, masterGroups } = (await givenWorld()).asSuperadmin.rpc;
    const { board: id, group } = await givenMasterBoard();
    await lengthen('groups', group, megabytes, character);
    const large = await lengthen('boards', await givenBoard(NOWHERE, { is_master: true }), megabytes, character);

    const refusals = await Promise.all([
      refusalOf(masterBoards.get.query({ id })),
      refusalOf(masterGroups.list.query({ board_id: id })),
      refusalOf(masterBoards.list.query()),
    ]);
    await query(await testDb(), sql`update boards set deleted_at = now() where id = ${large}`);

    const says = (text: string) => ({ status: 400, message: text });
    expect(refusals).toEqual([
      says('The master board is too large for one answer. Shorten the descriptions on it.'),
      says('The master groups are too large for one answer. Shorten their descriptions.'),
      says('The master boards are too large for one answer. Shorten their descriptions.'),
    ]);
  });
});

describe('a page', () => {
  it('of cards ends early when they are long as JSON, but has at least one', async () => {
    const { asViewer, project } = await givenWorld();
    const ids: number[] = [];
    for (const [sort_order, size] of [4.1, 0.5, 0.5].entries())
      ids.push(await lengthen('cards', await givenCard(project, { sort_order }), size, '"'));

    const pages = await pagesOf((cursor) => asViewer.rpc.cards.list.query({ cursor }));

    expect(pages.map(({ cards }) => cards.map(({ id }) => ids.indexOf(id)))).toEqual([[0], [1, 2]]);
  });

  it('of comments ends early when they are long as JSON, and includes the first replies of each thread', async () => {
    const { asViewer, project, users } = await givenWorld();
    const { list, listReplies } = asViewer.rpc.comments;
    const card_id = await givenCard(project);
    const add = async (megabytes: number, parent_comment_id?: number) => {
      const id = await givenComment(project, card_id, users.member, { parent_comment_id });
      return lengthen('comments', id, megabytes, '"');
    };
    const first = await add(1.5);
    const second = await add(1.5);
    const replies = [await add(1.5, second), await add(1.5, second), await add(1.5, second)];
    const third = await add(0.1);

    const page = await list.query({ card_id });
    const next = await list.query({ card_id, cursor: page.next_cursor });
    const others = await listReplies.query({ id: second, cursor: page.threads[1]!.replies_next_cursor });

    const shown = page.threads.map((thread) => [thread.id, thread.replies.map(({ id }) => id), thread.replies_count]);
    expect(shown).toEqual([
      [first, [], 0],
      [second, replies.slice(0, 1), 3],
    ]);
    expect(page.threads[0]!.replies_next_cursor).toBeNull();
    expect(next).toMatchObject({ threads: [{ id: third, replies: [], replies_next_cursor: null }], next_cursor: null });
    expect(others).toMatchObject({ replies: replies.slice(1).map((id) => ({ id })), next_cursor: null });
  });
});

describe('the number of boards and groups', () => {
  it('400 for the 1,001st board of a project; deleting one makes room', async () => {
    const { asMember, project } = await givenWorld();
    await query(
      await testDb(),
      sql`
        insert into boards (project_id, platform_id, title, position)
        select ${project.id}, ${project.platform_id}, 'A board', n from generate_series(1, 999) as n`,
    );
    const create = () => asMember.rpc.boards.create.mutate({ title: 'One more' });

    const { board } = await create();
    expect(board).toMatchObject({ position: 1000 });
    expect(await refusalOf(create())).toEqual({ status: 400, message: 'A project has at most 1000 boards.' });
    await asMember.rpc.boards.delete.mutate({ id: board.id });
    expect((await create()).board).toMatchObject({ title: 'One more' });
  });

  it('400 for the 1,001st group of a board, and of a master board', async () => {
    const { asMember, asOutsider, asSuperadmin, project } = await givenWorld();
    const board_id = await givenBoard(project);
    const { board: master } = await givenMasterBoard();
    await query(
      await testDb(),
      sql`
        insert into groups (project_id, platform_id, board_id, is_master, title, position)
        select ${project.id}::int, ${project.platform_id}::int, ${board_id}::int, false, 'A group', n from generate_series(1, 999) as n
        union all
        select null, null, ${master}::int, true, 'A group', n from generate_series(2, 999) as n`,
    );
    const create = (caller = asMember) => caller.rpc.groups.create.mutate({ board_id, title: 'One more' });
    const createMaster = () => asSuperadmin.rpc.masterGroups.create.mutate({ board_id: master, title: 'One more' });

    expect((await create()).group).toMatchObject({ position: 1000 });
    expect((await createMaster()).group).toMatchObject({ position: 1000 });
    const refusal = { status: 400, message: 'A board has at most 1000 groups.' };
    expect(await refusalOf(create())).toEqual(refusal);
    expect(await refusalOf(createMaster())).toEqual(refusal);
    expect(await refusalOf(create(asOutsider))).toMatchObject({ status: 403 });
  });

  it('400 for the 1,001st master board', async () => {
    const { asSuperadmin } = await givenWorld();
    await query(
      await testDb(),
      sql`
        insert into boards (is_master, title, tool_key)
        select true, 'One of many', 'nobody-has-this' from generate_series(1, 1000)`,
    );

    const refusal = await refusalOf(asSuperadmin.rpc.masterBoards.create.mutate({ title: 'One more' }));
    await query(await testDb(), sql`update boards set deleted_at = now() where title = 'One of many'`);

    expect(refusal).toEqual({ status: 400, message: 'There are at most 1000 master boards.' });
  });
});
