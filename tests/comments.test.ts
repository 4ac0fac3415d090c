import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { Migration20261116032001_fill_comment_threads as FillThreads } from '../server/database/migrations/Migration20261116032001_fill_comment_threads.ts';
import { type Db, query, transact } from '../server/database/query.ts';
import { refusalOf } from './harness/caller.ts';
import { countStatements, databaseUrl, testDatabase } from './harness/service.ts';
import { givenCard, givenComment, givenWorld, stored, testDb, type World } from './harness/world.ts';

const CREATE = '/services/operations/v1/operations/comments/create';

describe('POST …/comments/create', () => {
  it('201 with the comment', async () => {
    const { asMember, project, users } = await givenWorld();
    const card_id = await givenCard(project);

    const answer = await asMember.post(CREATE, { card_id, comment: ' Ready? ' });

    expect(answer).toMatchObject({ status: 201, body: { error: false, message: 'Comment created.' } });
    expect(answer.body.data.comment).toEqual({
      id: expect.any(Number),
      project_id: project.id,
      card_id,
      user_id: users.member.id,
      parent_comment_id: null,
      comment: 'Ready?',
      is_read: false,
      read_at: null,
      created_at: expect.stringMatching(/Z$/),
      updated_at: expect.stringMatching(/Z$/),
      deleted_at: null,
    });
  });

  it('201 for a reply to a comment of the same card, at any depth', async () => {
    const { asMember, asOwner, project, users } = await givenWorld();
    const card_id = await givenCard(project);
    const parent_comment_id = await givenComment(project, card_id, users.owner);

    const reply = await asMember.post(CREATE, { card_id, comment: 'A reply', parent_comment_id });
    const deeper = await asOwner.post(CREATE, {
      card_id,
      comment: 'Deeper',
      parent_comment_id: reply.body.data.comment.id,
    });

    expect(reply.body.data.comment).toMatchObject({ parent_comment_id });
    expect(deeper).toMatchObject({
      status: 201,
      body: { data: { comment: { parent_comment_id: reply.body.data.comment.id } } },
    });
  });

  it('422 for a parent that is unknown, deleted or of another card', async () => {
    const { asMember, project, users } = await givenWorld();
    const [card_id, other] = [await givenCard(project), await givenCard(project)];
    const parents = [
      2147483647,
      await givenComment(project, card_id, users.member, { deleted_at: new Date() }),
      await givenComment(project, other, users.member),
    ];

    for (const parent_comment_id of parents) {
      const answer = await asMember.post(CREATE, { card_id, comment: 'x', parent_comment_id });
      expect(answer.status).toBe(422);
      expect(answer.body).toEqual({
        message: 'parent_comment_id is not a comment of this card.',
        errors: { parent_comment_id: ['parent_comment_id is not a comment of this card.'] },
      });
    }
  });

  it('422 for missing fields', async () => {
    const { asMember } = await givenWorld();

    expect((await asMember.post(CREATE, { comment: '  ' })).body.errors).toEqual({
      card_id: ['card_id is required.'],
      comment: ['comment is required.'],
    });
  });

  it('404 or 403 for the card comes before 422 for the parent', async () => {
    const { asMember, asOutsider, project } = await givenWorld();
    const card_id = await givenCard(project);

    expect(
      (await asMember.post(CREATE, { card_id: 2147483647, comment: 'x', parent_comment_id: 2147483647 })).status,
    ).toBe(404);
    expect((await asOutsider.post(CREATE, { card_id, comment: 'x', parent_comment_id: 2147483647 })).status).toBe(403);
  });

  it('runs two statements, including the token check', async () => {
    const { asMember, project } = await givenWorld();
    const card_id = await givenCard(project);

    const created = await asMember.post(CREATE, { card_id, comment: 'x' });
    const parent_comment_id = created.body.data.comment.id;

    expect(await countStatements(() => asMember.post(CREATE, { card_id, comment: 'x' }))).toBe(2);
    expect(await countStatements(() => asMember.post(CREATE, { card_id, comment: 'x', parent_comment_id }))).toBe(2);
  });

  it('400 for a reply below 100 levels of replies, on both surfaces, and nothing is stored', async () => {
    const world = await givenWorld();
    const { card_id, ids } = await givenChain(world, 100);
    const reply = (at: number) => ({ card_id, comment: 'x', parent_comment_id: ids[at]! });

    const last = await world.asMember.post(CREATE, reply(99));
    const parent_comment_id: number = last.body.data.comment.id;
    const refused = await world.asMember.post(CREATE, { ...reply(99), parent_comment_id });

    const message = 'Replies nest at most 100 levels deep. Reply to an earlier comment of the thread.';
    expect(last.status).toBe(201);
    expect(await stored('comments', parent_comment_id)).toMatchObject({ root_comment_id: ids[0], depth: 100 });
    expect(refused).toMatchObject({ status: 400, body: { error: true, message, data: [] } });
    expect(refused.headers.get('x-error-reason')).toBe('thread_too_deep');
    expect(await refusalOf(world.asMember.rpc.comments.create.mutate({ ...reply(99), parent_comment_id }))).toEqual({
      status: 400,
      message,
    });
    expect((await world.asMember.post(CREATE, reply(98))).status).toBe(201);
    expect((await world.asOutsider.post(CREATE, { ...reply(99), parent_comment_id })).status).toBe(403);
    const { threads } = await world.asViewer.rpc.comments.list.query({ card_id });
    expect(threads.map(({ replies_count }) => replies_count)).toEqual([101]);
  });
});

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

describe('a chain of replies from before the limit', () => {
  // Following parents one by one took seconds for a tenth of these, and a 500 after 30 seconds.
  const LENGTH = databaseUrl ? 8_000 : 2_000;

  it('is listed, answered and deleted in full', async () => {
    const world = await givenWorld();
    const { asViewer, asMember } = world;
    const { card_id, ids } = await givenChain(world, LENGTH);
    const listReplies = async (id: number) => {
      const { replies } = await asViewer.rpc.comments.listReplies.query({ id, limit: 2 });
      return replies.map((reply) => reply.id);
    };

    const { threads } = await asViewer.rpc.comments.list.query({ card_id });
    expect(threads).toMatchObject([{ id: ids[0], replies_count: LENGTH - 1 }]);
    expect(threads[0]!.replies.map(({ id }) => id)).toEqual(ids.slice(1, 101));
    expect(await listReplies(ids[0]!)).toEqual(ids.slice(1, 3));
    expect(await listReplies(ids[500]!)).toEqual(ids.slice(501, 503));
    expect(await listReplies(ids.at(-1)!)).toEqual([]);
    const reply = { card_id, comment: 'x', parent_comment_id: ids.at(-1)! };
    expect(await refusalOf(asMember.rpc.comments.create.mutate(reply))).toMatchObject({ status: 400 });

    await asMember.rpc.comments.delete.mutate({ id: ids[1000]! });
    const [cut] = (await asViewer.rpc.comments.list.query({ card_id })).threads;
    expect(cut!.replies_count).toBe(999);
    await asMember.rpc.comments.delete.mutate({ id: ids[0]! });
    expect((await asViewer.rpc.comments.list.query({ card_id })).threads).toEqual([]);
  });
});

describe('the thread of a reply', () => {
  const threadsOf = (db: Db, ids: number[]) =>
    query(
      db,
      sql<{ id: number; root_comment_id: number | null; depth: number }>`
        select id, root_comment_id, depth from comments where id = any(${ids}::int[]) order by id`,
    );
  const expectedOf = (ids: number[]) =>
    ids.map((id, depth) => ({ id, root_comment_id: depth === 0 ? null : ids[0], depth }));

  it('is filled for inserts of the previous version', async () => {
    const { ids } = await givenChain(await givenWorld(), 5);

    expect(await threadsOf(await testDb(), ids)).toEqual(expectedOf(ids));
  });

  it('is filled by the migration, also where a node of the previous version replies before its end', async () => {
    const world = await givenWorld();
    const { orm } = await testDatabase();
    const { card_id, ids } = await givenChain(world, 1200);
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

      const migration = new FillThreads(orm.em.getDriver() as never, orm.config);
      migration.setTransactionContext(db as never);
      await migration.up();

      expect(await threadsOf(db, [...ids, late])).toEqual(expectedOf([...ids, late]));
      throw undo;
    });

    await expect(migrated).rejects.toBe(undo);
  });

  it('is refused by the database unless it is complete and of the same card', async () => {
    const world = await givenWorld();
    const { ids } = await givenChain(world, 2);
    const { ids: others } = await givenChain(world, 1);
    const db = await testDb();
    const change = (changes: string) =>
      query(db, sql`update comments set ${sql.raw(changes)} where id = ${ids[1]!}`).catch(({ code }) => code);

    expect(await change('root_comment_id = null')).toBe('23514');
    expect(await change('depth = 0')).toBe('23514');
    expect(await change(`root_comment_id = ${others[0]}`)).toBe('23503');
  });
});

describe('comments over RPC', () => {
  it('list returns pages of threads, oldest first', async () => {
    const { asViewer, project, users } = await givenWorld();
    const card_id = await givenCard(project);
    const add = (state: object = {}) => givenComment(project, card_id, users.member, state);
    const first = await add();
    const reply = await add({ parent_comment_id: first });
    const second = await add();
    const deeper = await add({ parent_comment_id: reply });
    await add({ parent_comment_id: first, deleted_at: new Date() });
    await add({ deleted_at: new Date() });
    await givenComment(project, await givenCard(project), users.member);

    const page = await asViewer.rpc.comments.list.query({ card_id, limit: 1 });
    const last = await asViewer.rpc.comments.list.query({ card_id, limit: 1, cursor: page.next_cursor });

    expect(page.threads.map(({ id, replies }) => [id, replies.map((each) => each.id)])).toEqual([
      [first, [reply, deeper]],
    ]);
    expect(page.threads[0]!.replies[0]!.created_at).toBeInstanceOf(Date);
    expect(last.threads.map(({ id, replies }) => [id, replies])).toEqual([[second, []]]);
    expect(last.next_cursor).toBeNull();
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
    const card = await givenCard(project);
    const id = await givenComment(project, card, users.member);

    await asMember.rpc.cards.delete.mutate({ id: card });

    expect(await refusalOf(asMember.rpc.comments.list.query({ card_id: card }))).toMatchObject({ status: 404 });
    expect(await refusalOf(asMember.rpc.comments.markRead.mutate({ id }))).toMatchObject({ status: 404 });
    expect(await refusalOf(asMember.rpc.comments.delete.mutate({ id }))).toMatchObject({ status: 404 });
    expect((await stored('comments', id)).deleted_at).toBeNull();
  });
});
