import { z } from 'zod';
import { count, id, optionalText, position, storedChoice, timestamp } from './fields.ts';
import { Page, pageOf } from './paging.ts';
import { requestExamples } from './requestExample.ts';

/** Releases: what a master board was at a time, with its groups and cards. They never change. */

export const TEMPLATE_NOUNS = ['board', 'group', 'card'] as const;
export type TemplateNoun = (typeof TEMPLATE_NOUNS)[number];

export const noun = storedChoice(TEMPLATE_NOUNS).meta({ description: 'What kind of row it is.', example: 'card' });

const note = optionalText(2000).meta({
  description: 'What changed and why, for those who receive it.',
  example: 'Shorter first steps.',
});

export const Release = z
  .object({
    id,
    board_id: id.meta({ description: 'The master board.' }),
    number: count.meta({ description: 'Its number, from 1 for each master board.', example: 1 }),
    note: z.string().nullable().meta({ description: 'What changed and why.' }),
    user_id: id.nullable().meta({ description: 'Who published it.' }),
    user_name: z.string().nullable().meta({ description: 'The name of that user.' }),
    created_at: timestamp.meta({ description: 'When it was published.' }),
    rows_count: count.meta({ description: 'Number of its rows: the board, its groups and its cards.', example: 8 }),
    projects_count: count.meta({ description: 'Number of projects that have it now.', example: 2 }),
  })
  .meta({ id: 'Release', description: 'What a master board was when it was published.' });

export const ReleasePublish = z.object({ board_id: id.meta({ description: 'The master board.' }), note });
ReleasePublish.register(requestExamples, { example: { board_id: 1, note: 'Shorter first steps.' } });
export type ReleasePublish = z.output<typeof ReleasePublish>;

export const ReleaseList = Page.extend({ board_id: id.nullish().meta({ description: 'Only those of this board.' }) });
ReleaseList.register(requestExamples, { example: { board_id: 1, limit: 20 } });
export type ReleaseList = z.output<typeof ReleaseList>;
export const ReleasePage = pageOf('releases', Release);

export const ReleaseGet = z.object({ id: id.meta({ description: 'The release.' }) });

export const ReleaseRow = z
  .object({
    noun,
    master_id: id.meta({ description: 'The master board, group or card.' }),
    parent_id: id.nullable().meta({ description: 'The master board of a group, or the master group of a card.' }),
    position: position.meta({ description: 'Its position.' }),
    content: z.record(z.string(), z.unknown()).meta({
      description: 'Its fields.',
      example: { title: 'Say hello', is_active: true },
    }),
  })
  .meta({ id: 'ReleaseRow', description: 'A row of a release.' });

export const ReleaseCompare = z.object({
  id: id.meta({ description: 'The release.' }),
  with_id: id.nullish().meta({
    description: 'The release to compare it with, of the same board; the draft if not sent.',
    example: null,
  }),
});
ReleaseCompare.register(requestExamples, { example: { id: 1 } });
export type ReleaseCompare = z.output<typeof ReleaseCompare>;

export const FieldChange = z
  .object({
    field: z.string().meta({ description: 'The field.', example: 'title' }),
    before: z.unknown().meta({ description: 'Its value before.', example: 'Hello' }),
    after: z.unknown().meta({ description: 'Its value after.', example: 'Say hello' }),
  })
  .meta({ id: 'FieldChange', description: 'A field with another value.' });

export const RowDifference = z
  .object({
    noun,
    master_id: id.meta({ description: 'The master board, group or card.' }),
    title: z.string().meta({ description: 'Its title.', example: 'Say hello' }),
    change: storedChoice(['added', 'changed', 'moved', 'removed']).meta({ description: 'What happened to it.' }),
    fields: z.array(FieldChange).meta({ description: 'The changed fields.' }),
  })
  .meta({ id: 'RowDifference', description: 'How a row differs between two releases, or a release and the draft.' });
export type RowDifference = z.output<typeof RowDifference>;
