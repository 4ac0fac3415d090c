import { sql } from 'kysely';
import { AuditEntry, type AuditList } from '../../../shared/audit.ts';
import type { Removal } from '../../database/removal.ts';
import { daysBefore } from '../../database/timestamp.ts';
import type { ProjectContext } from '../access/context.ts';
import { namedProject } from '../account/member.ts';
import { readCursor, toCursor } from '../rows/page.ts';

const COLUMNS = AuditEntry.omit({ id: true }).keyof().options;
const ID = sql<string>`audit_entries.id::text`.as('id');

/** The audit trail, newest first: of a project for its owners, of everything for superadmins. */
export async function listAuditEntries(
  context: ProjectContext,
  { project_id, user_id, types, since, cursor, limit }: AuditList,
) {
  const { db, caller } = context;
  const isOfAll = caller.superadmin && !caller.isProjectChosen && project_id == null;
  const project = isOfAll ? undefined : await namedProject(context, { project_id });
  const [before] = readCursor(cursor, 1);
  const found = await db
    .selectFrom('audit_entries')
    .select([...COLUMNS, ID])
    .$if(project !== undefined, (all) => all.where('project_id', '=', project ?? null))
    .$if(user_id != null, (all) => all.where('user_id', '=', user_id ?? null))
    .$if(types != null, (all) => all.where(sql<boolean>`type = any(${types}::text[])`))
    .$if(since != null, (all) => all.where('created_at', '>=', since ?? null))
    .$if(before !== undefined, (all) => all.where(sql<boolean>`audit_entries.id < ${before}`))
    .orderBy('audit_entries.id', 'desc')
    .limit(limit + 1)
    .execute();
  const entries = found.slice(0, limit);
  const last = found.length > limit ? entries.at(-1) : undefined;
  return { entries, next_cursor: last ? toCursor([Number(last.id)]) : null };
}

export const auditRemoval = (days: number): Removal => ({
  table: 'audit_entries',
  due: (now) => sql`t.created_at < ${daysBefore(now, days)}`,
  by: 'created_at',
});
