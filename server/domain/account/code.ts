import { type RawBuilder, sql } from 'kysely';
import { tooManyRequests } from '../../../shared/errors.ts';
import type { Db } from '../../database/query.ts';
import type { Row, RowChanges } from '../../database/tables.ts';
import { NOW } from '../../database/timestamp.ts';
import { hashRecoveryCode, stepOfCode } from '../../security/secondFactor.ts';
import type { Context, With } from '../access/context.ts';
import { countFailure, logFailure } from './attempt.ts';
import { MISSING_SECRET } from './reencrypt.ts';

type CodeOwner = Pick<Row<'users'>, 'id' | 'email' | 'totp_secret'>;

/** Uses up a code, or counts a wrong one. Each code works only once. Call it only after the password was verified. */
export async function useCode(
  context: Context,
  user: CodeOwner,
  { code, is_recovery }: { code: string; is_recovery?: boolean | null },
): Promise<boolean> {
  const isRight = is_recovery ? await useRecoveryCode(context.db, user, code) : await useTotpCode(context, user, code);
  if (!isRight) await countFailure(context, user, 'wrong code');
  return isRight;
}

/** Recovery codes can't be guessed, so they also work while other codes are blocked. */
async function useRecoveryCode(db: Db, { id }: CodeOwner, code: string): Promise<boolean> {
  const used = await db
    .with('used', (db) =>
      db
        .updateTable('recovery_codes')
        .set({ used_at: NOW })
        .where('user_id', '=', id)
        .where('code_hash', '=', hashRecoveryCode(code))
        .where('used_at', 'is', null)
        .returning('user_id'),
    )
    .updateTable('users')
    .set(RESET_FAILURES)
    .where('id', 'in', ({ selectFrom }) => selectFrom('used').select('user_id'))
    .returning('id')
    .executeTakeFirst();
  return used !== undefined;
}

async function useTotpCode(context: Context, user: CodeOwner, code: string): Promise<boolean> {
  const { id, totp_secret } = user;
  if (totp_secret === null) return false;
  const secret = openSecret(context, id, totp_secret);
  await countTry(context, user);
  const step = await stepOfCode(secret, code);
  if (step === undefined) return false;
  const used = await context.db
    .updateTable('users')
    .set({ totp_last_step: step, ...RESET_FAILURES })
    .where('id', '=', id)
    .where('totp_secret', '=', totp_secret)
    .where('totp_last_step', '<', step)
    .returning('id')
    .executeTakeFirst();
  return used !== undefined;
}

/** Decrypts the secret of the authenticator app. Throws (500) if no key fits. */
export function openSecret({ services: { secretBox } }: With<'secretBox'>, userId: number, sealed: string): string {
  const secret = secretBox.open(sealed, userId);
  if (secret === undefined) throw new Error(`The second factor of user ${userId} can't be read. ${MISSING_SECRET}`);
  return secret;
}

export const RESET_FAILURES = { totp_failures: 0, totp_blocked_until: null } satisfies RowChanges<'users'>;

const FREE_TRIES = 5;
const LONGEST_WAIT_MINUTES = 6 * 60;

/**
 * Counts a failure before the code is checked, so that concurrent calls get no extra tries. Three of 1,000,000 codes are valid
 * at a time: these waits allow 16 tries on the first day, and four per day after that.
 */
export async function countTry(context: Context, { id, email }: Pick<CodeOwner, 'id' | 'email'>): Promise<void> {
  const { db } = context;
  const failures = sql<number>`totp_failures + 1`;
  const claimed = await db
    .updateTable('users')
    .set({ totp_failures: failures, totp_blocked_until: blockedUntil(failures) })
    .where('id', '=', id)
    .where(({ or, eb }) => or([eb('totp_blocked_until', 'is', null), eb('totp_blocked_until', '<=', NOW)]))
    .returning('id')
    .executeTakeFirst();
  if (claimed) return;

  const blocked = await db
    .selectFrom('users')
    .select(sql<number | null>`ceil(extract(epoch from totp_blocked_until - now()))::int`.as('seconds'))
    .where('id', '=', id)
    .executeTakeFirst();
  logFailure(context, email, 'blocked');
  throw tooManyRequests(
    'Too many wrong codes. Wait, or use a recovery code.',
    Math.max(1, blocked?.seconds ?? 1),
    'codes_blocked',
  );
}

/** One minute after the free tries, doubled after each further failure. */
const blockedUntil = (failures: RawBuilder<number>) => sql<Date | null>`case when ${failures} >= ${FREE_TRIES}::int
  then now() + make_interval(mins => least(${LONGEST_WAIT_MINUTES}::int, 2 ^ least(${failures} - ${FREE_TRIES}::int, 20))::int) end`;
