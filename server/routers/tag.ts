import { z } from 'zod';
import { Tag, TagCreate, TagDelete, TagList, TagPage, TagUpdate } from '../../shared/tag.ts';
import { createTag, deleteTag, listTags, updateTag } from '../domain/tag.ts';
import { rest } from '../restOperation.ts';
import { memberProcedure, router, viewerProcedure } from '../trpc.ts';

const oneTag = z.object({ tag: Tag });

export const tagRouter = router({
  create: memberProcedure
    .meta(
      rest('/services/operations/v1/operations/tags/create', {
        status: 201,
        message: 'Tag created.',
        summary: 'Create a tag',
        description: 'Creates a tag in the project, after the others unless a position is sent.',
        errors: [400, 401, 403, 422, 429, 500],
      }),
    )
    .input(TagCreate)
    .output(oneTag)
    .mutation(({ ctx, input }) => createTag(ctx, input)),

  list: viewerProcedure
    .input(TagList)
    .output(TagPage)
    .query(({ ctx, input }) => listTags(ctx, input)),

  update: memberProcedure
    .input(TagUpdate)
    .output(oneTag)
    .mutation(({ ctx, input }) => updateTag(ctx, input)),

  delete: memberProcedure
    .input(TagDelete)
    .output(z.void())
    .mutation(({ ctx, input }) => deleteTag(ctx, input)),
});
