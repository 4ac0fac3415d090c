import { sql } from 'kysely';
import { PROOF_MINUTES, type RecentProof, type SecondFactorProof } from '../../../shared/account.ts';
import { badRequest, forbidden, invalid } from '../../../shared/errors.ts';
import { NOW } from '../../database/timestamp.ts';
import { NO_SESSION } from '../access/caller.ts';
import type { AccountContext } from '../access/context.ts';
import { useCode } from './code.ts';
import { checkPassword } from './signIn.ts';

/** Proof that the caller is the user and not just somebody with their token. */

/** Throws a 422 unless it is the caller's password. */
export async function proveIdentity(context: AccountContext, password: string) {
  const user = await context.db
    .selectFrom('users')
    .select(['id', 'name', 'email', 'password_hash', 'totp_secret'])
    .where('id', '=', context.caller.id)
    .executeTakeFirstOrThrow();
  const { password_hash } = user;
  if (password_hash === null) throw forbidden('A service has no password and no second factor.', 'no_password');
  if (!(await checkPassword(context, user, password))) {
    throw invalid({ password: 'is wrong' }, 'password_wrong');
  }
  return { ...user, password_hash };
}

/** Throws a 422 unless both the password and a code of the second factor are right. */
export async function proveSecondFactor(context: AccountContext, { password, ...code }: SecondFactorProof) {
  const user = await proveIdentity(context, password);
  if (user.totp_secret === null) throw noSecondFactor();
  if (!(await useCode(context, user, code))) throw wrongCode();
}

/** Asks for the password, and for a code if a second factor is enabled, unless this session has given them lately. */
export async function proveRecently(context: AccountContext, { password, code, is_recovery }: RecentProof) {
  const { db, caller } = context;
  // The operator at the command line has the whole database.
  if (caller.sessionId === NO_SESSION) return;
  const proven = await db
    .selectFrom('sessions')
    .select('id')
    .where('id', '=', caller.sessionId)
    .where('proven_at', '>', sql<Date>`now() - make_interval(mins => ${PROOF_MINUTES})`)
    .executeTakeFirst();
  if (proven) return;

  if (password == null) throw invalid({ password: NOT_GIVEN_LATELY }, 'proof_required');
  const user = await proveIdentity(context, password);
  if (user.totp_secret !== null) {
    if (code == null) throw invalid({ code: NOT_GIVEN_LATELY }, 'proof_required');
    if (!(await useCode(context, user, { code, is_recovery }))) throw wrongCode();
  }
  await db.updateTable('sessions').set({ proven_at: NOW }).where('id', '=', caller.sessionId).execute();
}

const NOT_GIVEN_LATELY = `is required: it was not given within the last ${PROOF_MINUTES} minutes`;

const wrongCode = () => invalid({ code: 'is wrong, or was used before' }, 'code_wrong');

export const noSecondFactor = () => badRequest('No second factor is enabled.', 'second_factor_missing');
