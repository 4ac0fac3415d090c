import { sql } from 'kysely';
import type {
  PasswordChange,
  SecondFactorConfirm,
  SecondFactorProof,
  SecondFactorStart,
} from '../../shared/account.ts';
import { type Db, query, transact } from '../database/query.ts';
import { badRequest, invalid, unauthorized } from '../errors.ts';
import { hashPassword } from '../security/passwords.ts';
import {
  describeSecret,
  hashRecoveryCode,
  makeRecoveryCodes,
  makeSecret,
  stepOfCode,
} from '../security/secondFactor.ts';
import type { SignedInContext } from '../trpc.ts';
import { countFailure, mustBeAllowed } from './attempt.ts';
import { claimTry, isRightCode, NO_FAILURES, openSecret } from './code.ts';
import { isRightPassword, type Moment, openSession } from './signIn.ts';
import {
  endSessions,
  forgetDevices,
  mustBeGoodPassword,
  removeSecondFactor,
  USER_COLUMNS,
  type UserRow,
} from './user.ts';

/** Who the caller is. */
export async function whoAmI({ db, caller }: SignedInContext) {
  const [account] = await query(
    db,
    sql<UserRow & { recovery_codes_left: number }>`
      select ${USER_COLUMNS}, (select count(*)::int from recovery_codes c where c.user_id = u.id and c.used_at is null) as recovery_codes_left
      from users u where u.id = ${caller.id}`,
  );
  return { account: account! };
}

/** Ends the session of the token that the call carries. */
export async function signOut({ db, caller }: SignedInContext): Promise<void> {
  await query(db, sql`update sessions set revoked_at = now() where id = ${caller.sessionId}::uuid`);
}

/** Ends every session of the caller; no device is remembered any more. */
export async function signOutEverywhere({ db, caller }: SignedInContext): Promise<void> {
  await endSessions(db, caller.id);
}

/** Changes the password. All tokens end with the old one, since any of them may be in wrong hands; the answer has a new one. */
export async function changePassword(context: SignedInContext, { password, new_password }: PasswordChange) {
  const user = await proveIdentity(context, password);
  mustBeGoodPassword('new_password', new_password, user);
  const { id, password_hash, totp_secret } = user;
  const newHash = await hashPassword(new_password, context.address);

  return transact(context.db, async (db) => {
    const changed = await query(
      db,
      sql`
        update users set password_hash = ${newHash}, updated_at = now()
        where id = ${id} and password_hash = ${password_hash} returning id`,
    );
    if (changed.length === 0) throw invalid({ password: 'is wrong' });
    const [own] = await query(
      db,
      sql<{ second_factor_at: Moment | null }>`
        select second_factor_at from sessions where id = ${context.caller.sessionId}::uuid`,
    );
    await endSessions(db, id);
    const session = await openSession(
      { db, tokens: context.tokens },
      { id, password_hash: newHash, totp_secret },
      own?.second_factor_at ?? null,
    );
    if (!session) throw unauthorized('This account was changed meanwhile: sign in again.');
    return { token: session.token };
  });
}

/** Offers a secret for an authenticator app. Nothing changes until a code confirms that the app has it. */
export async function startSecondFactor(context: SignedInContext, { password }: SecondFactorStart) {
  const { id, email } = await proveIdentity(context, password);

  const secret = makeSecret();
  // Asked again by the statement: another enrolment may have been confirmed while the password was checked.
  const offered = await query(
    context.db,
    sql`update users set totp_pending_secret = ${context.secretBox.seal(secret, id)} where id = ${id} and totp_secret is null returning id`,
  );
  if (offered.length === 0) throw badRequest('A second factor is enabled already: drop it first.');
  return { secret, ...(await describeSecret(secret, email)) };
}

/** Enables the second factor; the recovery codes are shown this once. */
export async function confirmSecondFactor(context: SignedInContext, { code }: SecondFactorConfirm) {
  const { db, caller } = context;
  const [user] = await query(
    db,
    sql<{ email: string; sealed: string | null }>`
      select email, totp_pending_secret as sealed from users where id = ${caller.id}`,
  );
  const { email, sealed } = user!;
  if (!sealed) throw badRequest('No second factor was offered: start with startSecondFactor.');
  // A stolen token must not be enough to enable what the user has given up.
  await mustBeAllowed(context, email);
  const secret = openSecret(context, caller.id, sealed);
  await claimTry(context, { id: caller.id, email });
  const step = stepOfCode(secret, code);
  if (step === undefined) {
    await countFailure(context, email, 'wrong code');
    throw invalid({ code: 'is wrong: check the clock of the device' });
  }

  return transact(db, async (db) => {
    const enabled = await query(
      db,
      sql`
        update users set totp_secret = totp_pending_secret, totp_pending_secret = null, totp_last_step = ${step}, ${NO_FAILURES},
          updated_at = now()
        where id = ${caller.id} and totp_secret is null and totp_pending_secret = ${sealed} returning id`,
    );
    if (enabled.length === 0) throw badRequest('Another second factor was offered meanwhile: start again.');
    await forgetDevices(db, caller.id);
    return replaceRecoveryCodes(db, caller.id);
  });
}

/** Disables the second factor: the password alone signs in from now on. */
export async function dropSecondFactor(context: SignedInContext, proof: SecondFactorProof): Promise<void> {
  await proveSecondFactor(context, proof);
  await removeSecondFactor(context.db, context.caller.id);
}

/** Makes new recovery codes; those from before work no more. */
export async function renewRecoveryCodes(context: SignedInContext, proof: SecondFactorProof) {
  await proveSecondFactor(context, proof);
  return transact(context.db, async (db) => {
    // One after the other, so that the codes of only one of them are left.
    const enabled = await query(
      db,
      sql`select from users where id = ${context.caller.id} and totp_secret is not null for update`,
    );
    if (enabled.length === 0) throw noSecondFactor();
    return replaceRecoveryCodes(db, context.caller.id);
  });
}

const noSecondFactor = () => badRequest('No second factor is enabled.');

type Credentials = { id: number; name: string; email: string; password_hash: string; totp_secret: string | null };

async function proveIdentity(context: SignedInContext, password: string): Promise<Credentials> {
  const [user] = await query(
    context.db,
    sql<Credentials>`select id, name, email, password_hash, totp_secret from users where id = ${context.caller.id}`,
  );
  const isRight = await isRightPassword(context, user!.email, password, user!.password_hash);
  if (!isRight) throw invalid({ password: 'is wrong' });
  return user!;
}

async function proveSecondFactor(context: SignedInContext, { password, ...code }: SecondFactorProof): Promise<void> {
  const user = await proveIdentity(context, password);
  if (user.totp_secret === null) throw noSecondFactor();
  if (!(await isRightCode(context, user, code))) throw invalid({ code: 'is wrong, or was used before' });
}

async function replaceRecoveryCodes(db: Db, userId: number) {
  const recovery_codes = makeRecoveryCodes();
  await query(db, sql`delete from recovery_codes where user_id = ${userId}`);
  await query(
    db,
    sql`insert into recovery_codes (user_id, code_hash) select ${userId}, unnest(${recovery_codes.map(hashRecoveryCode)}::text[])`,
  );
  return { recovery_codes };
}
