import { describe, expect, it } from 'vitest';
import { refusalOf } from '../harness/caller.ts';
import { givenCard, givenTag, givenWorld, stored } from '../harness/world.ts';

describe('tags', () => {
  it('are listed in order, page by page, without deleted ones', async () => {
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
    const cursors = ['[1]', '["a","b"]', '[1,99999999999]'].map((key) => Buffer.from(key).toString('base64url'));

    for (const cursor of ['x', '', 'W10', ...cursors])
      expect(await refusalOf(asViewer.rpc.tags.list.query({ cursor })), cursor).toMatchObject({
        status: 422,
        errors: { cursor: ['cursor is invalid: send `next_cursor` of the previous page.'] },
      });
  });

  it('are removed from their cards when they are deleted', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenTag(project);
    const card = await givenCard(project, { tag_id: id });

    await asMember.rpc.tags.delete.mutate({ id });

    expect(await stored('cards', card)).toMatchObject({ tag_id: null, deleted_at: null });
  });
});
