import { sql } from 'kysely';
import { badRequest, forbidden, invalid, notFound } from '../../../shared/errors.ts';
import { ApiKey, type KeyChoice, type KeyCreate, type KeyList, type KeyRotate } from '../../../shared/key.ts';
import { type Db, transact } from '../../database/query.ts';
import type { Row } from '../../database/tables.ts';
import { NOW } from '../../database/timestamp.ts';
import { hashKeySecret, makeKeySecret } from '../../security/apiKeys.ts';
import type { AccountContext } from '../access/context.ts';
import { ADMIN_SCOPE } from '../access/scopes.ts';
import { readPage } from '../rows/page.ts';
import { isOwnProject } from './project.ts';
import { proveRecently } from './proof.ts';

const COLUMNS = ApiKey.keyof().options;

/** Creates a key of the caller or, for superadmins, of a service; returns its secret once. */
export async function createKey(context: AccountContext, { user_id, name, project_id, ...sent }: KeyCreate) {
  await proveRecently(context, sent);
  const holder = await holderOf(context, user_id);
  if (sent.expires_at && sent.expires_at.getTime() <= Date.now())
    throw invalid({ expires_at: 'must be in the future' });
  if (project_id != null) {
    if (sent.scopes.includes(ADMIN_SCOPE))
      throw invalid({ project_id: `can't be combined with the scope ${ADMIN_SCOPE}, which is for all projects` });
    // Without the scope admin, the rights of a superadmin do not count.
    if (!(await isOwnProject(context.db, { id: holder, superadmin: false }, project_id)))
      throw invalid({ project_id: 'is not a project of this user' }, 'unknown_reference');
  }

  const secret = makeKeySecret();
  const row = {
    user_id: holder,
    project_id,
    name,
    scopes: [...new Set(sent.scopes)].sort(),
    expires_at: sent.expires_at,
    secret_hash: hashKeySecret(secret),
  };
  return transact(context.db, async (db) => {
    await makeRoomForKey(db, holder);
    return { key: await db.insertInto('api_keys').values(row).returning(COLUMNS).executeTakeFirstOrThrow(), secret };
  });
}

const MOST_VALID_KEYS = 100;
const MOST_ENDED_KEYS = 100;

/** Throws a 400 if the user has too many keys; removes the oldest of those that were revoked or have expired. */
async function makeRoomForKey(db: Db, userId: number): Promise<void> {
  // One at a time for each user, so that the count is right.
  await db.selectFrom('users').select('id').where('id', '=', userId).forNoKeyUpdate().execute();
  if ((await countValidKeys(db, userId)) >= MOST_VALID_KEYS)
    throw badRequest(`A user has at most ${MOST_VALID_KEYS} valid keys. Revoke some of them first.`, 'place_full');
  const ended = db.selectFrom('api_keys').select('id').where('user_id', '=', userId).where(IS_ENDED);
  await db.deleteFrom('api_keys').where('id', 'in', ended.orderBy('id', 'desc').offset(MOST_ENDED_KEYS)).execute();
}

/** Counts the valid keys of a user, after revoking them all if asked to. */
export async function countValidKeys(db: Db, userId: number, { areRevoked = false } = {}): Promise<number> {
  if (areRevoked) {
    await db
      .updateTable('api_keys')
      .set({ revoked_at: NOW, updated_at: NOW })
      .where('user_id', '=', userId)
      .where('revoked_at', 'is', null)
      .execute();
  }
  const { keys } = await db
    .selectFrom('api_keys')
    .select(sql<number>`count(*)::int`.as('keys'))
    .where('user_id', '=', userId)
    .where(IS_VALID)
    .executeTakeFirstOrThrow();
  return keys;
}

const IS_VALID = sql<boolean>`(revoked_at is null and (expires_at is null or expires_at > now()))`;
const IS_ENDED = sql<boolean>`not ${IS_VALID}`;

/** The keys of the caller or, for superadmins, of a service; revoked and expired ones, too. */
export async function listKeys(context: AccountContext, { user_id, ...page }: KeyList) {
  const holder = await holderOf(context, user_id);
  return readPage('keys', context.db.selectFrom('api_keys').select(COLUMNS).where('user_id', '=', holder), page);
}

/** Gives a key a new secret; the previous one stays valid for these hours. An older one is no longer valid. */
export async function rotateKey(context: AccountContext, { id, previous_valid_hours, ...proof }: KeyRotate) {
  await proveRecently(context, proof);
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
    .where(IS_VALID)
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

type Holder = Pick<Row<'users'>, 'id' | 'kind'>;

/** The user whose keys a call is about. */
async function holderOf(context: AccountContext, user_id: number | null | undefined): Promise<number> {
  const { db, caller } = context;
  if (user_id == null || user_id === caller.id) return caller.id;
  if (!caller.superadmin) throw forbidden('Only a superadmin may handle the keys of a service.', 'not_a_superadmin');
  const user = await db
    .selectFrom('users')
    .select(['id', 'kind'])
    .where('id', '=', user_id)
    .executeTakeFirstOrThrow(() => notFound('There is no such user.'));
  mustHandleKeysOf(context, user);
  return user.id;
}

async function mustHold(context: AccountContext, id: number): Promise<void> {
  const holder = await context.db
    .selectFrom('api_keys as k')
    .innerJoin('users as u', 'u.id', 'k.user_id')
    .select(['u.id', 'u.kind'])
    .where('k.id', '=', id)
    .executeTakeFirstOrThrow(() => notFound('There is no such key.'));
  mustHandleKeysOf(context, holder);
}

/** Keys of a person are theirs alone, also for superadmins. */
function mustHandleKeysOf({ caller }: AccountContext, { id, kind }: Holder): void {
  if (id === caller.id || (caller.superadmin && kind === 'service')) return;
  throw forbidden("You can't manage another person's keys.", 'other_user');
}
