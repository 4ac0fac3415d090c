import { sql } from 'kysely';
import type { Context } from '../context.ts';
import { type Db, query } from '../database/query.ts';
import { tooManyRequests } from '../errors.ts';
import { hashRecoveryCode, stepOfCode } from '../security/secondFactor.ts';
import { countFailure, logFailure } from './attempt.ts';
import { MISSING_SECRET } from './reseal.ts';

export type CodeOwner = { id: number; email: string; totp_secret: string | null };

/** Uses a code up, and counts a wrong one. Each code works once, whoever is first. Only for those who know the password. */
export async function isRightCode(
  context: Context,
  user: CodeOwner,
  { code, is_recovery }: { code: string; is_recovery?: boolean | null },
): Promise<boolean> {
  const isRight = is_recovery ? await useRecoveryCode(context.db, user, code) : await useTotpCode(context, user, code);
  if (!isRight) await countFailure(context, user.email, 'wrong code');
  return isRight;
}

/** Recovery codes can't be guessed: they work while others have to wait. */
async function useRecoveryCode(db: Db, { id }: CodeOwner, code: string): Promise<boolean> {
  const used = await query(
    db,
    sql`
      with used as (
        update recovery_codes set used_at = now()
        where user_id = ${id} and code_hash = ${hashRecoveryCode(code)} and used_at is null returning user_id
      )
      update users set ${NO_FAILURES} where id in (select user_id from used) returning id`,
  );
  return used.length > 0;
}

async function useTotpCode(context: Context, user: CodeOwner, code: string): Promise<boolean> {
  const { id, totp_secret } = user;
  if (totp_secret === null) return false;
  const secret = openSecret(context, id, totp_secret);
  await claimTry(context, user);
  const step = stepOfCode(secret, code);
  if (step === undefined) return false;
  const used = await query(
    context.db,
    sql`
      update users set totp_last_step = ${step}, ${NO_FAILURES}
      where id = ${id} and totp_secret = ${totp_secret} and totp_last_step < ${step} returning id`,
  );
  return used.length > 0;
}

/** As the authenticator app has it. A secret that can't be read is our fault, and lets nobody in. */
export function openSecret({ secretBox }: Pick<Context, 'secretBox'>, userId: number, sealed: string): string {
  const secret = secretBox.open(sealed, userId);
  if (secret === undefined) throw new Error(`The second factor of user ${userId} can't be read. ${MISSING_SECRET}`);
  return secret;
}

export const NO_FAILURES = sql`totp_failures = 0, totp_blocked_until = null`;

const FREE_TRIES = 5;
const LONGEST_WAIT_MINUTES = 6 * 60;

/**
 * Counts a code as wrong before it is looked at, so that many at once are no more tries than one after the other. Three of
 * 1,000,000 codes are right at a time: these waits leave 16 tries on the first day, and four a day from then on.
 */
export async function claimTry(context: Context, { id, email }: Pick<CodeOwner, 'id' | 'email'>): Promise<void> {
  const { db } = context;
  const claimed = await query(
    db,
    sql`
      update users set totp_failures = totp_failures + 1, totp_blocked_until = case when totp_failures + 1 >= ${FREE_TRIES}::int
        then now() + make_interval(mins => least(${LONGEST_WAIT_MINUTES}::int, 2 ^ least(totp_failures + 1 - ${FREE_TRIES}::int, 20))::int) end
      where id = ${id} and (totp_blocked_until is null or totp_blocked_until <= now()) returning id`,
  );
  if (claimed.length > 0) return;

  const [blocked] = await query(
    db,
    sql<{ seconds: number }>`
      select ceil(extract(epoch from totp_blocked_until - now()))::int as seconds from users where id = ${id}`,
  );
  logFailure(context, email, 'blocked');
  throw tooManyRequests('Too many wrong codes. Wait, or use a recovery code.', Math.max(1, blocked?.seconds ?? 1));
}
