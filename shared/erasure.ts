import { z } from 'zod';
import { count, id, storedChoice, timestamp } from './fields.ts';
import { requestExamples } from './requestExample.ts';
import { UserChoice } from './user.ts';

export const EXPORT_STATES = ['waiting', 'ready', 'failed'] as const;

export const UserErase = UserChoice.clone().register(requestExamples, { example: { id: 4 } });

const table = z.string().meta({ description: 'The table.', example: 'sessions' });

export const Erased = z.object({
  user_id: id.meta({ description: 'The id, which stays.' }),
  erased_at: timestamp.meta({ description: 'When it happened.' }),
  removed: z
    .array(z.object({ table, rows: count.meta({ description: 'How many rows were deleted or blanked.' }) }))
    .meta({ description: 'What the service had written about the person, and is gone.' }),
  review: z
    .array(
      z.object({
        table,
        column: z.string().meta({ description: 'The column with the text.', example: 'comment' }),
        ids: z.array(id).meta({ description: 'The rows, up to 100.' }),
      }),
    )
    .meta({
      description:
        'Texts that name the person, or their e-mail address: the service does not change what people wrote. From projects that the person was a member of, without what is in the trash, and from texts outside of projects.',
    }),
  is_review_complete: z.boolean().meta({
    description: 'False if a search of five seconds did not suffice for all texts.',
    example: true,
  }),
  paused_webhooks: z.array(id).meta({ description: 'Webhooks that the person had made, and that are paused now.' }),
});
export type Erased = z.output<typeof Erased>;

const state = storedChoice(['none', ...EXPORT_STATES]).meta({
  description: 'Whether it can be fetched.',
  example: 'ready',
});

export const ExportStarted = z.object({ state });

export const ExportGet = z.object({
  part: z.int().min(1).max(1_000_000).nullish().meta({ description: 'Which part; the first if not sent.', example: 1 }),
});
export type ExportGet = z.output<typeof ExportGet>;

export const ExportPart = z.object({
  state,
  parts: count.meta({ description: 'How many parts there are.' }),
  expires_at: timestamp.nullable().meta({ description: 'When it is removed.', example: '2099-01-31T09:30:00.000Z' }),
  rows: z
    .array(
      z.object({
        table,
        row: z.record(z.string(), z.unknown()).meta({ description: 'The row, without secrets.', example: { id: 5 } }),
      }),
    )
    .meta({ description: 'The rows of this part; none until it is ready.' }),
});
