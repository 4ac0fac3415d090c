import { type RawBuilder, sql } from 'kysely';
import { type Db, query } from '../database/query.ts';
import { forbidden, notFound } from '../errors.ts';
import type { ProjectContext } from '../trpc.ts';
import type { ActingProject } from './caller.ts';

/** Tables whose rows belong to a project, and what one of those rows is called. */
const NOUNS = { boards: 'board', groups: 'group', cards: 'card', comments: 'comment', tags: 'tag' };
export type Table = keyof typeof NOUNS;

type Found = { id: number; project_id: number };

/** A row that an operation acts on: it must exist, and be of the project that the caller acts in. */
export function mustBeFound<Row extends Pick<Found, 'project_id'>>(
  project: ActingProject,
  table: Table,
  row: Row | undefined,
): Row {
  if (!row) throw notFound(`There is no such ${NOUNS[table]}.`);
  if (row.project_id !== project.id) throw forbidden(`This ${NOUNS[table]} belongs to another project.`);
  return row;
}

/** Rows that are there: neither deleted nor templates, and comments only while their card is. */
export const isLive = (table: Table) =>
  table === 'comments'
    ? sql`t.deleted_at is null and exists (select from cards c where c.id = t.card_id and c.deleted_at is null)`
    : sql`t.deleted_at is null and t.project_id is not null`;

/** Finds a row of the project. */
export async function findRow<Row extends object>(
  { db, caller }: ProjectContext,
  table: Table,
  id: number,
): Promise<Row & Found> {
  const [row] = await query(
    db,
    sql<Row & Found>`select t.* from ${sql.table(table)} t where t.id = ${id} and ${isLive(table)}`,
  );
  return mustBeFound(caller.project, table, row);
}

/** Changes a row of the project and answers it; one statement. */
export async function changeRow<Row extends object>(
  { db, caller }: ProjectContext,
  table: Table,
  id: number,
  changes: Record<string, unknown>,
): Promise<Row & Found> {
  const [found] = await query(
    db,
    sql<Row & Found & { found_in: number }>`
      with found as (
        select t.id, t.project_id from ${sql.table(table)} t where t.id = ${id} and ${isLive(table)} for update of t
      ), changed as (
        update ${sql.table(table)} t set ${assignments(changes)}
        from found where t.id = found.id and found.project_id = ${caller.project.id}
        returning t.*
      )
      select changed.*, found.project_id as found_in from found left join changed on true`,
  );
  mustBeFound(caller.project, table, found && { project_id: found.found_in });
  return found!;
}

export const deleteRow = (context: ProjectContext, table: Table, id: number) =>
  changeRow(context, table, id, { deleted_at: new Date() });

/** The `set` of an update: what is undefined stays. */
export function assignments(changes: Record<string, unknown>): RawBuilder<unknown> {
  const sent = Object.entries(changes).filter(([, value]) => value !== undefined);
  return sql.join([...sent.map(([column, value]) => sql`${sql.ref(column)} = ${value}`), sql`updated_at = now()`]);
}

/** Of columns that can't be null: null leaves them as they are. */
export function unlessNull<Fields extends Record<string, unknown>>(fields: Fields): Partial<Fields> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null)) as Partial<Fields>;
}

/** Whoever changes several rows of a project waits here for whoever does already: so nobody waits for each other. */
export async function lockProject(db: Db, { id }: ActingProject): Promise<void> {
  await query(db, sql`select from projects where id = ${id} for no key update`);
}
