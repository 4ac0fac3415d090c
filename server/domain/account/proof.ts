import { sql } from 'kysely';
import { PROOF_MINUTES, type ProofGiven, type RecentProof, type SecondFactorProof } from '../../../shared/account.ts';
import { badRequest, forbidden, invalid, unauthorized } from '../../../shared/errors.ts';
import { isAllowed, type Role } from '../../../shared/user.ts';
import { levelOf } from '../../database/level.ts';
import { type Db, query, transact } from '../../database/query.ts';
import { rowById } from '../../database/rows.ts';
import type { Row } from '../../database/tables.ts';
import { NOW } from '../../database/timestamp.ts';
import { scopeMissing } from '../access/access.ts';
import { isOperator } from '../access/caller.ts';
import type { AccountContext, Caller, SignedInContext } from '../access/context.ts';
import { needsProof, type ProofNeed } from '../access/proofNeed.ts';
import { ADMIN_SCOPE, GRANTS_SCOPE } from '../access/scopes.ts';
import { writeEvents } from '../event/event.ts';
import { useCode } from './code.ts';
import { checkPassword } from './signIn.ts';

/** Proof that the caller is the user and not just somebody with their token. */

/** Throws a 422 unless it is the caller's password. */
export async function proveIdentity(context: AccountContext, password: string) {
  const columns = ['id', 'kind', 'name', 'email', 'password_hash', 'totp_secret'] as const;
  const user = await rowById(context.db, 'users', context.caller.id, columns);
  const { password_hash } = user;
  if (password_hash === null)
    throw forbidden(user.kind === 'service' ? NO_SERVICE_PASSWORD : NO_PASSWORD, 'no_password');
  if (!(await checkPassword(context, user, password))) {
    throw invalid({ password: 'is wrong' }, 'password_wrong');
  }
  return { ...user, password_hash };
}

const NO_SERVICE_PASSWORD = 'A service has no password and no second factor.';
const NO_PASSWORD =
  'Your account has no password. Prove that it is you by signing in at your identity provider again (auth.startSso with the purpose prove). A superadmin can give the account a password.';

/** Throws a 422 unless both the password and a code of the second factor are right. */
export async function proveSecondFactor(context: AccountContext, { password, ...code }: SecondFactorProof) {
  const user = await proveIdentity(context, password);
  if (user.totp_secret === null) throw noSecondFactor();
  if (!(await useCode(context, user, code))) throw wrongCode();
}

/** Throws unless this caller may do what needs fresh proof: a 422 for a session without it, a 403 for a key without the scope. */
export async function mustBeProven(context: SignedInContext, need: ProofNeed, input: unknown): Promise<void> {
  const { caller } = context;
  if (!needsProof(need, input) || isOperator(caller)) return;
  if (caller.key) {
    if (!caller.key.scopes.includes(GRANTS_SCOPE)) throw scopeMissing([GRANTS_SCOPE]);
    return;
  }
  if (await isProven(context)) return;
  if (need !== 'inInput') throw proofRequired();
  const { password, code, is_recovery } = input as RecentProof;
  if (password == null) throw invalid({ password: NOT_GIVEN_LATELY }, 'proof_required');
  const asked = context as AccountContext;
  await markProven(asked.db, caller.sessionId, await checkProof(asked, { password, code, is_recovery }));
}

/**
 * In the transaction of a change that outlives the session: throws a 401 if the session or key has ended meanwhile. Who ends it waits for
 * the commit, and then sees the change.
 */
export async function mustStillBeValid({ db, caller }: { db: Db; caller: Caller | undefined }): Promise<void> {
  if (!caller || isOperator(caller)) return;
  const [table, id] = caller.key ? (['api_keys', caller.key.id] as const) : (['sessions', caller.sessionId] as const);
  const valid = await query(db, sql`select from ${sql.table(table)} where id = ${id} and revoked_at is null for share`);
  if (valid.length === 0) throw unauthorized('Your session or API key has ended meanwhile.', 'credential_invalid');
}

/** Throws a 403 for a key that may not give this role: owners are made with the scope of superadmins. */
export function mustMayGive({ key }: Caller, role: Role): void {
  if (key && isAllowed(role, 'manage') && !key.scopes.includes(ADMIN_SCOPE)) throw scopeMissing([ADMIN_SCOPE]);
}

/** Checks the proof, which then counts for some minutes, in this session alone. */
export async function giveProof(context: AccountContext, proof: ProofGiven): Promise<void> {
  const user = await checkProof(context, proof);
  const isReadable = (await levelOf(context.db)) >= 1;
  await transact(context.db, async (db) => {
    await markProven(db, context.caller.sessionId, user);
    // Nodes of the previous version can't read this type.
    if (isReadable) await writeEvents({ ...context, db }, [{ type: 'session.proven' }]);
  });
}

/** Throws a 422 unless the password, and a code if a second factor is enabled, are right. Wrong ones count as failed sign-ins. */
async function checkProof(context: AccountContext, { password, code, is_recovery }: ProofGiven) {
  const user = await proveIdentity(context, password);
  if (user.totp_secret !== null) {
    if (code == null) throw invalid({ code: NOT_GIVEN_LATELY }, 'proof_required');
    if (!(await useCode(context, user, { code, is_recovery }))) throw wrongCode();
  }
  return user;
}

/** Not if the password or the second factor has changed since the check. */
export async function markProven(
  db: Db,
  sessionId: string,
  { password_hash, totp_secret }: Pick<Row<'users'>, 'password_hash' | 'totp_secret'>,
): Promise<void> {
  await db
    .updateTable('sessions')
    .set({ proven_at: NOW })
    .where('id', '=', sessionId)
    .where(sql<boolean>`(
      select password_hash is not distinct from ${password_hash} and totp_secret is not distinct from ${totp_secret}
      from users where users.id = sessions.user_id)`)
    .execute();
}

/** Whether this session has given its proof lately. */
export async function isProven({ db, caller }: SignedInContext): Promise<boolean> {
  const proven = await db
    .selectFrom('sessions')
    .select('id')
    .where('id', '=', caller.sessionId)
    .where('proven_at', '>', sql<Date>`now() - make_interval(mins => ${PROOF_MINUTES})`)
    .executeTakeFirst();
  return proven !== undefined;
}

export const proofRequired = () => invalid({ proof: PROVE_FIRST }, 'proof_required');

const PROVE_FIRST = `is required: send your password, and a code if a second factor is enabled, to account.prove (POST /api/v1/account/prove), or sign in at your identity provider again (auth.startSso with the purpose prove); then repeat this call within ${PROOF_MINUTES} minutes`;

const NOT_GIVEN_LATELY = `is required: it was not given within the last ${PROOF_MINUTES} minutes`;

const wrongCode = () => invalid({ code: 'is wrong, or was used before' }, 'code_wrong');

export const noSecondFactor = () => badRequest('No second factor is enabled.', 'second_factor_missing');
