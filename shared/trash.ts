import { z } from 'zod';
import { count, id, rowVersion, timestamp } from './fields.ts';
import { Page, pageOf } from './paging.ts';
import { requestExamples } from './requestExample.ts';

/** What can be deleted and restored. */
export const DELETABLE = ['board', 'group', 'card', 'comment', 'tag'] as const;

/** The input of a restore, with the id of a row of the demo data. */
export const restoreOf = (example: number) =>
  z
    .object({ id: id.meta({ description: 'The deleted row.' }) })
    .register(requestExamples, { example: { id: example } });

/** The response of a restore. */
export const restoredOf = <Noun extends string, Model extends z.ZodType>(noun: Noun, model: Model) =>
  z.object({
    [noun]: model,
    version: rowVersion,
    restored_count: count.meta({
      description: 'How many rows came back with it, and itself; 0 if it was not deleted.',
      example: 1,
    }),
  } as { [Key in Noun]: Model } & { version: typeof rowVersion; restored_count: typeof count });

const TrashEntry = z
  .object({
    deletion_id: id.meta({ description: 'The deletion.' }),
    // Later versions may have further types.
    type: z.string().meta({ description: `What was deleted: ${DELETABLE.join(', ')}.`, example: 'board' }),
    id: id.meta({ description: 'The deleted row: restore it with this id.' }),
    title: z.string().nullable().meta({ description: 'Its title or name; null for a comment.', example: 'Launch' }),
    count: count.meta({
      description: 'How many rows the deletion took along. For a tag, how many cards it was taken from.',
      example: 12,
    }),
    deleted_by: id.nullable().meta({ description: 'The user who deleted it; null without an account.' }),
    deleted_at: timestamp.meta({ description: 'When it was deleted.' }),
  })
  .meta({ id: 'TrashEntry', description: 'A deletion that can be undone.' });

export const TrashList = Page;
export const TrashPage = pageOf('entries', TrashEntry);

/** What a deletion would delete. */
export const DeletionPreview = z.object({
  type: z.enum(DELETABLE).meta({ description: 'What it is.', example: 'board' }),
  id: id.meta({ description: 'The row.' }),
});
DeletionPreview.register(requestExamples, { example: { type: 'board', id: 2 } });
export type DeletionPreview = z.output<typeof DeletionPreview>;

/** The same for a template. */
export const MasterDeletionPreview = DeletionPreview.extend({
  type: z.enum(['board', 'group', 'card']).meta({ description: 'What it is.', example: 'board' }),
});
MasterDeletionPreview.register(requestExamples, { example: { type: 'board', id: 1 } });

export const PreviewedDeletion = z.object({
  title: z.string().nullable().meta({ description: 'Its title or name; null for a comment.', example: 'Launch' }),
  groups_count: count.meta({ description: 'How many groups would be deleted with it.', example: 3 }),
  cards_count: count.meta({
    description: 'How many cards would be deleted with it; for a tag, how many would lose it.',
    example: 8,
  }),
  comments_count: count.meta({ description: 'How many replies would be deleted with it.', example: 0 }),
});
