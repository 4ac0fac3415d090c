import { sql } from 'kysely';
import type { z } from 'zod';
import type { Member, MemberChoice, MemberList, MemberSet } from '../../shared/member.ts';
import type { Provisioning } from '../context.ts';
import { orRefuse, query } from '../database/query.ts';
import { invalid, notFound } from '../errors.ts';
import { readCursor, toPage } from './page.ts';

type MemberRow = z.input<typeof Member>;

/** Makes a user a member of a project, or gives them another role there. */
export async function setMember({ db }: Provisioning, { project_id, user_id, role }: MemberSet) {
  const set = query(
    db,
    sql<MemberRow>`
      with member as (
        insert into members (project_id, user_id, role) values (${project_id}, ${user_id}, ${role})
        on conflict (project_id, user_id) do update set role = excluded.role returning *
      )
      select member.project_id, member.user_id, u.name, u.email, member.role from member join users u on u.id = member.user_id`,
  );
  const [member] = await orRefuse(set, {
    members_project_id_foreign: () => invalid({ project_id: 'names no project' }),
    members_user_id_foreign: () => invalid({ user_id: 'names no user' }),
  });
  return { member: member! };
}

/** Takes a user out of a project, and off the cards that they were in charge of there. */
export async function removeMember({ db }: Provisioning, { project_id, user_id }: MemberChoice): Promise<void> {
  const removed = await query(
    db,
    sql`
      with removed as (
        delete from members where project_id = ${project_id} and user_id = ${user_id} returning user_id
      ), homeless as (
        update users u set default_project_id = null from removed
        where u.id = removed.user_id and u.default_project_id = ${project_id} and not (u.superadmin or u.superadmin_billing)
      )
      select from removed`,
  );
  if (removed.length === 0) throw notFound('This user is not a member of this project.');
}

export async function listMembers({ db }: Provisioning, { project_id, cursor, limit }: MemberList) {
  const [after] = readCursor(cursor, 1) ?? [0];
  const found = await query(
    db,
    sql<MemberRow>`
      select m.project_id, m.user_id, u.name, u.email, m.role from members m join users u on u.id = m.user_id
      where m.project_id = ${project_id} and m.user_id > ${after} order by m.user_id limit ${limit + 1}`,
  );
  const { rows: members, next_cursor } = toPage(found, limit, ({ user_id }) => [user_id]);
  return { members, next_cursor };
}
