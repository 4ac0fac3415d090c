import { sql } from 'kysely';
import type {
  DefaultProject,
  PasswordChange,
  SecondFactorConfirm,
  SecondFactorProof,
  SecondFactorStart,
  SignOutEverywhere,
} from '../../../shared/account.ts';
import { badRequest, forbidden, invalid, unauthorized } from '../../../shared/errors.ts';
import { type Db, transact } from '../../database/query.ts';
import { rowById } from '../../database/rows.ts';
import { NOW } from '../../database/timestamp.ts';
import { hashPassword } from '../../security/passwords.ts';
import {
  describeSecret,
  hashRecoveryCode,
  makeRecoveryCodes,
  makeSecret,
  stepOfCode,
} from '../../security/secondFactor.ts';
import { isOperator } from '../access/caller.ts';
import type { AccountContext } from '../access/context.ts';
import { countValidKeys } from '../access/keyEnd.ts';
import { writeEvents } from '../event/event.ts';
import { endLinks } from '../mail/link.ts';
import { notify } from '../mail/mail.ts';
import { countFailure, mustBeAllowed } from './attempt.ts';
import { countTry, openSecret, RESET_FAILURES } from './code.ts';
import { unlinkDoubtful } from './identity.ts';
import { revokeKeys } from './key.ts';
import { isOwnProject, unknownProject } from './project.ts';
import { isProven, noSecondFactor, proofRequired, proveIdentity, proveSecondFactor } from './proof.ts';
import { openSession } from './signIn.ts';
import { endSessions, forgetDevices, mustBeGoodPassword, removeSecondFactor, signOutOf, USER_COLUMNS } from './user.ts';

/** Returns the caller's account. */
export async function whoAmI({ db, caller }: AccountContext) {
  const account = await db
    .selectFrom('users')
    .select(USER_COLUMNS)
    .select([CODES_LEFT.as('recovery_codes_left'), sql<boolean>`password_hash is not null`.as('has_password')])
    .where('id', '=', caller.id)
    .executeTakeFirstOrThrow();
  return { account };
}

const CODES_LEFT = sql<number>`(select count(*)::int from recovery_codes where user_id = users.id and used_at is null)`;

/** Ends the session of the caller's token. */
export async function signOut(context: AccountContext): Promise<void> {
  await transact(context.db, async (db) => {
    const ended = await db
      .updateTable('sessions')
      .set({ revoked_at: NOW })
      .where('id', '=', context.caller.sessionId)
      .where('revoked_at', 'is', null)
      .returning('id')
      .executeTakeFirst();
    if (ended) await writeEvents({ ...context, db }, [{ type: 'session.ended' }]);
  });
}

/** Ends every session of the caller, and forgets remembered devices. API keys stay valid unless they are revoked, too. */
export async function signOutEverywhere(context: AccountContext, { revoke_keys }: SignOutEverywhere) {
  const { id } = context.caller;
  return transact(context.db, async (db) => {
    await signOutOf({ ...context, db }, id);
    if (revoke_keys) await revokeKeys({ ...context, db }, id);
    const identities_left = await unlinkDoubtful({ ...context, db }, id, context.caller.sessionId);
    return { keys_left: await countValidKeys({ ...context, db }, id), identities_left };
  });
}

/** Sets the project of the caller's calls that name no project and no row. */
export async function setDefaultProject(context: AccountContext, { project_id }: DefaultProject): Promise<void> {
  const { db, caller } = context;
  const isOwn = await isOwnProject(db, caller, project_id);
  if (isOwn === undefined) throw unknownProject();
  if (!isOwn) throw forbidden('This is not an active project of yours.', 'other_project');
  await transact(db, async (db) => {
    const changed = await db
      .updateTable('users')
      .set({ default_project_id: project_id, updated_at: NOW })
      .where('id', '=', caller.id)
      .where('default_project_id', 'is distinct from', project_id)
      .returning('id')
      .executeTakeFirst();
    if (!changed) return;
    const data = { fields: ['default_project_id'] };
    await writeEvents({ ...context, db }, [{ type: 'user.updated', subject_id: caller.id, data }]);
  });
}

/** Changes the password. Ends all sessions, since any token may be stolen, and returns a new token. */
export async function changePassword(context: AccountContext, { password, new_password, revoke_keys }: PasswordChange) {
  const user = await proveIdentity(context, password);
  mustBeGoodPassword('new_password', new_password, user);
  const { id, password_hash, totp_secret } = user;
  if (totp_secret !== null && !isOperator(context.caller) && !(await isProven(context))) throw proofRequired();
  const newHash = await hashPassword(new_password, context.origin.address);

  return transact(context.db, async (db) => {
    await db
      .updateTable('users')
      .set({ password_hash: newHash, updated_at: NOW })
      .where('id', '=', id)
      .where('password_hash', '=', password_hash)
      .returning('id')
      .executeTakeFirstOrThrow(() => invalid({ password: 'is wrong' }, 'password_wrong'));
    const own = await db
      .selectFrom('sessions')
      .select('second_factor_at')
      .where('id', '=', context.caller.sessionId)
      .executeTakeFirst();
    await endSessions(db, id);
    const identities_left = await unlinkDoubtful({ ...context, db }, id, context.caller.sessionId);
    await endLinks(db, [user.email], ['password_reset'], id);
    const session = await openSession(
      { ...context, db },
      { id, password_hash: newHash, totp_secret },
      own?.second_factor_at ?? null,
    );
    if (!session) throw unauthorized('This account has changed in the meantime: sign in again.', 'credential_invalid');
    await writeEvents({ ...context, db }, [{ type: 'user.password_changed', subject_id: id }]);
    await notify({ ...context, db }, 'password_changed', id);
    if (revoke_keys) await revokeKeys({ ...context, db }, id);
    return { token: session.token, keys_left: await countValidKeys({ ...context, db }, id), identities_left };
  });
}

/** Creates a secret for an authenticator app. It is not enabled until a code confirms it. */
export async function startSecondFactor(context: AccountContext, { password }: SecondFactorStart) {
  const { id, email } = await proveIdentity(context, password);

  const secret = await makeSecret();
  // Checked in the statement: another enrolment may have been confirmed during the password check.
  await transact(context.db, async (db) => {
    await db
      .updateTable('users')
      .set({ totp_pending_secret: context.services.secretBox.seal(secret, id) })
      .where('id', '=', id)
      .where('totp_secret', 'is', null)
      .returning('id')
      .executeTakeFirstOrThrow(() =>
        badRequest('A second factor is already enabled: drop it first.', 'second_factor_enabled'),
      );
    await writeEvents({ ...context, db }, [{ type: 'second_factor.started', data: { user_id: id } }]);
  });
  return { secret, ...(await describeSecret(secret, email)) };
}

/** Enables the second factor, and returns the recovery codes once. */
export async function confirmSecondFactor(context: AccountContext, { code }: SecondFactorConfirm) {
  const { db, caller } = context;
  const user = await rowById(db, 'users', caller.id, ['email', 'totp_pending_secret']);
  const { email, totp_pending_secret: sealed } = user;
  if (!sealed)
    throw badRequest('No second factor was offered: start with startSecondFactor.', 'second_factor_not_started');
  // Limited like a sign-in: a stolen token must not be enough to confirm by guessing.
  await mustBeAllowed(context, email);
  const secret = openSecret(context, caller.id, sealed);
  await countTry(context, { id: caller.id, email });
  const step = await stepOfCode(secret, code);
  if (step === undefined) {
    await countFailure(context, { id: caller.id, email }, 'wrong code');
    throw invalid({ code: 'is wrong: check the clock of the device' }, 'code_wrong');
  }

  return transact(db, async (db) => {
    const enabled = await db
      .updateTable('users')
      .set({ totp_secret: sealed, totp_pending_secret: null, totp_last_step: step, ...RESET_FAILURES, updated_at: NOW })
      .where('id', '=', caller.id)
      .where('totp_secret', 'is', null)
      .where('totp_pending_secret', '=', sealed)
      .returning('id')
      .executeTakeFirst();
    if (!enabled)
      throw badRequest('A newer second factor was offered in the meantime: start again.', 'second_factor_not_started');
    await forgetDevices(db, caller.id);
    await writeEvents({ ...context, db }, [{ type: 'second_factor.enabled', data: { user_id: caller.id } }]);
    await notify({ ...context, db }, 'second_factor_enabled', caller.id);
    return replaceRecoveryCodes(db, caller.id);
  });
}

/** Disables the second factor: the password alone signs in from now on. */
export async function dropSecondFactor(context: AccountContext, proof: SecondFactorProof): Promise<void> {
  await proveSecondFactor(context, proof);
  await removeSecondFactor(context, context.caller.id);
}

/** Creates new recovery codes, and invalidates the old ones. */
export async function renewRecoveryCodes(context: AccountContext, proof: SecondFactorProof) {
  await proveSecondFactor(context, proof);
  const { id } = context.caller;
  return transact(context.db, async (db) => {
    // Locks the user row: of two calls at once, only the codes of the later one are left.
    await db
      .selectFrom('users')
      .select('id')
      .where('id', '=', id)
      .where('totp_secret', 'is not', null)
      .forUpdate()
      .executeTakeFirstOrThrow(noSecondFactor);
    await writeEvents({ ...context, db }, [{ type: 'recovery_codes.renewed', data: { user_id: id } }]);
    return replaceRecoveryCodes(db, id);
  });
}

async function replaceRecoveryCodes(db: Db, user_id: number) {
  const recovery_codes = makeRecoveryCodes();
  const rows = recovery_codes.map((code) => ({ user_id, code_hash: hashRecoveryCode(code) }));
  await db.deleteFrom('recovery_codes').where('user_id', '=', user_id).execute();
  await db.insertInto('recovery_codes').values(rows).execute();
  return { recovery_codes };
}
