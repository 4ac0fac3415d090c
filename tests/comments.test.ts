import { describe, expect, it } from 'vitest';
import { refusalOf } from './harness/caller.ts';
import { countStatements } from './harness/service.ts';
import { givenCard, givenComment, givenWorld, stored } from './harness/world.ts';

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

    expect(await countStatements(() => asMember.post(CREATE, { card_id, comment: 'x' }))).toBe(2);
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
