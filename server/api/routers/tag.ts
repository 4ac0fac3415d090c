import { z } from 'zod';
import { rowVersion } from '../../../shared/fields.ts';
import { Tag, TagCreate, TagDelete, TagList, TagPage, TagUpdate } from '../../../shared/tag.ts';
import { restoredOf, restoreOf } from '../../../shared/trash.ts';
import { createTag, deleteTag, listTags, restoreTag, updateTag } from '../../domain/board/tag.ts';
import { rest, specified } from '../restOperation.ts';
import { restoring } from '../restoreOperation.ts';
import { memberProcedure, router, viewerProcedure } from '../trpc.ts';

const oneTag = z.object({ tag: Tag, version: rowVersion });

export const tagRouter = router({
  create: specified(memberProcedure, '/services/operations/v1/operations/tags/create', {
    status: 201,
    message: 'Tag created.',
    summary: 'Create a tag',
    description: 'Creates a tag in the project, after the others unless a position is sent.',
    errors: [400, 401, 403, 422, 429, 500],
  })
    .meta({ events: ['tag.created'] })
    .input(TagCreate)
    .output(oneTag)
    .mutation(({ ctx, input }) => createTag(ctx, input)),

  list: rest(viewerProcedure, '/services/operations/v1/operations/tags/list', {
    message: 'Tags of the project.',
    summary: 'List tags',
    description: 'The tags of the project in order, page by page.',
  })
    .meta({ tool: true })
    .input(TagList)
    .output(TagPage)
    .query(({ ctx, input }) => listTags(ctx, input)),

  update: rest(memberProcedure, '/services/operations/v1/operations/tags/update', {
    message: 'Tag updated.',
    summary: 'Update a tag',
    description: 'Changes the sent fields.',
  })
    .meta({ events: ['tag.updated', 'tag.reordered'] })
    .input(TagUpdate)
    .output(oneTag)
    .mutation(({ ctx, input }) => updateTag(ctx, input)),

  delete: rest(memberProcedure, '/services/operations/v1/operations/tags/delete', {
    message: 'Tag deleted.',
    summary: 'Delete a tag',
    description: 'Deletes a tag, and removes it from its cards.',
  })
    .meta({ isDestructive: true, events: ['tag.deleted'] })
    .input(TagDelete)
    .output(z.void())
    .mutation(({ ctx, input }) => deleteTag(ctx, input)),

  restore: restoring(memberProcedure, '/services/operations/v1/operations/tags/restore', 'tag', {
    events: ['tag.restored'],
  })
    .input(restoreOf(1))
    .output(restoredOf('tag', Tag))
    .mutation(({ ctx, input }) => restoreTag(ctx, input)),
});
