import { TRPCError } from '@trpc/server';
import { type RawBuilder, sql } from 'kysely';
import { z } from 'zod';
import { ofRows, toFailure } from '../../../shared/errors.ts';
import { InvalidRow, type MODES, type RowError, type RowResult } from '../../../shared/rows.ts';
import { lockProjects } from '../../database/projectLock.ts';
import type { ActedIn, ProjectCaller, ProjectContext, With } from '../access/context.ts';
import { bound, isEnough, permitOf, roleIn } from '../access/permission.ts';

/** A row with its place in the list. */
export type Placed<Row> = { at: number; row: Row };

/** The rows of a call with many, and the errors of those that were refused, by their places in the list. */
export function makeRowList<Row extends object>(
  list: string,
  rows: readonly (Row | InvalidRow)[],
  mode: (typeof MODES)[number] | null | undefined,
) {
  const errors = new Map<number, TRPCError>();
  for (const { at, row } of placed(rows)) {
    if (row instanceof InvalidRow)
      errors.set(at, new TRPCError({ code: 'BAD_REQUEST', cause: new z.ZodRealError([...row.issues]) }));
  }
  return {
    /** The rows that the schema accepts. */
    valid: validRows(rows),
    /** The rows that pass a check, with what it returns; keeps the errors that it throws for others. */
    check: <Checkable extends { at: number }, Checked>(
      some: Checkable[],
      check: (row: Checkable) => Checked,
    ): Checked[] =>
      some.flatMap((row) => {
        try {
          return [check(row)];
        } catch (error) {
          if (!(error instanceof TRPCError)) throw error;
          errors.set(row.at, error);
          return [];
        }
      }),
    /** Throws if one row was refused, unless the mode is `each`. */
    mustAllBeValid: (): void => {
      if (errors.size > 0 && mode !== 'each')
        throw ofRows(list, new Map([...errors].sort(([one], [other]) => one - other)));
    },
    /** The result of each row, in the order of the list: `{ card }` or `{ error }`. */
    resultsWith: <Name extends string, Saved>(name: Name, saved: ReadonlyMap<number, Saved>) => {
      const results = rows.map((_, at) => {
        const error = errors.get(at);
        return error ? { error: toRowError(error) } : { [name]: saved.get(at) };
      });
      return { results: results as RowResult<Name, Saved>[] };
    },
  };
}
export type RowList<Row extends object> = ReturnType<typeof makeRowList<Row>>;

export const validRows = <Row extends object>(rows: readonly (Row | InvalidRow)[]): Placed<Row>[] =>
  placed(rows).filter((row): row is Placed<Row> => !(row.row instanceof InvalidRow));

const placed = <Row>(rows: readonly Row[]): Placed<Row>[] => rows.map((row, at) => ({ at, row }));

/** Checks rows as their caller. Remembers each project with its first row: a repeated call checks the role in each project again. */
export function rememberProjects(list: string, caller: ProjectCaller) {
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

/** Saves rows in steps: on the embedded database, other calls are answered after each. */
export async function saveInSteps<Row, Saved>(
  { services: { bulkPace } }: With<'bulkPace'>,
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

function toRowError(error: TRPCError): RowError {
  const { status, reason, message, errors } = toFailure(error);
  return { status, reason, message, ...(errors && { errors }) };
}
