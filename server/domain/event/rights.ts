import { sql } from 'kysely';
import { query } from '../../database/query.ts';
import { SUPERADMIN_BY_KEY } from '../access/caller.ts';
import type { Caller, Context, With } from '../access/context.ts';
import { isValidKey, maxDays } from '../access/keyEnd.ts';
import { isManager } from '../access/permission.ts';
import { scopesFor } from '../access/scopes.ts';
import type { FollowerCredential, Rights } from './following.ts';

export const credentialOf = ({ key, sessionId }: Caller): FollowerCredential =>
  key
    ? { name: `key ${key.id} ${key.secretHash}`, key_id: key.id, secret_hash: key.secretHash }
    : { name: `session ${sessionId}`, session_id: sessionId };

/** A rotation may have taken it from a key. */
const NEEDED_SCOPES = scopesFor({ name: 'events.follow', type: 'subscription', access: 'viewer' }) ?? [];

/**
 * What these credentials still allow, by their names, in one statement for all followers. One that was revoked or has expired,
 * that lost the scope, or whose user was deactivated, is missing.
 */
export async function findRights(
  { db, services: { keyMaxDays } }: Pick<Context, 'db'> & With<'keyMaxDays'>,
  credentials: readonly FollowerCredential[],
): Promise<Map<string, Rights>> {
  const found = await query(
    db,
    sql<{ name: string; superadmin: boolean; projects: { id: number; is_owner: boolean }[] }>`
      with sent as (
        select * from jsonb_to_recordset(${JSON.stringify(credentials)}::jsonb)
          as c (name text, session_id uuid, key_id int, secret_hash text)
      ), valid as (
        select sent.name, u.id, u.superadmin from sent
        join sessions s on s.id = sent.session_id and s.revoked_at is null and s.expires_at > now()
        join users u on u.id = s.user_id and u.is_active
        union all
        select sent.name, u.id, ${SUPERADMIN_BY_KEY} from sent
        join api_keys k on k.id = sent.key_id and ${isValidKey('k', maxDays(keyMaxDays))} and k.scopes @> ${NEEDED_SCOPES}::text[]
          and (k.secret_hash = sent.secret_hash or (k.previous_hash = sent.secret_hash and k.previous_expires_at > now()))
        join users u on u.id = k.user_id and u.is_active
      )
      select valid.name, valid.superadmin, (
        select coalesce(json_agg(json_build_object('id', p.id, 'is_owner', ${isManager('m')})), '[]')
        from members m join projects p on p.id = m.project_id and p.is_active where m.user_id = valid.id) as projects
      from valid`,
  );
  const idsOf = (projects: { id: number }[]) => new Set(projects.map(({ id }) => id));
  return new Map(
    found.map(({ name, superadmin, projects }) => {
      const owned = idsOf(projects.filter(({ is_owner }) => is_owner));
      return [name, { superadmin, projects: idsOf(projects), owned }];
    }),
  );
}
