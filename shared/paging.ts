import { z } from 'zod';
import { asSent } from './fields.ts';

/** The input of every list: the cursor and the page size. */
export const Page = z.object({
  cursor: asSent(100)
    .nullish()
    .meta({ description: '`next_cursor` of the previous page; the first page if not sent.', example: null }),
  limit: z
    .int()
    .min(1)
    .max(200)
    .default(50)
    .meta({ description: 'The maximum number of rows; fewer if they are long.' }),
});
export type Page = z.output<typeof Page>;

/** Part of every list's answer. */
export const nextCursor = z.string().nullable().meta({ description: 'For the next page; null on the last one.' });

/** The answer of a list, with the rows under the name of their noun: `pageOf('tags', Tag)`. */
export const pageOf = <Name extends string, Model extends z.ZodType>(name: Name, model: Model) =>
  z.object({
    [name]: z.array(model).meta({ description: 'The rows of this page, in order.' }),
    next_cursor: nextCursor,
  } as { [Key in Name]: z.ZodArray<Model> } & { next_cursor: typeof nextCursor });
