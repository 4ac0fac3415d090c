import { sql } from 'kysely';
import { badRequest, forbidden, invalid, notFound } from '../../../shared/errors.ts';
import { ApiKey, type KeyChoice, type KeyCreate, type KeyList, type KeyRotate } from '../../../shared/key.ts';
import { readPage } from '../../database/page.ts';
import { type Db, transact } from '../../database/query.ts';
import type { Row } from '../../database/tables.ts';
import { NOW } from '../../database/timestamp.ts';
import { hashKeySecret, makeKeySecret } from '../../security/apiKeys.ts';
import type { AccountContext, With } from '../access/context.ts';
import { countValidKeys, endOfKey, isValidKey, maxDays } from '../access/keyEnd.ts';
import { scopesOf } from '../access/keyScopes.ts';
import { isManager } from '../access/permission.ts';
import { ADMIN_SCOPE, GRANTS_SCOPE } from '../access/scopes.ts';
import { type Happened, type WriteContext, writeEvents } from '../event/event.ts';
import { madeBy, madeWith, pauseWithoutRight } from '../event/webhookRight.ts';
import { notify } from '../mail/mail.ts';
import { isOwnProject } from './project.ts';
import { mustStillBeValid } from './proof.ts';
import { lockUser } from './user.ts';

type KeyAge = With<'keyMaxDays'>;

/** The columns of a key; `expires_at` is when it really ends. */
export const keyColumns = ({ services: { keyMaxDays } }: KeyAge) =>
  ApiKey.keyof().options.map((field) => {
    if (field === 'expires_at') return endOfKey('api_keys', maxDays(keyMaxDays)).as(field);
    return field === 'scopes' ? scopesOf('api_keys').as(field) : (`api_keys.${field}` as const);
  });

export const isValid = ({ services: { keyMaxDays } }: KeyAge) => isValidKey('api_keys', maxDays(keyMaxDays));

/** Creates a key of the caller or, for superadmins, of a service; returns its secret once. */
export async function createKey(context: AccountContext, { user_id, name, project_id, ...sent }: KeyCreate) {
  const holder = await holderOf(context, user_id);
  if (sent.expires_at && sent.expires_at.getTime() <= Date.now())
    throw invalid({ expires_at: 'must be in the future' });
  await mustFit(context.db, holder, { scopes: sent.scopes, project_id });
  if (sent.scopes.includes(GRANTS_SCOPE) && !(await mayGrant(context, project_id)))
    throw invalid({ scopes: `can't have ${GRANTS_SCOPE}: it is for owners and superadmins` });

  const secret = makeKeySecret();
  const row = {
    user_id: holder,
    project_id,
    name,
    scopes: [...new Set(sent.scopes)].sort(),
    names_grants: true,
    expires_at: sent.expires_at,
    secret_hash: hashKeySecret(secret),
  };
  return transact(context.db, async (db) => {
    await makeRoomForKey({ ...context, db }, holder);
    await mustStillBeValid({ ...context, db });
    const key = await db.insertInto('api_keys').values(row).returning(keyColumns(context)).executeTakeFirstOrThrow();
    await writeEvents({ ...context, db }, [keyEvent('key.created', key)]);
    await notify({ ...context, db }, 'key_created', holder, { name });
    return { key, secret };
  });
}

/** Throws a 422 unless credentials of this user can have these scopes and this project. */
export async function mustFit(
  db: Db,
  holder: number,
  { scopes, project_id }: { scopes: readonly string[]; project_id?: number | null | undefined },
): Promise<void> {
  if (project_id == null) return;
  if (scopes.includes(ADMIN_SCOPE))
    throw invalid({ project_id: `can't be combined with the scope ${ADMIN_SCOPE}, which is for all projects` });
  // Without the scope admin, the rights of a superadmin do not count.
  if (!(await isOwnProject(db, { id: holder, superadmin: false }, project_id)))
    throw invalid({ project_id: 'is not a project of this user' }, 'unknown_reference');
}

/** Whether the caller is a superadmin, or owns this project or, without one, any. */
async function mayGrant({ db, caller }: AccountContext, project_id: number | null | undefined): Promise<boolean> {
  if (caller.superadmin) return true;
  const owned = await db
    .selectFrom('members')
    .select('project_id')
    .where('user_id', '=', caller.id)
    .where(isManager('members'))
    .$if(project_id != null, (all) => all.where('project_id', '=', project_id ?? 0))
    .executeTakeFirst();
  return owned !== undefined;
}

const MOST_VALID_KEYS = 100;
const MOST_ENDED_KEYS = 100;

/** Throws a 400 if the user has too many keys; removes the oldest of those that were revoked or have expired. */
async function makeRoomForKey(context: KeyAge & { db: Db }, userId: number): Promise<void> {
  const { db } = context;
  // One at a time for each user, so that the count is right.
  await lockUser(db, userId);
  if ((await countValidKeys(context, userId)) >= MOST_VALID_KEYS)
    throw badRequest(`A user has at most ${MOST_VALID_KEYS} valid keys. Revoke some of them first.`, 'place_full');
  const ended = db
    .selectFrom('api_keys')
    .select('id')
    .where('user_id', '=', userId)
    .where('rule_id', 'is', null)
    .where(sql<boolean>`not ${isValid(context)}`);
  await db.deleteFrom('api_keys').where('id', 'in', ended.orderBy('id', 'desc').offset(MOST_ENDED_KEYS)).execute();
}

/** Revokes all keys of a user, in a transaction. */
export async function revokeKeys(context: WriteContext, userId: number): Promise<void> {
  const revoked = await context.db
    .updateTable('api_keys')
    .set({ revoked_at: NOW, updated_at: NOW })
    .where('user_id', '=', userId)
    .where('revoked_at', 'is', null)
    .returning(EVENT_COLUMNS)
    .execute();
  await writeEvents(
    context,
    revoked.map((key) => keyEvent('key.revoked', key)),
  );
  if (revoked.length > 0) await pauseWithoutRight(context, sql`${madeBy(userId)} and w.key_id is not null`);
}

/** The keys of the caller or, for superadmins, of a service; revoked and expired ones, too. */
export async function listKeys(context: AccountContext, { user_id, ...page }: KeyList) {
  const holder = await holderOf(context, user_id);
  const keys = context.db
    .selectFrom('api_keys')
    .select(keyColumns(context))
    .where('user_id', '=', holder)
    .where('rule_id', 'is', null);
  return readPage('keys', keys, page);
}

/** Gives a key a new secret; the previous one stays valid for these hours. An older one is no longer valid. */
export async function rotateKey(context: AccountContext, { id, previous_valid_hours }: KeyRotate) {
  await mustHold(context, id);
  return transact(context.db, (db) => replaceSecret({ ...context, db }, { id, previous_valid_hours }));
}

/** Gives a valid key a new secret, in a transaction. The previous one ends no later than without the rotation. */
export async function replaceSecret(
  context: AccountContext,
  { id, previous_valid_hours, scopes }: Pick<KeyRotate, 'id' | 'previous_valid_hours'> & { scopes?: string[] },
) {
  const secret = makeKeySecret();
  const end = endOfKey('api_keys', maxDays(context.services.keyMaxDays));
  const key = await context.db
    .updateTable('api_keys')
    .set({
      previous_hash: sql<string>`secret_hash`,
      previous_expires_at: sql<Date>`least(now() + make_interval(hours => ${previous_valid_hours}), ${end})`,
      secret_hash: hashKeySecret(secret),
      ...(scopes && { scopes, names_grants: true }),
      rotated_at: NOW,
      warned_at: null,
      updated_at: NOW,
    })
    .where('id', '=', id)
    .where(isValid(context))
    .returning(keyColumns(context))
    .executeTakeFirstOrThrow(keyEnded);
  const changed = scopes && { fields: ['scopes'] };
  await writeEvents(context, [keyEvent('key.rotated', key, changed)]);
  if (scopes) await pauseWithoutRight(context, madeWith(key));
  return { key, secret };
}

export const keyEnded = () => badRequest('This key was revoked or has expired: create another one.', 'key_ended');

/** Revokes a key: it is invalid from the next request on. Returns the webhooks that were created with it. */
export async function revokeKey(context: AccountContext, { id }: KeyChoice) {
  await mustHold(context, id);
  const paused_webhooks = await transact(context.db, async (db) => {
    const key = await db
      .updateTable('api_keys')
      .set({ revoked_at: NOW, updated_at: NOW })
      .where('id', '=', id)
      .where('revoked_at', 'is', null)
      .returning(EVENT_COLUMNS)
      .executeTakeFirst();
    if (!key) return [];
    await writeEvents({ ...context, db }, [keyEvent('key.revoked', key)]);
    return pauseWithoutRight({ ...context, db }, madeWith(key));
  });
  return { paused_webhooks };
}

const EVENT_COLUMNS = ['id', 'user_id', 'project_id'] as const;

/** The event of a key, in its project if it has one, and whose key it is. */
const keyEvent = (
  type: Happened['type'],
  { id, user_id, project_id }: Pick<Row<'api_keys'>, (typeof EVENT_COLUMNS)[number]>,
  more: Happened['data'] = {},
): Happened => ({ type, project_id, subject_id: id, data: { user_id, ...more } });

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
    .where('erased_at', 'is', null)
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
    .where('k.rule_id', 'is', null)
    .executeTakeFirstOrThrow(() => notFound('There is no such key.'));
  mustHandleKeysOf(context, holder);
}

/** Keys of a person are theirs alone, also for superadmins. */
function mustHandleKeysOf({ caller }: AccountContext, { id, kind }: Holder): void {
  if (id === caller.id || (caller.superadmin && kind === 'service')) return;
  throw forbidden("You can't manage another person's keys.", 'other_user');
}
