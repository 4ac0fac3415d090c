import { sql } from 'kysely';
import type { Caller } from '../context.ts';
import { prepared } from '../database/prepared.ts';
import { type Db, withShortTimeout } from '../database/query.ts';
import type { Row } from '../database/tables.ts';
import type { Claims } from '../security/tokens.ts';

/**
 * Finds the user of a token and their project, the selected one or the default, in one round trip by keys. Undefined if the
 * session was revoked or the user deactivated.
 */
export async function findCaller(
  db: Db,
  { userId, sessionId }: Claims,
  chosenProjectId: number | undefined,
): Promise<Caller | undefined> {
  const [found] = await selectCaller(db, { userId, sessionId, chosenProjectId: chosenProjectId ?? null });
  if (!found) return undefined;

  const { id, superadmin, superadmin_billing, project_id, platform_id } = found;
  const role = superadmin ? 'owner' : found.role;
  const isReachable = role !== null || superadmin_billing;
  const project = project_id !== null && isReachable ? { id: project_id, platform_id: platform_id!, role } : undefined;
  return { id, superadmin, superadmin_billing, sessionId, project };
}

/** The project of a user `u` without X-Project-Id: the default one, else the first membership. */
export const DEFAULT_PROJECT = sql`coalesce(u.default_project_id, (
  select min(own.id) from members mine join projects own on own.id = mine.project_id and own.is_active where mine.user_id = u.id))`;

type FoundCaller = Pick<Row<'users'>, 'id' | 'superadmin' | 'superadmin_billing'> & {
  project_id: Row<'projects'>['id'] | null;
  platform_id: Row<'projects'>['platform_id'] | null;
  role: Row<'members'>['role'] | null;
};

const selectCaller = prepared<Claims & { chosenProjectId: number | null }, FoundCaller>((value) =>
  withShortTimeout(sql`
    select u.id, u.superadmin, u.superadmin_billing, p.id as project_id, p.platform_id, m.role
    from sessions s
    join users u on u.id = s.user_id and u.is_active
    left join projects p on p.is_active and p.id = coalesce(${value('chosenProjectId')}::int, ${DEFAULT_PROJECT})
    left join members m on m.project_id = p.id and m.user_id = u.id
    where s.id = ${value('sessionId')}::uuid and s.user_id = ${value('userId')}
      and s.revoked_at is null and s.expires_at > now()`),
);
