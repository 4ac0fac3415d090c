import { sql } from 'kysely';
import { ApiKey, type KeyChoice, type KeyCreate, type KeyList, type KeyRotate } from '../../shared/key.ts';
import type { AccountContext } from '../context.ts';
import { NOW } from '../database/moment.ts';
import { type Db, query } from '../database/query.ts';
import type { Row } from '../database/tables.ts';
import { badRequest, forbidden, invalid, notFound } from '../errors.ts';
import { ADMIN_SCOPE } from '../scopes.ts';
import { hashKeySecret, makeKeySecret } from '../security/apiKeys.ts';
import { readPage } from './page.ts';

const COLUMNS = ApiKey.keyof().options;

/** Creates a key of the caller or, for superadmins, of a service; returns its secret once. */
export async function createKey(context: AccountContext, { user_id, name, project_id, ...sent }: KeyCreate) {
  const holder = await holderOf(context, user_id);
  if (sent.expires_at && sent.expires_at.getTime() <= Date.now())
    throw invalid({ expires_at: 'must be in the future' });
  if (project_id != null) {
    if (sent.scopes.includes(ADMIN_SCOPE))
      throw invalid({ project_id: `can't be combined with the scope ${ADMIN_SCOPE}, which is for all projects` });
    await mustBeOwnProject(context.db, holder, project_id);
  }

  const secret = makeKeySecret();
  const key = await context.db
    .insertInto('api_keys')
    .values({
      user_id: holder,
      project_id,
      name,
      scopes: [...new Set(sent.scopes)].sort(),
      expires_at: sent.expires_at,
      secret_hash: hashKeySecret(secret),
    })
    .returning(COLUMNS)
    .executeTakeFirstOrThrow();
  return { key, secret };
}

/** The keys of the caller or, for superadmins, of a service; revoked and expired ones, too. */
export async function listKeys(context: AccountContext, { user_id, ...page }: KeyList) {
  const holder = await holderOf(context, user_id);
  return readPage('keys', context.db.selectFrom('api_keys').select(COLUMNS).where('user_id', '=', holder), page);
}

/** Gives a key a new secret; the previous one stays valid for these hours. An older one is no longer valid. */
export async function rotateKey(context: AccountContext, { id, previous_valid_hours }: KeyRotate) {
  await mustHold(context, id);

  const secret = makeKeySecret();
  const key = await context.db
    .updateTable('api_keys')
    .set({
      previous_hash: sql<string>`secret_hash`,
      previous_expires_at: sql<Date>`now() + make_interval(hours => ${previous_valid_hours})`,
      secret_hash: hashKeySecret(secret),
      updated_at: NOW,
    })
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .where(sql<boolean>`(expires_at is null or expires_at > now())`)
    .returning(COLUMNS)
    .executeTakeFirst();
  if (!key) throw badRequest('This key was revoked or has expired: create another one.', 'key_ended');
  return { key, secret };
}

/** Revokes a key: it is invalid from the next request on. */
export async function revokeKey(context: AccountContext, { id }: KeyChoice): Promise<void> {
  await mustHold(context, id);
  await context.db
    .updateTable('api_keys')
    .set({ revoked_at: NOW, updated_at: NOW })
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .execute();
}

/** Stores the minute in which keys were used. */
export async function recordUse(db: Db, ids: number[]): Promise<void> {
  await query(
    db,
    sql`update api_keys set last_used_at = ${THIS_MINUTE} where id = any(${ids}::int[]) and ${isUseDue('api_keys')}`,
  );
}

const THIS_MINUTE = sql`date_trunc('minute', now())`;

/** Whether the use of a key in this minute is not stored yet. */
export const isUseDue = (alias: string) =>
  sql<boolean>`coalesce(${sql.ref(`${alias}.last_used_at`)} < ${THIS_MINUTE}, true)`;

type Holder = Pick<Row<'users'>, 'id' | 'kind'>;

/** The user whose keys a call is about. */
async function holderOf(context: AccountContext, user_id: number | null | undefined): Promise<number> {
  const { db, caller } = context;
  if (user_id == null || user_id === caller.id) return caller.id;
  if (!caller.superadmin) throw forbidden('Only a superadmin may handle the keys of a service.', 'not_a_superadmin');
  const user = await db.selectFrom('users').select(['id', 'kind']).where('id', '=', user_id).executeTakeFirst();
  if (!user) throw notFound('There is no such user.');
  mustHandleKeysOf(context, user);
  return user.id;
}

async function mustHold(context: AccountContext, id: number): Promise<void> {
  const holder = await context.db
    .selectFrom('api_keys as k')
    .innerJoin('users as u', 'u.id', 'k.user_id')
    .select(['u.id', 'u.kind'])
    .where('k.id', '=', id)
    .executeTakeFirst();
  if (!holder) throw notFound('There is no such key.');
  mustHandleKeysOf(context, holder);
}

/** Keys of a person are theirs alone, also for superadmins. */
function mustHandleKeysOf({ caller }: AccountContext, { id, kind }: Holder): void {
  if (id === caller.id || (caller.superadmin && kind === 'service')) return;
  throw forbidden('This is about the keys of another person.', 'other_user');
}

async function mustBeOwnProject(db: Db, userId: number, projectId: number): Promise<void> {
  const [own] = await query(
    db,
    sql`
      select from projects p join users u on u.id = ${userId}
      where p.id = ${projectId} and p.is_active and (u.superadmin or u.superadmin_billing
        or exists (select from members m where m.project_id = p.id and m.user_id = u.id))`,
  );
  if (!own) throw invalid({ project_id: 'is not a project of this user' }, 'unknown_reference');
}
