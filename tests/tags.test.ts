import { describe, expect, it } from 'vitest';
import { refusalOf } from './harness/caller.ts';
import { givenCard, givenTag, givenWorld, stored } from './harness/world.ts';

const CREATE = '/services/operations/v1/operations/tags/create';

describe('POST …/tags/create', () => {
  it('201 with the tag in last position; equal names are allowed', async () => {
    const { asMember, project, users } = await givenWorld();

    await asMember.post(CREATE, { name: 'Content' });
    const answer = await asMember.post(CREATE, { name: ' Content ', color: '#fff', icon: 'pen' });

    expect(answer).toMatchObject({ status: 201, body: { error: false, message: 'Tag created.' } });
    expect(answer.body.data.tag).toEqual({
      id: expect.any(Number),
      project_id: project.id,
      position: 2,
      created_by: users.member.id,
      name: 'Content',
      color: '#fff',
      icon: 'pen',
      is_active: true,
      created_at: expect.stringMatching(/Z$/),
      updated_at: expect.stringMatching(/Z$/),
      deleted_at: null,
    });
  });

  it('201 after the last tag, ignoring deleted ones', async () => {
    const { project, asMember } = await givenWorld();
    await givenTag(project, { position: 3 });
    await givenTag(project, { position: 9, deleted_at: new Date() });

    expect((await asMember.post(CREATE, { name: 'x' })).body.data.tag.position).toBe(4);
  });

  it('201 at the position that was sent, also zero or negative', async () => {
    const { asMember } = await givenWorld();

    for (const position of [0, -5, 2147483647]) {
      expect((await asMember.post(CREATE, { name: 'x', position })).body.data.tag.position).toBe(position);
    }
    expect((await asMember.post(CREATE, { name: 'x' })).body.data.tag.position).toBe(2147483647);
  });

  it('422 for texts that are too long and a position that is not a number', async () => {
    const { asMember } = await givenWorld();

    const answer = await asMember.post(CREATE, {
      name: 'x'.repeat(256),
      color: 'x'.repeat(51),
      icon: 'x'.repeat(101),
      position: '1',
    });

    expect(answer.status).toBe(422);
    expect(answer.body.errors).toEqual({
      name: ['name must be at most 255 characters.'],
      color: ['color must be at most 50 characters.'],
      icon: ['icon must be at most 100 characters.'],
      position: ['position must be a whole number.'],
    });
  });
});

describe('tags over RPC', () => {
  it('list returns pages in order, without deleted tags', async () => {
    const { asViewer, project } = await givenWorld();
    const last = await givenTag(project, { position: 2 });
    const first = await givenTag(project, { position: -1 });
    const tied = await givenTag(project, { position: 2 });
    await givenTag(project, { deleted_at: new Date() });

    const page = await asViewer.rpc.tags.list.query({ limit: 2 });
    const rest = await asViewer.rpc.tags.list.query({ limit: 2, cursor: page.next_cursor });

    expect(page.tags.map(({ id }) => id)).toEqual([first, last]);
    expect(rest).toMatchObject({ tags: [{ id: tied }], next_cursor: null });
  });

  it('422 for an invalid cursor', async () => {
    const { asViewer } = await givenWorld();

    for (const cursor of [
      'x',
      '',
      'W10',
      Buffer.from('[1]').toString('base64url'),
      Buffer.from('["a","b"]').toString('base64url'),
      Buffer.from('[1,99999999999]').toString('base64url'),
    ]) {
      expect(await refusalOf(asViewer.rpc.tags.list.query({ cursor })), cursor).toMatchObject({
        status: 422,
        errors: { cursor: ['cursor is invalid: send `next_cursor` of the previous page.'] },
      });
    }
  });

  it('update changes only what is sent', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenTag(project, { name: 'Before', color: 'red', icon: 'pen', position: 3 });

    const { tag } = await asMember.rpc.tags.update.mutate({ id, name: 'After', color: null, is_active: false });

    expect(tag).toMatchObject({ name: 'After', color: null, icon: 'pen', position: 3, is_active: false });
  });

  it('delete removes the tag from its cards', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenTag(project);
    const card = await givenCard(project, { tag_id: id });

    await asMember.rpc.tags.delete.mutate({ id });

    expect(await stored('cards', card)).toMatchObject({ tag_id: null, deleted_at: null });
    expect(await refusalOf(asMember.rpc.tags.delete.mutate({ id }))).toMatchObject({ status: 404 });
  });
});
