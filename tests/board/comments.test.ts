import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { Migration20261116032001_fill_comment_threads as FillThreads } from '../../server/database/migrations/Migration20261116032001_fill_comment_threads.ts';
import { type Db, query, transact } from '../../server/database/query.ts';
import { refusalOf } from '../harness/caller.ts';
import { runMigration } from '../harness/migration.ts';
import { givenCard, givenComment, givenWorld, stored, testDb, type World } from '../harness/world.ts';

const CREATE = '/services/operations/v1/operations/comments/create';
const UNKNOWN = 2_147_483_647;

/** A comment and replies to each other, inserted as an earlier version did: without their thread. */
async function givenChain({ project, users }: World, length: number) {
  const card_id = await givenCard(project);
  const first = await givenComment(project, card_id, users.member);
  const added = await query(
    await testDb(),
    sql<{ id: number }>`
      insert into comments (id, project_id, card_id, user_id, parent_comment_id, comment)
      select ${first}::int + n, ${project.id}, ${card_id}, ${users.member.id}, ${first}::int + n - 1, 'A reply'
      from generate_series(1, ${length - 1}::int) n returning id`,
  );
  await query(await testDb(), sql`select setval(pg_get_serial_sequence('comments', 'id'), ${first + length})`);
  return { card_id, ids: [first, ...added.map(({ id }) => id)] };
}

describe('POST …/comments/create', () => {
  it('404 or 403 for the card comes before 422 for the parent, which must be live', async () => {
    const { asMember, asOutsider, project, users } = await givenWorld();
    const card_id = await givenCard(project);
    const deleted = await givenComment(project, card_id, users.member, { deleted_at: new Date() });
    const reply = { card_id, comment: 'x', parent_comment_id: deleted };

    expect((await asMember.post(CREATE, { ...reply, card_id: UNKNOWN })).status).toBe(404);
    expect((await asOutsider.post(CREATE, reply)).status).toBe(403);
    expect(await asMember.post(CREATE, reply)).toMatchObject({
      status: 422,
      body: { message: 'parent_comment_id is not a comment of this card.' },
    });
  });

  it('400 for a reply below 100 levels of replies, and nothing is stored', async () => {
    const world = await givenWorld();
    const { card_id, ids } = await givenChain(world, 100);
    const reply = (parent_comment_id: number) => ({ card_id, comment: 'x', parent_comment_id });

    const last = await world.asMember.post(CREATE, reply(ids[99]!));
    const { id } = last.body.data.comment;
    const refused = await world.asMember.post(CREATE, reply(id));

    const message = 'Replies nest at most 100 levels deep. Reply to an earlier comment of the thread.';
    expect(last.status).toBe(201);
    expect(await stored('comments', id)).toMatchObject({ root_comment_id: ids[0], depth: 100 });
    expect(refused).toMatchObject({ status: 400, body: { error: true, message, data: [] } });
    expect(refused.headers.get('x-error-reason')).toBe('thread_too_deep');
    expect((await world.asMember.post(CREATE, reply(ids[98]!))).status).toBe(201);
    expect((await world.asOutsider.post(CREATE, reply(id))).status).toBe(403);
    const { threads } = await world.asViewer.rpc.comments.list.query({ card_id });
    expect(threads.map(({ replies_count }) => replies_count)).toEqual([101]);
  });
});

describe('a chain of replies from before the limit', () => {
  it('is listed, answered and deleted in full', async () => {
    const world = await givenWorld();
    const { list, listReplies, create, delete: remove } = world.asMember.rpc.comments;
    const { card_id, ids } = await givenChain(world, 600);
    const below = async (id: number) => (await listReplies.query({ id, limit: 2 })).replies.map((reply) => reply.id);

    const { threads } = await list.query({ card_id });
    expect(threads).toMatchObject([{ id: ids[0], replies_count: 599 }]);
    expect(threads[0]!.replies.map(({ id }) => id)).toEqual(ids.slice(1, 101));
    expect(await below(ids[0]!)).toEqual(ids.slice(1, 3));
    expect(await below(ids[500]!)).toEqual(ids.slice(501, 503));
    expect(await below(ids.at(-1)!)).toEqual([]);
    const reply = { card_id, comment: 'x', parent_comment_id: ids.at(-1)! };
    expect(await refusalOf(create.mutate(reply))).toMatchObject({ status: 400 });

    await remove.mutate({ id: ids[400]! });
    expect((await list.query({ card_id })).threads[0]!.replies_count).toBe(399);
    await remove.mutate({ id: ids[0]! });
    expect((await list.query({ card_id })).threads).toEqual([]);
  });
});

describe('the thread of a reply', () => {
  const threadsOf = (db: Db, ids: number[]) =>
    query(db, sql`select id, root_comment_id, depth from comments where id = any(${ids}::int[]) order by id`);
  const expectedOf = (ids: number[]) =>
    ids.map((id, depth) => ({ id, root_comment_id: depth === 0 ? null : ids[0], depth }));

  it('is filled by the migration, also where a node of the previous version replies before its end', async () => {
    const world = await givenWorld();
    // More than one step of the migration.
    const { card_id, ids } = await givenChain(world, 1005);
    const late = 2_000_000_001;
    const undo = new Error('Leaves the tables as they were.');

    const migrated = transact(await testDb(), async (db) => {
      await query(db, sql`alter table comments drop constraint comments_thread_check`);
      await query(db, sql`update comments set root_comment_id = null, depth = 0 where card_id = ${card_id}`);
      await query(
        db,
        sql`insert into comments (id, project_id, card_id, user_id, parent_comment_id, comment)
          values (${late}, ${world.project.id}, ${card_id}, ${world.users.member.id}, ${ids.at(-1)!}, 'x')`,
      );
      expect(await threadsOf(db, [late])).toEqual(expectedOf([...ids, late]).slice(-1));

      await runMigration(FillThreads, db);

      expect(await threadsOf(db, [...ids, late])).toEqual(expectedOf([...ids, late]));
      throw undo;
    });

    await expect(migrated).rejects.toBe(undo);
  });

  it('is filled for inserts of the previous version, and must be complete and of the same card', async () => {
    const world = await givenWorld();
    const [{ ids }, { ids: others }] = [await givenChain(world, 5), await givenChain(world, 1)];
    const db = await testDb();
    const change = (changes: string) =>
      query(db, sql`update comments set ${sql.raw(changes)} where id = ${ids[1]!}`).catch(({ code }) => code);

    expect(await threadsOf(db, ids)).toEqual(expectedOf(ids));
    expect(await change('root_comment_id = null')).toBe('23514');
    expect(await change('depth = 0')).toBe('23514');
    expect(await change(`root_comment_id = ${others[0]}`)).toBe('23503');
  });
});

describe('comments over RPC', () => {
  it('list returns pages of threads, oldest first; listReplies what is below any comment', async () => {
    const { asViewer, project, users } = await givenWorld();
    const { list, listReplies } = asViewer.rpc.comments;
    const card_id = await givenCard(project);
    const add = (state: object = {}) => givenComment(project, card_id, users.member, state);
    const first = await add();
    const reply = await add({ parent_comment_id: first });
    const second = await add();
    const deeper = await add({ parent_comment_id: reply });
    await add({ parent_comment_id: reply, deleted_at: new Date() });
    await add({ deleted_at: new Date() });
    await givenComment(project, await givenCard(project), users.member);
    const below = async (id: number) => (await listReplies.query({ id })).replies.map((each) => each.id);

    const page = await list.query({ card_id, limit: 1 });
    const last = await list.query({ card_id, limit: 1, cursor: page.next_cursor });

    const shown = [...page.threads, ...last.threads].map(({ id, replies }) => [id, replies.map((each) => each.id)]);
    expect(shown).toEqual([
      [first, [reply, deeper]],
      [second, []],
    ]);
    expect(page.threads[0]!.replies[0]!.created_at).toBeInstanceOf(Date);
    expect(last.next_cursor).toBeNull();
    expect([await below(first), await below(reply), await below(deeper)]).toEqual([[reply, deeper], [deeper], []]);
  });

  it('a thread comes with up to 100 replies; listReplies pages through the rest', async () => {
    const { asViewer, project, users } = await givenWorld();
    const { list, listReplies } = asViewer.rpc.comments;
    const card_id = await givenCard(project);
    const id = await givenComment(project, card_id, users.member);
    await query(
      await testDb(),
      sql`
        insert into comments (project_id, card_id, user_id, parent_comment_id, comment)
        select ${project.id}, ${card_id}, ${users.member.id}, ${id}, n::text from generate_series(1, 121) as n`,
    );

    const [thread] = (await list.query({ card_id })).threads;
    const first = await listReplies.query({ id, limit: 15, cursor: thread!.replies_next_cursor });
    const second = await listReplies.query({ id, limit: 15, cursor: first.next_cursor });

    expect(thread).toMatchObject({ replies_count: 121, replies: { length: 100 } });
    const texts = [...thread!.replies, ...first.replies, ...second.replies].map(({ comment }) => comment);
    expect(texts).toEqual(Array.from({ length: 121 }, (_, n) => String(n + 1)));
    expect(second.next_cursor).toBeNull();
  });

  it('markRead keeps the first read_at', async () => {
    const { asMember, project, users } = await givenWorld();
    const id = await givenComment(project, await givenCard(project), users.owner);

    const first = await asMember.rpc.comments.markRead.mutate({ id });
    const again = await asMember.rpc.comments.markRead.mutate({ id });

    expect(first.comment).toMatchObject({ is_read: true, read_at: expect.any(Date) });
    expect(again.comment.read_at).toEqual(first.comment.read_at);
  });

  it('delete is for the author or an owner, and deletes all replies too', async () => {
    const { asMember, asOwner, project, users } = await givenWorld();
    const card_id = await givenCard(project);
    const mine = await givenComment(project, card_id, users.member);
    const reply = await givenComment(project, card_id, users.owner, { parent_comment_id: mine });
    const theirs = await givenComment(project, card_id, users.owner);

    expect(await refusalOf(asMember.rpc.comments.delete.mutate({ id: theirs }))).toEqual({
      status: 403,
      message: 'Only its author or an owner may delete a comment.',
    });
    await asMember.rpc.comments.delete.mutate({ id: mine });
    expect((await stored('comments', reply)).deleted_at).not.toBeNull();
    await asOwner.rpc.comments.delete.mutate({ id: theirs });
    expect((await stored('comments', theirs)).deleted_at).not.toBeNull();
  });

  it('404 once their card is deleted, and they are kept in the database', async () => {
    const { asMember, project, users } = await givenWorld();
    const { list, markRead, delete: remove } = asMember.rpc.comments;
    const card_id = await givenCard(project);
    const id = await givenComment(project, card_id, users.member);

    await asMember.rpc.cards.delete.mutate({ id: card_id });

    const calls = [list.query({ card_id }), markRead.mutate({ id }), remove.mutate({ id })];
    const refusals = await Promise.all(calls.map((call) => refusalOf(call)));
    expect(refusals.map(({ status }) => status)).toEqual([404, 404, 404]);
    expect((await stored('comments', id)).deleted_at).toBeNull();
  });
});
