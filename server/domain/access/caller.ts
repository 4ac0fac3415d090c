import { type RawBuilder, sql } from 'kysely';
import { HIGHEST_ROLE, lowestRoleWith, ROLES, type Role } from '../../../shared/user.ts';
import { prepared, type ValueOf } from '../../database/prepared.ts';
import { type Db, query, withShortTimeout } from '../../database/query.ts';
import type { Row } from '../../database/tables.ts';
import { writtenBy } from '../../database/writePosition.ts';
import type { Claims } from '../../security/tokens.ts';
import { rolesFrom } from './access.ts';
import type { AccountCaller, Caller, CallerKey, FoundCaller, FoundKey } from './context.ts';
import { isValidKey } from './keyEnd.ts';
import { scopesOf } from './keyScopes.ts';
import { isUseDue } from './keyUse.ts';
import { ADMIN_SCOPE } from './scopes.ts';

/** What a request sent: a token, or the hash of an API key. */
export type Credential = Claims | { keyHash: string };

/**
 * Finds the user of a token or key and their project, the selected one or the default, in one round trip by keys. The highest role in
 * any project is looked up only where that in the default project is too low. Undefined if the session or key was revoked or has
 * expired, or the user was deactivated.
 */
export async function findCaller(
  db: Db,
  credential: Credential,
  chosenProjectId: number | undefined,
  /** The role that the called procedures need; undefined if they need none. */
  neededRole?: Role,
  /** With replicas, how far the user has written is read, too. */
  { hasReplicas = false, keyMaxDays }: { hasReplicas?: boolean; keyMaxDays?: number | undefined } = {},
): Promise<AccountCaller | undefined> {
  const { select, selectByKey } = hasReplicas ? WITH_REPLICAS : WITHOUT_REPLICAS;
  const enough = rolesFrom(neededRole ?? lowestRoleWith('read'));
  const call = { chosenProjectId: chosenProjectId ?? null, enough };
  if ('keyHash' in credential) {
    const [found] = await selectByKey(db, { ...credential, ...call, keyMaxDays: keyMaxDays ?? null });
    return found && toCaller(found, NO_SESSION, chosenProjectId, toKey(found, credential.keyHash, chosenProjectId));
  }
  const [found] = await select(db, { ...credential, ...call });
  return found && toCaller(found, credential.sessionId, chosenProjectId);
}

/** Finds the user with this e-mail address, for commands that act as them, without a session. */
export async function findCallerByEmail(
  db: Db,
  email: string,
  chosenProjectId: number | undefined,
): Promise<AccountCaller | undefined> {
  const [found] = await query(
    db,
    sql<FoundCaller>`
      ${callerOf(sql`users u`, sql`${chosenProjectId ?? null}`, sql`${rolesFrom(HIGHEST_ROLE)}`)}
      where lower(u.email) = lower(${email}) and u.is_active`,
  );
  return found && toCaller(found, NO_SESSION, chosenProjectId);
}

/** The operator at the command line: a superadmin without an account. */
export async function findOperator(db: Db, chosenProjectId: number | undefined): Promise<Caller> {
  const isProjectChosen = chosenProjectId !== undefined;
  const [found] = isProjectChosen
    ? await query(
        db,
        sql<Pick<Row<'projects'>, 'id' | 'platform_id'>>`
          select id, platform_id from projects where id = ${chosenProjectId} and is_active`,
      )
    : [];
  return {
    id: null,
    sessionId: NO_SESSION,
    superadmin: true,
    superadmin_billing: true,
    project: found && { ...found, role: HIGHEST_ROLE },
    isProjectChosen,
    highestRole: isProjectChosen && !found ? null : HIGHEST_ROLE,
  };
}

/** An id that no session has: of callers with an API key, and at the command line. */
export const NO_SESSION = '00000000-0000-0000-0000-000000000000';

/** Whether somebody calls at the command line, without an account or as any user: they have the whole database. */
export const isOperator = ({ sessionId, key }: Caller): boolean => sessionId === NO_SESSION && !key;

function toCaller(
  found: FoundCaller,
  sessionId: string,
  chosenProjectId: number | undefined,
  key?: CallerKey,
): AccountCaller {
  const { id, superadmin, superadmin_billing, rate_limit_per_minute: ownRateLimit, project_id, platform_id } = found;
  const role = superadmin ? HIGHEST_ROLE : found.role;
  const isReachable = role !== null || superadmin_billing;
  const project =
    project_id !== null && platform_id !== null && isReachable ? { id: project_id, platform_id, role } : undefined;
  const isProjectChosen = key?.projectId != null || chosenProjectId !== undefined;
  const highestRole = superadmin && (project || !isProjectChosen) ? HIGHEST_ROLE : found.highest_role;
  const rights = { id, superadmin, superadmin_billing, project, isProjectChosen, highestRole };
  const caller = { ...rights, ownRateLimit, sessionId, found };
  const { write_epoch: epoch, write_position: position } = found;
  const written = epoch !== undefined && position !== undefined && { written: { epoch, position } };
  return { ...caller, ...(key && { key }), ...written };
}

const toKey = (
  { key_id: id, scopes, key_project_id: projectId, is_use_due: isUseDue }: FoundKey,
  secretHash: string,
  chosenProjectId: number | undefined,
): CallerKey => {
  const isElsewhere = projectId !== null && chosenProjectId !== undefined && chosenProjectId !== projectId;
  return { id, secretHash, scopes, projectId, isElsewhere, isUseDue };
};

/**
 * The project of a user `u` for calls that name neither a row nor a project: the default one while it is active and theirs,
 * else the one that they have been a member of for the longest time, so that a new membership changes nothing, else, for a
 * superadmin, the first of all.
 */
export const defaultProjectOf = (superadmin: RawBuilder<boolean>) => sql<number | null>`coalesce(
  (select preset.id from projects preset where preset.id = u.default_project_id and preset.is_active and (
    ${superadmin} or u.superadmin_billing or exists (select from members mine where mine.project_id = preset.id and mine.user_id = u.id))),
  (select mine.project_id from members mine where mine.user_id = u.id and ${isInActiveProject('mine')}
    order by mine.created_at, mine.project_id limit 1),
  case when ${superadmin} then (select min(id) from projects where is_active) end)`;

/** Looks up the project by its id: without statistics, PostgreSQL would read all projects for a join. */
function isInActiveProject(member: string) {
  return sql`(select p.is_active from projects p where p.id = ${sql.ref(`${member}.project_id`)})`;
}

const SUPERADMIN = sql<boolean>`u.superadmin`;
/** Of a key `k`: without the scope admin, only the memberships of its user count. */
export const SUPERADMIN_BY_KEY = sql<boolean>`(u.superadmin and k.project_id is null and ${sql.lit(ADMIN_SCOPE)} = any(k.scopes))`;

const ASCENDING_ROLES = sql`array[${sql.join(ROLES.map((role) => sql.lit(role)))}]`;

/** The highest role of a user `u` in any active project. */
const HIGHEST_OF_ALL = sql`(
  select (${ASCENDING_ROLES})[max(array_position(${ASCENDING_ROLES}, any_m.role))]
  from members any_m where any_m.user_id = u.id and ${isInActiveProject('any_m')})`;

/**
 * Selects users `u` with the selected project, or their default one, and their role there as `p`.
 *
 * - `preset`: the selected project, or the stored default one while it can be used: the usual case, by keys.
 * - `other`: looked up only if there is neither.
 */
const callerOf = (
  users: RawBuilder<unknown>,
  chosenProjectId: RawBuilder<number | null>,
  enough: RawBuilder<Role[]>,
  { superadmin = SUPERADMIN, more = sql`` } = {},
) => {
  const projectWithRole = (condition: RawBuilder<unknown>) => sql`(
      select own_p.id, own_p.platform_id, own_m.role from projects own_p
      left join members own_m on own_m.project_id = own_p.id and own_m.user_id = u.id
      where own_p.is_active and ${condition} offset 0)`;
  return sql<FoundCaller>`
    select ${more}u.id, ${superadmin} as superadmin, u.superadmin_billing, u.rate_limit_per_minute, u.default_project_id,
      p.id as project_id, p.platform_id, p.role,
      case when ${chosenProjectId}::int is not null or ${superadmin} or p.role = any(${enough}::text[])
        then p.role else ${HIGHEST_OF_ALL} end as highest_role
    from ${users}
    left join lateral ${projectWithRole(sql`own_p.id = coalesce(${chosenProjectId}::int, u.default_project_id)
      and (${chosenProjectId}::int is not null or ${superadmin} or u.superadmin_billing or own_m.role is not null)`)} as preset on true
    left join lateral ${projectWithRole(sql`preset.id is null and ${chosenProjectId}::int is null
      and own_p.id = ${defaultProjectOf(superadmin)}`)} as other on true
    cross join lateral (
      select coalesce(preset.id, other.id) as id, coalesce(preset.platform_id, other.platform_id) as platform_id,
        case when preset.id is null then other.role else preset.role end as role) as p`;
};

export type Call = { chosenProjectId: number | null; enough: Role[] };
export type BySession = Claims & Call;
export type ByKey = { keyHash: string; keyMaxDays: number | null } & Call;

/** An active user `u` with a valid session `s`, or key `k`: the tables, the condition, and the columns that depend on it. */
export type ValidUser = {
  users: RawBuilder<unknown>;
  isValid: RawBuilder<boolean>;
  superadmin: RawBuilder<boolean>;
  ofKey: Record<string, RawBuilder<unknown>>;
};

export const userBySession = (value: ValueOf<BySession>): ValidUser => ({
  users: sql`sessions s join users u on u.id = s.user_id and u.is_active`,
  isValid: sql`s.id = ${value('sessionId')}::uuid and s.user_id = ${value('userId')}
      and s.revoked_at is null and s.expires_at > now()`,
  superadmin: SUPERADMIN,
  ofKey: {},
});

/** Two look-ups by unique indexes: an `or` over both hashes would read the whole table while it is small. */
export const userByKey = (value: ValueOf<ByKey>): ValidUser => ({
  users: sql`api_keys k join users u on u.id = k.user_id and u.is_active`,
  isValid: sql`k.secret_hash = coalesce(
        (select rotated.secret_hash from api_keys rotated
          where rotated.previous_hash = ${value('keyHash')} and rotated.previous_expires_at > now()),
        ${value('keyHash')})
      and ${isValidKey('k', value('keyMaxDays'))}`,
  superadmin: SUPERADMIN_BY_KEY,
  ofKey: {
    key_id: sql`k.id`,
    scopes: scopesOf('k'),
    key_project_id: sql`k.project_id`,
    is_use_due: isUseDue('k'),
  },
});

const selectCaller = (more = sql``) =>
  prepared<BySession, FoundCaller>(
    (value) => {
      const user = userBySession(value);
      return withShortTimeout(sql`
        ${callerOf(user.users, value('chosenProjectId'), value('enough'), { more })} where ${user.isValid}`);
    },
    { isShort: true },
  );
const selectCallerByKey = (more = sql``) =>
  prepared<ByKey, FoundCaller & FoundKey>(
    (value) => {
      const { users, isValid, superadmin, ofKey } = userByKey(value);
      const chosen = sql<number | null>`coalesce(k.project_id, ${value('chosenProjectId')}::int)`;
      const columns = Object.entries(ofKey).map(([name, column]) => sql`${column} as ${sql.ref(name)}, `);
      const options = { superadmin, more: sql`${more}${sql.join(columns, sql``)}` };
      return withShortTimeout(sql`${callerOf(users, chosen, value('enough'), options)} where ${isValid}`);
    },
    { isShort: true },
  );

const WITHOUT_REPLICAS = { select: selectCaller(), selectByKey: selectCallerByKey() };
const WRITTEN = writtenBy(sql`u.id`);
const WITH_REPLICAS: typeof WITHOUT_REPLICAS = {
  select: selectCaller(WRITTEN),
  selectByKey: selectCallerByKey(WRITTEN),
};
