import { z } from 'zod';
import { asSent } from './fields.ts';

/** What every list takes: where to go on, and how much to answer at most. */
export const Page = z.object({
  cursor: asSent(100)
    .nullish()
    .meta({ description: '`next_cursor` of the page before; the first page when not sent.' }),
  limit: z
    .int()
    .min(1)
    .max(200)
    .default(50)
    .meta({ description: 'How many to answer at most; fewer where they are long.' }),
});
export type Page = z.output<typeof Page>;

/** What every list answers, beside its rows. */
export const nextCursor = z.string().nullable().meta({ description: 'For the next page; null on the last one.' });
