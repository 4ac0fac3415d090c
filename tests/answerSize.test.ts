import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../server/database/query.ts';
import { refusalOf } from './harness/caller.ts';
import { countStatements } from './harness/service.ts';
import {
  givenBoard,
  givenCard,
  givenComment,
  givenGroup,
  givenMasterBoard,
  givenWorld,
  NOWHERE,
  type TestProject,
  testDb,
} from './harness/world.ts';

/** One answer has at most 8 MiB of JSON. */

/** Makes a text of a row longer than callers can send. */
async function lengthen(
  table: string,
  column: string,
  id: number,
  megabytes: number,
  character = 'x',
): Promise<number> {
  const text = sql`repeat(${character}, ${megabytes * 1024 * 1024})`;
  await query(await testDb(), sql`update ${sql.table(table)} set ${sql.ref(column)} = ${text} where id = ${id}`);
  return id;
}

async function givenCards(project: TestProject, group_id: number, { count = 1, characters = 1 }): Promise<void> {
  await query(
    await testDb(),
    sql`
      insert into cards (project_id, platform_id, group_id, title, description, position, sort_order)
      select ${project.id}, ${project.platform_id}, ${group_id}, 'A card', repeat('x', ${characters}), n, n
      from generate_series(1, ${count}) as n`,
  );
}

describe('a batch', () => {
  it('429 for the calls that start when its answers have reached the limit; a retry works', async () => {
    const { asViewer, project } = await givenWorld();
    const id = await givenBoard(project);
    await lengthen('cards', 'description', await givenCard(project, { group_id: await givenGroup(project, id) }), 2);

    const calls = await Promise.allSettled(Array.from({ length: 12 }, () => asViewer.rpc.boards.get.query({ id })));

    const refused = calls.filter((call): call is PromiseRejectedResult => call.status === 'rejected');
    expect(refused.length).toBeGreaterThanOrEqual(1);
    expect(refused.length).toBeLessThanOrEqual(8);
    for (const { reason } of refused) {
      expect(reason).toMatchObject({
        status: 429,
        message: 'The answers of this batch are too large. Retry the remaining calls.',
        retryAfterSeconds: 1,
      });
    }
    expect((await asViewer.rpc.boards.get.query({ id })).board.id).toBe(id);
  });
});

describe('boards.get', () => {
  it('400 for a board that is too large, before it is built; cards.list still pages through its cards', async () => {
    const { asViewer, project } = await givenWorld();
    const id = await givenBoard(project);
    const group_id = await givenGroup(project, id);
    await givenCards(project, group_id, { count: 150, characters: 65_536 });

    let answer: unknown;
    const statements = await countStatements(async () => {
      answer = await asViewer.post('/services/operations/v1/operations/boards/get', { id });
    });
    const page = await asViewer.rpc.cards.list.query({ group_id, limit: 2 });
    const next = await asViewer.rpc.cards.list.query({ group_id, limit: 2, cursor: page.next_cursor });

    expect(answer).toMatchObject({
      status: 400,
      body: {
        error: true,
        message: 'The board is too large for one answer. Read its cards page by page: cards.list with group_id.',
        data: [],
      },
    });
    expect(statements).toBe(2);
    expect([...page.cards, ...next.cards].map(({ position }) => position)).toEqual([1, 2, 3, 4]);
  });

  it('200 just below the limit', async () => {
    const { asViewer, project } = await givenWorld();
    const id = await givenBoard(project);
    await lengthen('groups', 'description', await givenGroup(project, id), 7);

    expect((await asViewer.rpc.boards.get.query({ id })).board.groups).toHaveLength(1);
  });

  it('400 when the groups alone are too large', async () => {
    const { asViewer, project } = await givenWorld();
    const id = await givenBoard(project);
    for (let n = 0; n < 3; n++) await lengthen('groups', 'description', await givenGroup(project, id), 3);

    expect(await refusalOf(asViewer.rpc.boards.get.query({ id }))).toMatchObject({ status: 400 });
  });

  it('400 for a board that is too large because of quotes, which JSON escapes', async () => {
    const { asViewer, project } = await givenWorld();
    const id = await givenBoard(project);
    await lengthen('groups', 'description', await givenGroup(project, id), 5, '"');

    expect(await refusalOf(asViewer.rpc.boards.get.query({ id }))).toMatchObject({ status: 400 });
  });

  it('400 for a master board that is too large because of control characters of an earlier version', async () => {
    const { asSuperadmin } = await givenWorld();
    const { board: id, group } = await givenMasterBoard();
    await lengthen('groups', 'description', group, 2, '\u0001');

    expect(await refusalOf(asSuperadmin.rpc.masterBoards.get.query({ id }))).toMatchObject({ status: 400 });
  });

  it('403 for a large board of another project', async () => {
    const { asOutsider, project } = await givenWorld();
    const id = await givenBoard(project);
    await lengthen('groups', 'description', await givenGroup(project, id), 9);

    expect(await refusalOf(asOutsider.rpc.boards.get.query({ id }))).toMatchObject({ status: 403 });
  });
});

describe('a page', () => {
  it('of cards ends early when they are long, but has at least one', async () => {
    const { asViewer, project } = await givenWorld();
    const sizes = [9, 1, 1];
    const ids: number[] = [];
    for (const [sort_order, size] of sizes.entries()) {
      ids.push(await lengthen('cards', 'description', await givenCard(project, { sort_order }), size));
    }

    const pages: number[][] = [];
    let cursor: string | null = null;
    do {
      const page: { cards: { id: number }[]; next_cursor: string | null } = await asViewer.rpc.cards.list.query({
        cursor,
        limit: 200,
      });
      pages.push(page.cards.map(({ id }) => ids.indexOf(id)));
      cursor = page.next_cursor;
    } while (cursor !== null);

    expect(pages).toEqual([[0], [1, 2]]);
  });

  it('of cards ends early because of quotes, which JSON escapes', async () => {
    const { asViewer, project } = await givenWorld();
    const ids: number[] = [];
    for (const [sort_order, megabytes] of [2, 3, 2].entries()) {
      ids.push(await lengthen('cards', 'description', await givenCard(project, { sort_order }), megabytes, '"'));
    }

    const { cards, next_cursor } = await asViewer.rpc.cards.list.query({});

    expect(cards.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    expect(next_cursor).not.toBeNull();
  });

  it('of comments ends early because of quotes, which JSON escapes', async () => {
    const { asViewer, project, users } = await givenWorld();
    const card_id = await givenCard(project);
    const ids: number[] = [];
    for (const megabytes of [2, 3, 2]) {
      const id = await givenComment(project, card_id, users.member);
      ids.push(await lengthen('comments', 'comment', id, megabytes, '"'));
    }

    const { threads, next_cursor } = await asViewer.rpc.comments.list.query({ card_id });

    expect(threads.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    expect(next_cursor).not.toBeNull();
  });

  it('of comments ends early when they are long, and includes the first replies of each thread', async () => {
    const { asViewer, project, users } = await givenWorld();
    const card_id = await givenCard(project);
    const add = async (megabytes: number, parent_comment_id?: number) => {
      const id = await givenComment(project, card_id, users.member, { parent_comment_id });
      return lengthen('comments', 'comment', id, megabytes);
    };
    const first = await add(3);
    const second = await add(3);
    const replies = [await add(3, second), await add(3, second), await add(3, second)];
    const third = await add(1);

    const page = await asViewer.rpc.comments.list.query({ card_id });
    const next = await asViewer.rpc.comments.list.query({ card_id, cursor: page.next_cursor });
    const others = await asViewer.rpc.comments.listReplies.query({
      id: second,
      cursor: page.threads[1]!.replies_next_cursor,
    });

    const shown = page.threads.map((thread) => [thread.id, thread.replies.map(({ id }) => id), thread.replies_count]);
    expect(shown).toEqual([
      [first, [], 0],
      [second, replies.slice(0, 1), 3],
    ]);
    expect(page.threads[0]!.replies_next_cursor).toBeNull();
    expect(next).toMatchObject({ threads: [{ id: third, replies: [], replies_next_cursor: null }], next_cursor: null });
    expect(others.replies.map(({ id }) => id)).toEqual(replies.slice(1));
    expect(others.next_cursor).toBeNull();
  });
});

describe('replies', () => {
  it('come with their thread, up to 100; listReplies pages through the rest', async () => {
    const { asViewer, project, users } = await givenWorld();
    const card_id = await givenCard(project);
    const root = await givenComment(project, card_id, users.member);
    const middle = await givenComment(project, card_id, users.member, { parent_comment_id: root });
    await query(
      await testDb(),
      sql`
        insert into comments (project_id, card_id, user_id, parent_comment_id, comment)
        select ${project.id}, ${card_id}, ${users.member.id}, ${middle}, n::text from generate_series(1, 120) as n`,
    );

    const { threads } = await asViewer.rpc.comments.list.query({ card_id });
    const [thread] = threads;
    const page = { id: root, limit: 15 };
    const first = await asViewer.rpc.comments.listReplies.query({ ...page, cursor: thread!.replies_next_cursor });
    const second = await asViewer.rpc.comments.listReplies.query({ ...page, cursor: first.next_cursor });

    expect(thread).toMatchObject({ replies_count: 121, replies: { length: 100 } });
    const texts = [...thread!.replies, ...first.replies, ...second.replies].map(({ comment }) => comment);
    expect(texts).toEqual(['A comment', ...Array.from({ length: 120 }, (_, n) => String(n + 1))]);
    expect(second.next_cursor).toBeNull();
  });

  it('are listed for any comment, without deleted ones', async () => {
    const { asViewer, project, users } = await givenWorld();
    const card_id = await givenCard(project);
    const add = (state: object = {}) => givenComment(project, card_id, users.member, state);
    const root = await add();
    const reply = await add({ parent_comment_id: root });
    const deeper = await add({ parent_comment_id: reply });
    await add({ parent_comment_id: reply, deleted_at: new Date() });

    const below = async (id: number) =>
      (await asViewer.rpc.comments.listReplies.query({ id })).replies.map((each) => each.id);

    expect(await below(root)).toEqual([reply, deeper]);
    expect(await below(reply)).toEqual([deeper]);
    expect(await below(deeper)).toEqual([]);
  });
});

describe('a list of boards', () => {
  it('400 when they are too large; those of one tool can still be listed', async () => {
    const { asViewer, project } = await givenWorld();
    for (let n = 0; n < 3; n++) await lengthen('boards', 'description', await givenBoard(project), 3);
    await givenBoard(project, { tool_key: 'seo' });

    expect(await refusalOf(asViewer.rpc.boards.list.query())).toEqual({
      status: 400,
      message: 'The boards are too large for one answer. List those of one tool_key.',
    });
    expect((await asViewer.rpc.boards.list.query({ tool_key: 'seo' })).boards).toHaveLength(1);
  });

  it('400 when they, or the groups of a master board, are too large because of characters that JSON escapes', async () => {
    const { asViewer, asSuperadmin, project } = await givenWorld();
    const { board: board_id, group } = await givenMasterBoard();
    await lengthen('boards', 'description', await givenBoard(project), 2, '\u0001');
    await lengthen('groups', 'description', group, 5, '"');

    expect(await refusalOf(asViewer.rpc.boards.list.query())).toMatchObject({ status: 400 });
    expect(await refusalOf(asSuperadmin.rpc.masterGroups.list.query({ board_id }))).toMatchObject({ status: 400 });
  });

  it('400 when master boards are too large', async () => {
    const { asSuperadmin } = await givenWorld();
    const id = await lengthen('boards', 'description', await givenBoard(NOWHERE, { is_master: true }), 9);

    const refusal = await refusalOf(asSuperadmin.rpc.masterBoards.list.query());
    await query(await testDb(), sql`update boards set deleted_at = now() where id = ${id}`);

    expect(refusal).toEqual({
      status: 400,
      message: 'The master boards are too large for one answer. Shorten their descriptions.',
    });
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
