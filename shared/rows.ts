import { z } from 'zod';
import type { FieldErrors } from './errors.ts';
import { optionalChoice, storedChoice } from './fields.ts';
import { MOST_ROWS } from './limits.ts';
import { REASONS, type Reason } from './reasons.ts';

/** Calls with many rows. */

export const MODES = ['all', 'each'] as const;

/** A row that its schema refuses. */
export class InvalidRow {
  readonly issues: readonly z.core.$ZodIssue[];
  constructor(issues: readonly z.core.$ZodIssue[]) {
    this.issues = issues;
  }
}

/** The inputs with many rows: the field with the rows, and the schema of one. */
export const manyRows = new WeakMap<z.ZodType, { list: string; row: z.ZodType }>();

/**
 * The input of a call with many rows: `manyOf('cards', CardCreate)`. With the mode `each`, `server/api/parser.ts` parses every
 * row for itself, and an invalid one is an `InvalidRow` in the list.
 */
export function manyOf<Name extends string, Row extends z.ZodObject>(list: Name, row: Row) {
  type Rows = z.ZodType<(z.output<Row> | InvalidRow)[], z.input<Row>[]>;
  const rows = z
    .preprocess(refuseLongList, z.array(row).max(MOST_ROWS))
    .meta({ description: `The ${list}.` }) as unknown as Rows;
  const mode = optionalChoice(MODES).meta({
    description: `\`all\`, or if not sent: one invalid row refuses all ${list}. \`each\`: every row for itself.`,
  });
  const schema = z.object({ [list]: rows, mode } as Record<Name, Rows> & { mode: typeof mode });
  manyRows.set(schema, { list, row });
  return schema;
}

/** Before the rows are checked, since a long list of invalid elements is slow to check. */
function refuseLongList(value: unknown, { issues }: z.core.ParsePayload): unknown {
  if (!Array.isArray(value) || value.length <= MOST_ROWS) return value;
  issues.push({ code: 'too_big', origin: 'array', maximum: MOST_ROWS, inclusive: true, input: value });
  return z.NEVER;
}

const RowError = z
  .object({
    status: z
      .int()
      .min(400)
      .max(599)
      .meta({ description: 'The status that a call with this row alone would get.', example: 422 }),
    reason: storedChoice(Object.keys(REASONS) as Reason[]).meta({
      description: 'A stable name, for programs to decide by.',
      example: 'unknown_reference',
    }),
    message: z.string().meta({ description: 'What is wrong, for people.', example: 'tag_id does not exist.' }),
    errors: z
      .record(z.string(), z.array(z.string()))
      .optional()
      .meta({ description: 'Of a 422: the errors by field.', example: { tag_id: ['tag_id does not exist.'] } }),
  })
  .meta({ id: 'RowError', description: 'Why a row was refused.' });
export type RowError = { status: number; reason: Reason; message: string; errors?: FieldErrors };

/** Marks an object that has exactly one of its fields, for the types of the client. */
export const HAS_ONE_FIELD = 'x-has-one-field';

/** The saved row, or why it was refused; both fields are in both types, so that a check of one narrows the other. */
export type RowResult<Name extends string, Saved> =
  | ({ [Key in Name]: Saved } & { error?: undefined })
  | ({ [Key in Name]?: undefined } & { error: z.output<typeof RowError> });

/** The result of each row, in the order in which they were sent: `resultsOf('card', SavedCard)`. */
export const resultsOf = <Name extends string, Saved extends z.ZodType>(name: Name, saved: Saved) => {
  const result = z
    .object({
      [name]: saved.optional().meta({ description: `The ${name}; missing if the row was refused.` }),
      error: RowError.optional().meta({ description: 'Why the row was refused; missing if it was not.' }),
    })
    .meta({ [HAS_ONE_FIELD]: true }) as unknown as z.ZodType<RowResult<Name, z.output<Saved>>>;
  return z.object({
    results: z.array(result).meta({ description: 'A result for each row, in the order in which they were sent.' }),
  });
};
