import { z } from 'zod';
import { untrimmed } from './fields.ts';

export const DEFAULT_PAGE = 50;
export const LARGEST_PAGE = 200;

/** Part of the input of every list. */
export const Page = z.object({
  cursor: untrimmed(100)
    .nullish()
    .meta({ description: '`next_cursor` of the previous page; the first page if not sent.', example: null }),
  limit: z
    .int()
    .min(1)
    .max(LARGEST_PAGE)
    .default(DEFAULT_PAGE)
    .meta({
      description: `The maximum number of rows, 1 to ${LARGEST_PAGE}; ${DEFAULT_PAGE} if not sent. A page has fewer if they are long.`,
    }),
});
export type Page = z.output<typeof Page>;

export const nextCursor = z.string().nullable().meta({ description: 'For the next page; null on the last one.' });

/** The response of a list, with its rows in a field of this name: `pageOf('tags', Tag)`. */
export const pageOf = <Name extends string, Model extends z.ZodType>(name: Name, model: Model) =>
  z.object({
    [name]: z.array(model).meta({ description: 'The rows of this page, in order.' }),
    next_cursor: nextCursor,
  } as { [Key in Name]: z.ZodArray<Model> } & { next_cursor: typeof nextCursor });
