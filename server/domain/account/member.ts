import { sql } from 'kysely';
import { badRequest, forbidden, invalid, notFound } from '../../../shared/errors.ts';
import type { EventData } from '../../../shared/event.ts';
import type { MemberAdd, MemberChoice, MemberLeave, MemberList, MemberSet } from '../../../shared/member.ts';
import { HIGHEST_ROLE, isAllowed, isHigher, lowestRoleWith } from '../../../shared/user.ts';
import type { PausedWebhook } from '../../../shared/webhook.ts';
import { readPage } from '../../database/page.ts';
import { lockProject } from '../../database/projectLock.ts';
import { containsText, type Db, query, transact } from '../../database/query.ts';
import type { NewRow, Row } from '../../database/tables.ts';
import { actingProject } from '../access/access.ts';
import { defaultProjectOf } from '../access/caller.ts';
import type { AccountContext, ProjectContext, SignedInContext } from '../access/context.ts';
import { bound, isManager, mustBePermitted, permitOf, roleIn } from '../access/permission.ts';
import { clearCards } from '../board/cardReference.ts';
import { type WriteContext, writeEvents } from '../event/event.ts';
import { madeBy, pauseWithoutRight } from '../event/webhookRight.ts';
import { unknownProject } from './project.ts';
import { mustBeProven, mustMayGive, mustStillBeValid } from './proof.ts';

/** The columns of a member `m` with its user `u`. */
const MEMBER_COLUMNS = ['m.project_id', 'm.user_id', 'u.name', 'u.email', 'm.role'] as const;

/** Adds a registered user to a project, without asking them: for superadmins. */
export async function addMember(context: SignedInContext, { email, role, ...named }: MemberAdd) {
  mustMayGive(context.caller, role);
  const project_id = await namedProject(asOwner(context), named);
  const user = await context.db
    .selectFrom('users')
    .select('id')
    .where(sql<boolean>`lower(email) = lower(${email})`)
    .where('is_active', 'is', true)
    // An address that nobody confirmed may be somebody else's.
    .where('email_confirmed_at', 'is not', null)
    .executeTakeFirstOrThrow(() => invalid({ email: 'does not belong to a registered user' }, 'not_registered'));

  return transact(context.db, async (db) => {
    await lockProject(db, project_id);
    await mustStillBeValid({ ...context, db });
    const isAdded = await insertMember({ ...context, db }, { project_id, user_id: user.id, role });
    if (!isAdded) throw invalid({ email: 'belongs to a member already: set their role' }, 'already_a_member');
    return { member: await findMember(db, project_id, user.id) };
  });
}

/** Changes the role of a member; superadmins also add users. The last owner stays one. */
export async function setMember(context: ProjectContext, { user_id, role, ...named }: MemberSet) {
  const project_id = await namedProject(context, named);
  return transact(context.db, async (db) => {
    await lockProject(db, project_id);
    if (!isAllowed(role, 'manage')) await mustLeaveAnOwner(db, project_id, user_id);

    const before = await db
      .selectFrom('members')
      .select('role')
      .where(({ and }) => and({ project_id, user_id }))
      .executeTakeFirst();
    if (!before && !context.caller.superadmin) throw notAMember();
    if (!before || isHigher(role, before.role)) {
      mustMayGive(context.caller, role);
      await mustBeProven({ ...context, db }, 'always', undefined);
      await mustStillBeValid({ ...context, db });
    }
    if (!before) {
      const isAdded = await insertMember({ ...context, db }, { project_id, user_id, role });
      if (!isAdded) throw invalid({ user_id: 'does not exist' }, 'unknown_reference');
    } else if (before.role !== role) {
      await db
        .updateTable('members')
        // It is no longer the issuer's, whose groups would undo this at the next sign-in.
        .set({ role, issuer: null })
        .where(({ and }) => and({ project_id, user_id }))
        .execute();
      await writeEvents({ ...context, db }, [{ type: 'member.updated', project_id, data: { user_id, role } }]);
    }
    const paused_webhooks = await pauseWebhooksOf({ ...context, db }, project_id, user_id);
    return { member: await findMember(db, project_id, user_id), paused_webhooks };
  });
}

/**
 * Adds a user to a project, whose row is locked; false if they are a member already, or do not exist.
 *
 * - `holder`: the user, unless they were erased.
 * - `added`: the membership.
 * - `default_set`: keeps the project that the user's calls went to before as their default, so that a new membership never
 *   redirects them; without one, the new project.
 * - `invitation_settled`: deletes the invitation of their address.
 */
export async function insertMember(
  context: WriteContext,
  { project_id, user_id, role, issuer = null }: NewRow<'members'>,
  /** One that was accepted, and is deleted already. */
  accepted: EventData = {},
): Promise<boolean> {
  const [added] = await query(
    context.db,
    sql<{ invitation_id: number | null }>`
      with holder as (
        select id from users where id = ${user_id} and erased_at is null for key share
      ), added as (
        insert into members (project_id, user_id, role, issuer)
        select ${project_id}::int, id, ${role}::text, ${issuer}::text from holder
        on conflict do nothing returning user_id
      ), default_set as (
        update users u set default_project_id = coalesce(${defaultProjectOf(sql`u.superadmin`)}, ${project_id})
        where u.id = (select user_id from added) and u.default_project_id is null
      ), invitation_settled as (
        delete from invitations i using added join users u on u.id = added.user_id
        where i.project_id = ${project_id} and lower(i.email) = lower(u.email) and u.email_confirmed_at is not null returning i.id
      )
      select (select id from invitation_settled) as invitation_id from added`,
  );
  if (!added) return false;
  const settled = added.invitation_id === null ? accepted : { invitation_id: added.invitation_id };
  await writeEvents(context, [{ type: 'member.added', project_id, data: { user_id, role, ...settled } }]);
  return true;
}

/** Removes a user from a project, unless they are its last owner; their cards have no owner then. */
export async function removeMember(context: ProjectContext, { user_id, ...named }: MemberChoice) {
  return { paused_webhooks: await deleteMember(context, await namedProject(context, named), user_id) };
}

/** Ends the caller's membership, also in an inactive project. */
export async function leaveProject(context: AccountContext, { project_id }: MemberLeave): Promise<void> {
  const { db, caller } = context;
  const project = await db
    .selectFrom('projects as p')
    .leftJoin('members as m', (own) => own.onRef('m.project_id', '=', 'p.id').on('m.user_id', '=', caller.id))
    .select('m.role')
    .where('p.id', '=', project_id)
    .executeTakeFirstOrThrow(unknownProject);
  const isElsewhere = caller.isProjectChosen && caller.project?.id !== project_id;
  if (project.role === null || isElsewhere) throw forbidden(NOT_YOURS, 'other_project');
  await deleteMember(context, project_id, caller.id);
}

/** Returns the webhooks that lose their maker with it. */
export async function deleteMember(
  context: WriteContext,
  project_id: number,
  user_id: number,
  { mayBeLastOwner = false } = {},
): Promise<PausedWebhook[]> {
  return transact(context.db, async (db) => {
    await lockProject(db, project_id);
    if (!mayBeLastOwner) await mustLeaveAnOwner(db, project_id, user_id);

    // Waits for changes that give them cards, so that the event names these, too.
    await query(db, sql`select from members where project_id = ${project_id} and user_id = ${user_id} for update`);
    const { data: cards } = await clearCards(db, 'owner_id', sql`owner_id = ${user_id} and project_id = ${project_id}`);
    // `default_cleared`: calls of a former member must not go to this project; superadmins keep it without a membership.
    const [removed] = await query(
      db,
      sql<Pick<Row<'members'>, 'role'>>`
        with removed as (
          delete from members where project_id = ${project_id} and user_id = ${user_id} returning user_id, role
        ), default_cleared as (
          update users u set default_project_id = null
          where u.id = (select user_id from removed) and u.default_project_id = ${project_id} and not (u.superadmin or u.superadmin_billing)
        )
        select role from removed`,
    );
    if (!removed) throw notAMember();
    const data = { user_id, role: removed.role, ...cards };
    await writeEvents({ ...context, db }, [{ type: 'member.removed', project_id, data }]);
    return pauseWebhooksOf({ ...context, db }, project_id, user_id);
  });
}

export const pauseWebhooksOf = (context: WriteContext, project_id: number, user_id: number) =>
  pauseWithoutRight(context, sql`${madeBy(user_id)} and w.project_id = ${project_id}`);

/** The members of a project. */
export async function listMembers(context: ProjectContext, { project_id, search, ...page }: MemberList) {
  const members = membersWithUsers(context.db)
    .where('m.project_id', '=', await namedProject(context, { project_id }))
    .where(containsText(search, 'u.name', 'u.email'));
  return readPage('members', members, page, ['m.user_id']);
}

const membersWithUsers = (db: Db) =>
  db.selectFrom('members as m').innerJoin('users as u', 'u.id', 'm.user_id').select(MEMBER_COLUMNS);

export const findMember = (db: Db, project_id: number, user_id: number) =>
  membersWithUsers(db)
    .where('m.project_id', '=', project_id)
    .where('m.user_id', '=', user_id)
    .executeTakeFirstOrThrow();

const notAMember = () => notFound('This user is not a member of this project.', 'not_a_member');

/** The project that an input names, else that of the call. Superadmins may also name an inactive one. */
export async function namedProject({ db, caller }: ProjectContext, { project_id }: { project_id?: number | null }) {
  if (project_id == null) return actingProject(caller).id;
  const project = await db
    .selectFrom('projects as p')
    .select(roleIn('p.id', bound(permitOf(caller))).as('caller_role'))
    .where('p.id', '=', project_id)
    .executeTakeFirstOrThrow(unknownProject);
  const isOfAll = caller.superadmin && !caller.isProjectChosen;
  mustBePermitted(caller, { id: project_id, role: isOfAll ? HIGHEST_ROLE : project.caller_role }, NOT_YOURS);
  return project_id;
}

const NOT_YOURS = 'You are not a member of this project, or another one is selected.';

const asOwner = <Signed extends SignedInContext>(context: Signed) => ({
  ...context,
  caller: { ...context.caller, neededRole: lowestRoleWith('manage') },
});

/** Throws a 400 if this user is the only active owner; the project row is locked. */
async function mustLeaveAnOwner(db: Db, project_id: number, user_id: number): Promise<void> {
  const owners = await db
    .selectFrom('members as m')
    .innerJoin('users as u', 'u.id', 'm.user_id')
    .select('m.user_id')
    .where('m.project_id', '=', project_id)
    .where(isManager('m'))
    .where(({ or, eb }) => or([eb('u.is_active', 'is', true), eb('m.user_id', '=', user_id)]))
    .limit(2)
    .execute();
  const [owner, ...others] = owners;
  if (owner?.user_id === user_id && others.length === 0)
    throw badRequest('This is the last owner of the project. Make somebody else an owner first.', 'last_owner');
}
