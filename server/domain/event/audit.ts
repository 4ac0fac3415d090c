import { type RawBuilder, sql } from 'kysely';
import { z } from 'zod';
import { AuditEntry, type AuditList } from '../../../shared/audit.ts';
import { readCursor, toCursor } from '../../database/page.ts';
import { allOf, query } from '../../database/query.ts';
import type { Removal } from '../../database/removal.ts';
import { daysBefore } from '../../database/timestamp.ts';
import type { ProjectContext } from '../access/context.ts';
import { namedProject } from '../account/member.ts';
import { HIDES_ACTOR } from './feed.ts';

type Entry = AuditEntry;

/** How many entries one page reads at most, whatever it filters. */
const MOST_READ = 1000;
/** An entry is this much older at most than one with a smaller id: ids are given out while transactions run. */
const LONGEST_TRANSACTION_MILLISECONDS = 60 * 60 * 1000;

/**
 * The audit trail, newest first: of a project for its owners, of everything for superadmins. A page that has read enough ends
 * early, with the cursor behind what it has read.
 */
export async function listAuditEntries(context: ProjectContext, { project_id, cursor, limit, ...filter }: AuditList) {
  const { db, caller } = context;
  const isOfAll = caller.superadmin && !caller.isProjectChosen && project_id == null;
  const project = isOfAll ? undefined : await namedProject(context, { project_id });
  const [before = Number.MAX_SAFE_INTEGER] = readCursor(cursor, 1, z.int());
  const found = await query(db, statement({ ...filter, project, before, limit, hidesOthers: !caller.superadmin }));

  const [{ read_count, last_id, last_at }] = found as [Read];
  const rows = found.filter((row) => row.id !== null);
  const entries = rows.slice(0, limit).map(({ read_count, last_id, last_at, ...entry }) => entry as Entry);
  if (rows.length > limit) return { entries, next_cursor: toCursor([Number(entries.at(-1)?.id)]) };
  const isPastSince = filter.since != null && last_at !== null && isLongBefore(last_at, filter.since);
  const isCut = read_count === MOST_READ && last_id !== null && !isPastSince;
  return { entries, next_cursor: isCut ? toCursor([Number(last_id)]) : null };
}

const isLongBefore = (time: Date, other: Date) => time.getTime() < other.getTime() - LONGEST_TRANSACTION_MILLISECONDS;

/** The same in every row of the statement. */
type Read = { read_count: number; last_id: string | null; last_at: Date | null };

type Wanted = Pick<AuditList, 'user_id' | 'types' | 'since' | 'limit'> & {
  project: number | undefined;
  before: number;
  /** Whether people who are not members of the project stay unknown. */
  hidesOthers: boolean;
};

/**
 * - `read`: the next entries of the project, else of the user, else of all: each by an index, up to a number.
 * - `seen`: the same without what the caller may not know: who declined an invitation, and the addresses of people who are not
 *   members.
 * - `page`: those that are wanted, and one more.
 */
function statement({ project, user_id, types, since, before, limit, hidesOthers }: Wanted) {
  const next =
    project !== undefined
      ? nextOf('project_id', project, before)
      : user_id != null
        ? nextOf('user_id', user_id, before)
        : sql`id < ${before}::bigint order by id desc`;
  const wanted = [
    ...(user_id != null ? [sql`user_id = ${user_id}`] : []),
    ...(types != null ? [sql`type = any(${types}::text[])`] : []),
    ...(since != null ? [sql`created_at >= ${since}`] : []),
    sql`true`,
  ];
  return sql<Partial<Entry> & Read>`
    with read as materialized (
      select id, ${columns()} from audit_entries where ${next} limit ${sql.lit(MOST_READ)}
    ), seen as (
      select id, ${columns(hidesOthers ? HIDDEN : {})} from read
    ), page as (
      select * from seen where ${allOf(wanted)} order by id desc limit ${limit + 1}
    )
    select state.*, page.id::text as id, ${columns()}
    from (select count(*)::int as read_count, min(id)::text as last_id, min(created_at) as last_at from read) as state
    left join page on true order by page.id desc`;
}

/**
 * The entries of one project or user, in the order of its index. Written as a range: with `=`, a planner without statistics expects
 * few rows, reads all of them, and sorts.
 */
const nextOf = (column: 'project_id' | 'user_id', value: number, before: number) => sql`
  (${sql.ref(column)}, id) < (${value}, ${before}::bigint) and ${sql.ref(column)} >= ${value} order by ${sql.ref(column)} desc, id desc`;

const COLUMNS = AuditEntry.omit({ id: true }).keyof().options;

const columns = (instead: Partial<Record<string, RawBuilder<unknown>>> = {}) =>
  sql.join(COLUMNS.map((name) => (instead[name] ? sql`${instead[name]} as ${sql.ref(name)}` : sql.ref(name))));

const HIDDEN = {
  user_id: sql`case when not ${HIDES_ACTOR} then user_id end`,
  request_id: sql`case when not ${HIDES_ACTOR} then request_id end`,
  address: sql`case when not ${HIDES_ACTOR} and (
    select true from members m where m.project_id = read.project_id and m.user_id = read.user_id) then address end`,
};

export const auditRemoval = (days: number): Removal => ({
  table: 'audit_entries',
  due: (now) => sql`t.created_at < ${daysBefore(now, days)}`,
  by: 'created_at',
});
