import { sql } from 'kysely';
import type { MemberAdd, MemberChoice, MemberList, MemberSet } from '../../shared/member.ts';
import { actingProject } from '../access.ts';
import type { ProjectContext } from '../context.ts';
import { type Db, mapConstraintErrors, query, transact } from '../database/query.ts';
import { badRequest, invalid, notFound } from '../errors.ts';
import { readPage } from './page.ts';
import { bound, mustBePermitted, permitOf, roleIn } from './permission.ts';
import { type CallerRole, lockProject } from './row.ts';

/** The columns of a member `m` with its user `u`. */
const MEMBER_COLUMNS = ['m.project_id', 'm.user_id', 'u.name', 'u.email', 'm.role'] as const;

/** Adds a registered user to a project. */
export async function addMember(context: ProjectContext, { email, role, ...named }: MemberAdd) {
  const project_id = await namedProject(context, named);
  const user = await context.db
    .selectFrom('users')
    .select('id')
    .where(sql<boolean>`lower(email) = lower(${email})`)
    .where('is_active', 'is', true)
    .executeTakeFirst();
  if (!user) throw invalid({ email: 'does not belong to a registered user' }, 'not_registered');

  return transact(context.db, async (db) => {
    const added = await db
      .insertInto('members')
      .values({ project_id, user_id: user.id, role })
      .onConflict((member) => member.doNothing())
      .returning('user_id')
      .executeTakeFirst();
    if (!added) throw invalid({ email: 'belongs to a member already: set their role' }, 'already_a_member');
    return { member: await findMember(db, project_id, user.id) };
  });
}

/** Changes the role of a member; superadmins also add users. The last owner stays one. */
export async function setMember(context: ProjectContext, { user_id, role, ...named }: MemberSet) {
  const project_id = await namedProject(context, named);
  return transact(context.db, async (db) => {
    await lockProject(db, project_id);
    if (role !== 'owner') await mustLeaveAnOwner(db, project_id, user_id);

    const set = context.caller.superadmin
      ? db
          .insertInto('members')
          .values({ project_id, user_id, role })
          .onConflict((member) => member.columns(['project_id', 'user_id']).doUpdateSet({ role }))
          .returning('user_id')
      : db
          .updateTable('members')
          .set({ role })
          .where(({ and }) => and({ project_id, user_id }))
          .returning('user_id');
    const found = await mapConstraintErrors(set.executeTakeFirst(), {
      members_user_id_foreign: () => invalid({ user_id: 'does not exist' }, 'unknown_reference'),
    });
    if (!found) throw notAMember();
    return { member: await findMember(db, project_id, user_id) };
  });
}

/** Removes a user from a project, unless they are its last owner; a foreign key clears the owner of their cards. */
export async function removeMember(context: ProjectContext, { user_id, ...named }: MemberChoice): Promise<void> {
  const project_id = await namedProject(context, named);
  await transact(context.db, async (db) => {
    await lockProject(db, project_id);
    await mustLeaveAnOwner(db, project_id, user_id);

    const [removed] = await query(
      db,
      sql`
        with removed as (
          delete from members where project_id = ${project_id} and user_id = ${user_id} returning user_id
        ), default_cleared as (
          update users u set default_project_id = null from removed
          where u.id = removed.user_id and u.default_project_id = ${project_id} and not (u.superadmin or u.superadmin_billing)
        )
        select user_id from removed`,
    );
    if (!removed) throw notAMember();
  });
}

/** The members of a project. */
export async function listMembers(context: ProjectContext, { project_id, ...page }: MemberList) {
  const members = membersWithUsers(context.db).where('m.project_id', '=', await namedProject(context, { project_id }));
  return readPage('members', members, page, ['m.user_id']);
}

const membersWithUsers = (db: Db) =>
  db.selectFrom('members as m').innerJoin('users as u', 'u.id', 'm.user_id').select(MEMBER_COLUMNS);

const findMember = (db: Db, project_id: number, user_id: number) =>
  membersWithUsers(db)
    .where('m.project_id', '=', project_id)
    .where('m.user_id', '=', user_id)
    .executeTakeFirstOrThrow();

const notAMember = () => notFound('This user is not a member of this project.', 'not_a_member');

/** The project that an input names, else that of the call. Superadmins may also name an inactive one. */
async function namedProject({ db, caller }: ProjectContext, { project_id }: { project_id?: number | null }) {
  if (project_id == null) return actingProject(caller).id;
  const [project] = await query(
    db,
    sql<CallerRole>`select ${roleIn('p.id', bound(permitOf(caller)))} as caller_role from projects p where p.id = ${project_id}`,
  );
  if (!project) throw notFound('There is no such project.');
  mustBePermitted(
    caller,
    caller.superadmin ? 'owner' : project.caller_role,
    'You are not a member of this project, or another one is selected.',
  );
  return project_id;
}

/** Throws a 400 if this user is the only active owner; the project row is locked. */
async function mustLeaveAnOwner(db: Db, project_id: number, user_id: number): Promise<void> {
  const owners = await db
    .selectFrom('members as m')
    .innerJoin('users as u', 'u.id', 'm.user_id')
    .select('m.user_id')
    .where('m.project_id', '=', project_id)
    .where('m.role', '=', 'owner')
    .where(({ or, eb }) => or([eb('u.is_active', 'is', true), eb('m.user_id', '=', user_id)]))
    .limit(2)
    .execute();
  if (owners.length === 1 && owners[0]!.user_id === user_id) {
    throw badRequest('This is the last owner of the project. Make somebody else an owner first.', 'last_owner');
  }
}
