import { sql } from 'kysely';
import type { MemberChoice, MemberList, MemberSet } from '../../shared/member.ts';
import type { ProvisioningContext } from '../context.ts';
import { mapConstraintErrors, query } from '../database/query.ts';
import { invalid, notFound } from '../errors.ts';
import { readPage } from './page.ts';

/** The columns of a member `m` with its user `u`. */
const MEMBER_COLUMNS = ['m.project_id', 'm.user_id', 'u.name', 'u.email', 'm.role'] as const;

/** Adds a user to a project, or changes their role. */
export async function setMember({ db }: ProvisioningContext, { project_id, user_id, role }: MemberSet) {
  const set = db
    .with('m', (db) =>
      db
        .insertInto('members')
        .values({ project_id, user_id, role })
        .onConflict((member) => member.columns(['project_id', 'user_id']).doUpdateSet({ role }))
        .returning(['project_id', 'user_id', 'role']),
    )
    .selectFrom('m')
    .innerJoin('users as u', 'u.id', 'm.user_id')
    .select(MEMBER_COLUMNS)
    .executeTakeFirstOrThrow();
  const member = await mapConstraintErrors(set, {
    members_project_id_foreign: () => invalid({ project_id: 'does not exist' }),
    members_user_id_foreign: () => invalid({ user_id: 'does not exist' }),
  });
  return { member };
}

/** Removes a user from a project; a foreign key clears the owner of their cards. */
export async function removeMember({ db }: ProvisioningContext, { project_id, user_id }: MemberChoice): Promise<void> {
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
  if (!removed) throw notFound('This user is not a member of this project.');
}

export async function listMembers({ db }: ProvisioningContext, { project_id, ...page }: MemberList) {
  const members = db
    .selectFrom('members as m')
    .innerJoin('users as u', 'u.id', 'm.user_id')
    .select(MEMBER_COLUMNS)
    .where('m.project_id', '=', project_id);
  return readPage('members', members, page, ['m.user_id']);
}
