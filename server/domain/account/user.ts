import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { badRequest, invalid, notFound } from '../../../shared/errors.ts';
import { id } from '../../../shared/fields.ts';
import { User, type UserCreate, type UserList, type UserUpdate } from '../../../shared/user.ts';
import { readPage } from '../../database/page.ts';
import { containsText, type Db, mapConstraintErrors, transact } from '../../database/query.ts';
import { insertRow, updateRow } from '../../database/rows.ts';
import type { RowChanges } from '../../database/tables.ts';
import { NOW } from '../../database/timestamp.ts';
import { refusePassword } from '../../security/commonPasswords.ts';
import { hashPassword } from '../../security/passwords.ts';
import { isOperator } from '../access/caller.ts';
import type { ProvisioningContext, With } from '../access/context.ts';
import { preparation } from '../access/preparation.ts';
import { differingFields, type Happened, type WriteContext, writeEvents } from '../event/event.ts';
import { madeBy, pauseWithoutRight } from '../event/webhookRight.ts';
import { endLinks, LINK_KINDS } from '../mail/link.ts';
import { notify } from '../mail/mail.ts';

import { RESET_FAILURES } from './code.ts';
import { unlinkDoubtful } from './identity.ts';
import { giveBack, refuseHoldings } from './leaving.ts';

/** The columns of a user for superadmins. */
export const USER_COLUMNS = User.keyof().options.map((field) => {
  if (field === 'has_second_factor') return sql<boolean>`totp_secret is not null`.as(field);
  return field === 'has_password' ? sql<boolean>`password_hash is not null`.as(field) : field;
});

export const unknownUser = () => notFound('There is no such user.');

/** Calls about the same user take turns. Throws a 404 for one who was erased. */
export const lockUser = (db: Db, id: number) =>
  db
    .selectFrom('users')
    .select('id')
    .where('id', '=', id)
    .where('erased_at', 'is', null)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow(unknownUser);

const ONLY_FOR_PERSONS = 'is only for persons';

export const CONSTRAINT_ERRORS = {
  users_email_unique: () => invalid({ email: 'belongs to another user' }, 'already_exists'),
  users_sign_in_check: () => invalid({ password: ONLY_FOR_PERSONS }),
  users_erased_check: unknownUser,
  users_default_project_id_foreign: () => invalid({ default_project_id: 'does not exist' }, 'unknown_reference'),
};

/** Hashes the password of an input; undefined if there is none. */
export const hashSentPassword = preparation(
  async ({ origin }: ProvisioningContext, { password }: { password?: string | null | undefined }) =>
    password == null ? undefined : hashPassword(password, origin.address),
);

export async function createUser(context: ProvisioningContext, { password, ...fields }: UserCreate) {
  const { name, kind, email = makeHandle(), language, default_project_id, rate_limit_per_minute } = fields;
  if (password !== undefined) mustBeGoodPassword('password', password, { name, email });
  const password_hash = await hashSentPassword(context, { password });
  return transact(context.db, async (db) => {
    const row = { name, kind, email, password_hash, language, default_project_id, rate_limit_per_minute };
    const inserted = insertRow(db, 'users', { ...row, ...rightsOf(fields) }, USER_COLUMNS);
    const user = await mapConstraintErrors(inserted, CONSTRAINT_ERRORS);
    await writeEvents({ ...context, db }, [{ type: 'user.created', subject_id: user.id }]);
    return { user };
  });
}

/** No mail can arrive there. */
export const SERVICE_DOMAIN = '@service.invalid';

/** The place of an e-mail address for services, unique. */
const makeHandle = () => `service-${randomBytes(6).toString('hex')}${SERVICE_DOMAIN}`;

/**
 * Changes the sent fields of a user. A new password or deactivation ends all their sessions. An address that a superadmin enters
 * counts as confirmed.
 */
export async function updateUser(context: ProvisioningContext, sent: UserUpdate) {
  const { user } = await changeUser(context, sent);
  return { user };
}

/** Refuses whatever a user holds from now on, and says what that is. */
export async function deactivateUser(context: ProvisioningContext, { id }: { id: number }) {
  const { user, left } = await changeUser(context, { id, is_active: false });
  return { user, ...(left as NonNullable<typeof left>) };
}

/** Undoes it, except for the sessions, which have ended. */
export async function activateUser(context: ProvisioningContext, { id }: { id: number }) {
  const { user, back } = await changeUser(context, { id, is_active: true });
  return { user, ...(back as NonNullable<typeof back>) };
}

async function changeUser(context: ProvisioningContext, { id, password, ...fields }: UserUpdate) {
  const { name, email, is_active, language, default_project_id, rate_limit_per_minute } = fields;
  if (password != null) mustBeAnother(context, id, { password: 'is your own: change it with account.changePassword' });
  const password_hash = await hashSentPassword(context, { password });
  const changes: RowChanges<'users'> = {
    name: name ?? undefined,
    email: email ?? undefined,
    is_active: is_active ?? undefined,
    ...(is_active && { deactivated_at: null }),
    language,
    default_project_id,
    rate_limit_per_minute,
    password_hash,
    ...rightsOf(fields),
    // Only someone who knew the old password could guess codes.
    ...(password_hash && RESET_FAILURES),
  };

  return transact(context.db, async (db) => {
    // Locks superadmins in the order of their ids, so before this one.
    if (is_active === false || fields.superadmin === false) await mustLeaveASuperadmin(db, id);
    const before = await db
      .selectFrom('users')
      .select(USER_COLUMNS)
      .select('deactivated_at')
      .where('id', '=', id)
      .where('erased_at', 'is', null)
      .forNoKeyUpdate()
      .executeTakeFirstOrThrow(unknownUser);
    // Before the change, so that they go to the address so far.
    if (password_hash !== undefined) await notify({ ...context, db }, 'password_changed', id);
    if (email != null && !isSameAddress(email, before.email)) await notify({ ...context, db }, 'address_changed', id);
    const changed = {
      ...changes,
      ...(email != null && confirmedBy(before, email)),
      ...(is_active === false && before.is_active && { deactivated_at: NOW }),
      updated_at: NOW,
    };
    const user = await mapConstraintErrors(updateRow(db, 'users', id, changed, USER_COLUMNS), CONSTRAINT_ERRORS);
    if (user.kind === 'service' && email != null) throw invalid({ email: ONLY_FOR_PERSONS });
    if (password != null) mustBeGoodPassword('password', password, user);
    const isSignedOut = password_hash !== undefined || is_active === false;
    const sessions_ended = isSignedOut ? await endSessions(db, id) : 0;
    if (isSignedOut) await unlinkDoubtful({ ...context, db }, id);
    if (user.email !== before.email) await endLinks(db, [before.email, user.email], LINK_KINDS, id);
    else if (is_active === false) await endLinks(db, [user.email], LINK_KINDS, id);
    else if (password_hash !== undefined) await endLinks(db, [user.email], ['password_reset'], id);
    const differing = differingFields(before, user);
    const happened: Happened[] = [];
    if (differing.length > 0) happened.push({ type: 'user.updated', subject_id: id, data: { fields: differing } });
    if (password_hash !== undefined) happened.push({ type: 'user.password_changed', subject_id: id });
    await writeEvents({ ...context, db }, happened);
    const inTransaction = { ...context, db };
    const left = is_active === false ? { sessions_ended, ...(await refuseHoldings(inTransaction, id)) } : undefined;
    const back = is_active ? await giveBack(inTransaction, id, before.deactivated_at) : undefined;
    if (fields.superadmin === false && !left) await pauseWithoutRight(inTransaction, madeBy(id));
    return { user, left, back };
  });
}

export const isSameAddress = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();

/** Entered once more, the same address stays confirmed since when it was. */
const confirmedBy = (before: { email: string; email_confirmed_at: Date | null }, email: string) =>
  before.email === email && before.email_confirmed_at ? {} : { email_confirmed_at: NOW };

/** Throws a 400 if nobody else could administer the service without an identity provider. Waits for others who ask this. */
export async function mustLeaveASuperadmin(db: Db, id: number): Promise<void> {
  const remaining = await db
    .selectFrom('users')
    .select('id')
    // In these words, an index finds them.
    .where(sql<boolean>`superadmin`)
    .where('is_active', 'is', true)
    .where('password_hash', 'is not', null)
    .orderBy('id')
    .forNoKeyUpdate()
    .execute();
  if (remaining.length === 1 && remaining[0]?.id === id)
    throw badRequest(
      'This is the last active superadmin with a password. Make somebody else a superadmin first.',
      'last_superadmin',
    );
}

/** Null does not change a right. */
const rightsOf = ({ superadmin, superadmin_billing, enable_ai }: Partial<UserUpdate>) => ({
  superadmin: superadmin ?? undefined,
  superadmin_billing: superadmin_billing ?? undefined,
  enable_ai: enable_ai ?? undefined,
});

/** Throws a 422 on this field for a password that is easy to guess. */
export function mustBeGoodPassword(field: string, password: string, user: { email: string; name: string }): void {
  const reason = refusePassword(password, user);
  if (reason) throw invalid({ [field]: reason }, 'password_weak');
}

/** Users by id. */
export async function listUsers({ db }: ProvisioningContext, { id: wanted, search, ...page }: UserList) {
  const hasText = containsText(search, 'name', 'email');
  const { data: number } = id.safeParse(/^\d+$/.test(search ?? '') ? Number(search) : null);
  const users = db
    .selectFrom('users')
    .select(USER_COLUMNS)
    .where(number === undefined ? hasText : sql<boolean>`(${hasText} or id = ${number})`)
    .$if(wanted != null, (query) => query.where('id', '=', wanted as number));
  return readPage('users', users, page);
}

/** Signs a user out everywhere. */
export async function signOutUser(context: ProvisioningContext, { id }: { id: number }): Promise<void> {
  await transact(context.db, async (db) => {
    await db.selectFrom('users').select('id').where('id', '=', id).executeTakeFirstOrThrow(unknownUser);
    await signOutOf({ ...context, db }, id);
    await unlinkDoubtful({ ...context, db }, id);
  });
}

/** Ends all sessions of a user, in a transaction. */
export async function signOutOf(context: WriteContext, user_id: number): Promise<void> {
  const count = await endSessions(context.db, user_id);
  if (count > 0) await writeEvents(context, [{ type: 'sessions.ended', data: { user_id, count } }]);
}

/** For a user who has lost the second factor and the recovery codes. */
export async function dropSecondFactorOf(context: ProvisioningContext, { id }: { id: number }): Promise<void> {
  mustBeAnother(context, id, { id: 'is your own account: use account.dropSecondFactor' });
  await removeSecondFactor(context, id);
}

/** Throws a 422 for the caller's own account: the own password and second factor need the password with the same call. */
function mustBeAnother({ caller }: ProvisioningContext, id: number, refusal: Record<string, string>): void {
  if (caller?.id === id && !isOperator(caller)) throw invalid(refusal, 'own_account');
}

/** Revokes all sessions: tokens and remembered devices are invalid from the next request on. Returns how many there were. */
export async function endSessions(db: Db, userId: number): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('sessions')
    .set({ revoked_at: NOW })
    .where('user_id', '=', userId)
    .where('revoked_at', 'is', null)
    .where(MAY_BE_USED)
    .executeTakeFirstOrThrow();
  return Number(numUpdatedRows);
}

/** Expired sessions without a remembered device are useless: many may wait for their removal. */
const MAY_BE_USED = sql<boolean>`(expires_at > now() or second_factor_at is not null)`;

/** Removes the second factor of an account, also one that was only started. */
export async function removeSecondFactor(context: WriteContext & With<'sendsMail'>, userId: number): Promise<void> {
  await transact(context.db, async (db) => {
    const { has_one, is_enabled } = await db
      .selectFrom('users')
      .select(sql<boolean>`coalesce(totp_secret, totp_pending_secret) is not null`.as('has_one'))
      .select(sql<boolean>`totp_secret is not null`.as('is_enabled'))
      .where('id', '=', userId)
      .forNoKeyUpdate()
      .executeTakeFirstOrThrow(unknownUser);
    await db
      .updateTable('users')
      .set({ totp_secret: null, totp_pending_secret: null, ...RESET_FAILURES, updated_at: NOW })
      .where('id', '=', userId)
      .execute();
    await db.deleteFrom('recovery_codes').where('user_id', '=', userId).execute();
    await forgetDevices(db, userId);
    if (has_one) await writeEvents({ ...context, db }, [{ type: 'second_factor.dropped', data: { user_id: userId } }]);
    if (is_enabled) await notify({ ...context, db }, 'second_factor_dropped', userId);
  });
}

/** Forgets remembered devices and recent proofs, so that they need a code of the new second factor. */
export async function forgetDevices(db: Db, userId: number): Promise<void> {
  await db
    .updateTable('sessions')
    .set({ second_factor_at: null, proven_at: null })
    .where('user_id', '=', userId)
    .where(MAY_BE_USED)
    .execute();
}
