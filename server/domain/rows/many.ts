import { TRPCError } from '@trpc/server';
import { type RawBuilder, sql } from 'kysely';
import { z } from 'zod';
import { ofRows, toFailure } from '../../../shared/errors.ts';
import { InvalidRow, type MODES, type RowError } from '../../../shared/rows.ts';
import type { ActedIn, Context, ProjectCaller, ProjectContext } from '../access/context.ts';
import { bound, isEnough, permitOf, roleIn } from '../access/permission.ts';
import { lockProjects } from './row.ts';

/** The errors of the rows of a call, by their places in the list. */
type RowErrors = Map<number, TRPCError>;

/** A row with its place in the list. */
export type Placed<Row> = { at: number; row: Row };

/** The rows of an input that its schema accepts, each with its place, and the errors of the others. */
export function validRows<Row extends object>(rows: readonly (Row | InvalidRow)[]) {
  const errors: RowErrors = new Map();
  const valid = rows.flatMap((row, at): Placed<Row>[] => {
    if (!(row instanceof InvalidRow)) return [{ at, row }];
    errors.set(at, new TRPCError({ code: 'BAD_REQUEST', cause: new z.ZodRealError([...row.issues]) }));
    return [];
  });
  return { valid, errors };
}

/** The rows that pass a check, with what it returns; notes the errors that it throws for others. */
export function checkRows<Row extends { at: number }, Checked>(
  rows: Row[],
  errors: RowErrors,
  check: (row: Row) => Checked,
): Checked[] {
  return rows.flatMap((row) => {
    try {
      return [check(row)];
    } catch (error) {
      if (!(error instanceof TRPCError)) throw error;
      errors.set(row.at, error);
      return [];
    }
  });
}

/** Checks rows as their caller, and notes each project once, with its first row: a repeat of the call looks up the role in each. */
export function noteOnce(list: string, caller: ProjectCaller) {
  const seen = new Set<number>();
  return <Result>(at: number, check: (caller: ProjectCaller) => Result): Result => {
    const places: ActedIn[] = [];
    const result = check({ ...caller, actedIn: places });
    for (const place of places) {
      const key = 'project_id' in place ? place.project_id : undefined;
      if (key === undefined || seen.has(key)) continue;
      seen.add(key);
      caller.actedIn?.push({ ...place, row: { list, at } });
    }
    return result;
  };
}

/** Throws if one row was refused, unless the mode is `each`. */
export function mustAllBeValid(list: string, mode: Mode | null | undefined, errors: RowErrors): void {
  if (errors.size > 0 && mode !== 'each')
    throw ofRows(list, new Map([...errors].sort(([one], [other]) => one - other)));
}
type Mode = (typeof MODES)[number];

/** Saves rows in steps: on the embedded database, other calls are answered after each. */
export async function saveInSteps<Row, Saved>(
  { bulkPace }: Pick<Context, 'bulkPace'>,
  rows: readonly Row[],
  save: (rows: Row[]) => Promise<Saved[]>,
): Promise<Saved[]> {
  // Smaller than those of a sync: each row has an event and long texts.
  const step = bulkPace.rowsPerStep / 5;
  const saved: Saved[] = [];
  for (let at = 0; at < rows.length; at += step) {
    if (at > 0) await bulkPace.pause();
    saved.push(...(await save(rows.slice(at, at + step))));
  }
  return saved;
}

/** Locks those projects in which the caller may act, like every change of several rows: see `lockProjects`. */
export function lockPermitted({ db, caller }: ProjectContext, condition: RawBuilder<unknown>) {
  const permit = bound(permitOf(caller));
  return lockProjects(db, sql`${condition} and ${isEnough(roleIn('projects.id', permit), permit)}`);
}

/** The result of each row, in the order of the list: `{ card }` or `{ error }`. */
export function resultsOf<Name extends string, Saved>(
  name: Name,
  rows: readonly unknown[],
  errors: RowErrors,
  saved: ReadonlyMap<number, Saved>,
): { results: ({ [Key in Name]?: Saved } & { error?: RowError })[] } {
  const results = rows.map((_, at) => {
    const error = errors.get(at);
    return error ? { error: toRowError(error) } : { [name]: saved.get(at) };
  });
  return { results: results as ({ [Key in Name]?: Saved } & { error?: RowError })[] };
}

function toRowError(error: TRPCError): RowError {
  const { status, reason, message, errors } = toFailure(error);
  return { status, reason, message, ...(errors && { errors }) };
}
