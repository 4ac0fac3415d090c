import { sql } from 'kysely';
import { isAllowed, type Role } from '../../../shared/user.ts';
import { lockProjects } from '../../database/projectLock.ts';
import { type Db, query } from '../../database/query.ts';
import type { Row } from '../../database/tables.ts';
import type { SsoIssuer } from '../../runtime/ssoIssuers.ts';
import type { Context } from '../access/context.ts';
import { type WriteContext, writeEvents } from '../event/event.ts';
import { deleteMember, insertMember, pauseWebhooksOf } from './member.ts';

type GroupContext = WriteContext & Pick<Context, 'log'>;

/**
 * Makes the memberships of a user those of their groups, in the transaction of the sign-in. Only memberships that this issuer made
 * are changed or removed; owners and members by somebody's hand stay.
 */
export async function syncGroups(
  context: GroupContext,
  { groups: rules, issuer }: SsoIssuer,
  user_id: number,
  groups: readonly string[],
): Promise<void> {
  const wanted = wantedRoles(rules, groups);
  const found = await readMembers(context.db, user_id, issuer, [...wanted.keys()]);
  const unknown = [...wanted.keys()].filter((id) => !found.some(({ project_id }) => project_id === id));
  if (unknown.length > 0)
    context.log.warn({ issuer, projects: unknown }, 'SSO_ISSUERS names projects that do not exist.');
  const ids = differences(found, wanted, issuer).map(({ project_id }) => project_id);
  if (ids.length === 0) return;

  await lockProjects(context.db, sql`id = any(${ids})`);
  // Read again: they may have changed before the lock.
  const due = differences(await readMembers(context.db, user_id, issuer, ids), wanted, issuer);
  for (const { project_id, role, isMember } of due.filter(({ project_id }) => ids.includes(project_id))) {
    const member = { project_id, user_id };
    if (role === undefined) await deleteMember(context, project_id, user_id);
    else if (!isMember) await insertMember(context, { ...member, role, issuer });
    else {
      await context.db
        .updateTable('members')
        .set({ role })
        .where(({ and }) => and(member))
        .execute();
      await writeEvents(context, [{ type: 'member.updated', project_id, data: { user_id, role } }]);
      await pauseWebhooksOf(context, project_id, user_id);
    }
  }
}

/** By project; the highest role of several groups. */
function wantedRoles(rules: SsoIssuer['groups'], groups: readonly string[]): Map<number, Role> {
  const wanted = new Map<number, Role>();
  for (const [group, { project_id, role }] of Object.entries(rules))
    if (groups.includes(group) && !isAllowed(wanted.get(project_id) ?? null, 'write')) wanted.set(project_id, role);
  return wanted;
}

type Found = { project_id: number; is_active: boolean; role: Role | null; issuer: Row<'members'>['issuer'] };

/** The user in these projects, and wherever this issuer has made them a member. */
const readMembers = (db: Db, user_id: number, issuer: string, ids: readonly number[]) =>
  query(
    db,
    sql<Found>`
      select p.id as project_id, p.is_active, m.role, m.issuer
      from projects p left join members m on m.project_id = p.id and m.user_id = ${user_id}
      where p.id = any(${ids}::int[]) or p.id in (select project_id from members where user_id = ${user_id} and issuer = ${issuer})
      order by p.id`,
  );

/** The role that the user has to get in each project; undefined to remove the membership. */
const differences = (found: Found[], wanted: Map<number, Role>, issuer: string) =>
  found.flatMap(({ project_id, is_active, role: before, issuer: madeBy }) => {
    const role = wanted.get(project_id);
    const isOwn = before === null || (madeBy === issuer && !isAllowed(before, 'manage'));
    const isDue = is_active && isOwn && (before ?? undefined) !== role;
    return isDue ? [{ project_id, role, isMember: before !== null }] : [];
  });
