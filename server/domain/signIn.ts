import { sql } from 'kysely';
import type { Authenticate, AuthenticatedUser } from '../../shared/user.ts';
import type { Context } from '../context.ts';
import { type EntityManager, query } from '../database/query.ts';
import { unauthorized } from '../errors.ts';
import { isPassword } from '../security/passwords.ts';
import { hashRecoveryCode, stepOfCode } from '../security/secondFactor.ts';

/** Signs a user in: checks the password and, where there is one, the second factor, and opens a session, whose token later calls carry. */
export async function authenticate(context: Context, sent: Authenticate): Promise<AuthenticatedUser> {
  const [user] = await query(
    context.em,
    sql<UserRow>`
      select id, name, email, language, superadmin, superadmin_billing, enable_ai, password_hash, totp_secret
      from users where lower(email) = lower(${sent.email}) and is_active`,
  );
  const isRight = await isRightPassword(context, sent.email, sent.password, user?.password_hash);
  if (!user || !isRight) throw unauthorized(WRONG);

  const secondFactorAt = user.totp_secret === null ? null : await passSecondFactor(context, user, sent);
  const session = await openSession(context, user, secondFactorAt);
  if (!session) throw unauthorized(WRONG);

  const { password_hash, totp_secret, ...profile } = user;
  const needsCodes = totp_secret !== null && session.codes_left <= FEW_CODES;
  return {
    ...profile,
    token: session.token,
    needs_code__regeneration: needsCodes,
    warn_message: needsCodes ? fewCodesLeft(session.codes_left) : '',
  };
}

const WRONG = 'The e-mail address or the password is wrong.';
const FEW_CODES = 2;
const REMEMBERED_DAYS = 30;

export type UserRow = Omit<AuthenticatedUser, 'token' | 'needs_code__regeneration' | 'warn_message'> & {
  password_hash: string;
  totp_secret: string | null;
};

/** Checks a password, and counts a wrong one: whoever guesses is slowed down. */
export async function isRightPassword(
  { guessing, address }: Context,
  email: string,
  password: string,
  hash: string | undefined,
): Promise<boolean> {
  const attempt = { email, address };
  await guessing.mustBeAllowed(attempt);
  const isRight = await isPassword(password, hash);
  // Others may have failed while this one waited for its turn.
  await guessing.mustBeAllowed(attempt);
  if (!isRight) await guessing.countFailure(attempt);
  return isRight;
}

type CodeOwner = Pick<UserRow, 'id' | 'email' | 'totp_secret'>;

/** Uses a code up, and counts a wrong one. Each code works once, whoever is first. */
export async function isRightCode(
  { em, guessing, address }: Context,
  user: CodeOwner,
  { code, is_recovery }: { code: string; is_recovery?: boolean | null },
): Promise<boolean> {
  const isRight = is_recovery ? await useRecoveryCode(em, user, code) : await useTotpCode(em, user, code);
  if (!isRight) await guessing.countFailure({ email: user.email, address });
  return isRight;
}

async function useRecoveryCode(em: EntityManager, { id }: CodeOwner, code: string): Promise<boolean> {
  const used = await query(
    em,
    sql`
      update recovery_codes set used_at = now()
      where user_id = ${id} and code_hash = ${hashRecoveryCode(code)} and used_at is null returning id`,
  );
  return used.length > 0;
}

async function useTotpCode(em: EntityManager, { id, totp_secret }: CodeOwner, code: string): Promise<boolean> {
  const step = totp_secret === null ? undefined : stepOfCode(totp_secret, code);
  if (step === undefined) return false;
  const used = await query(
    em,
    sql`
      update users set totp_last_step = ${step}
      where id = ${id} and totp_secret = ${totp_secret} and totp_last_step < ${step} returning id`,
  );
  return used.length > 0;
}

/** In the words of the database, which knows `now` too: its clock alone counts the days. */
export type Moment = string | Date;

/** When the second factor was given: now, or earlier on a device that is remembered. */
async function passSecondFactor(
  context: Context,
  user: UserRow,
  { token, code, is_recovery }: Authenticate,
): Promise<Moment> {
  const remembered = token ? await rememberedSince(context, user, token) : undefined;
  if (remembered) return remembered;

  if (!code) throw unauthorized('This account is protected by a second factor: a code is needed.');
  if (!(await isRightCode(context, user, { code, is_recovery }))) {
    throw unauthorized('The code is wrong, or was used before.');
  }
  return 'now';
}

async function rememberedSince({ em, tokens }: Context, user: UserRow, token: string): Promise<Moment | undefined> {
  const claims = tokens.readExpired(token);
  if (claims?.userId !== user.id) return undefined;
  const [session] = await query(
    em,
    sql<{ second_factor_at: Moment }>`
      select second_factor_at from sessions
      where id = ${claims.sessionId}::uuid and user_id = ${user.id} and revoked_at is null
        and second_factor_at > now() - make_interval(days => ${REMEMBERED_DAYS})`,
  );
  return session?.second_factor_at;
}

/**
 * Opens a session while password and second factor are still those that were checked, and removes those of the user that
 * are of no use any more, but for those that somebody else just changes: the two would wait for each other. Tells how many
 * recovery codes are left, too.
 */
export async function openSession(
  { em, tokens }: Pick<Context, 'em' | 'tokens'>,
  { id, password_hash, totp_secret }: Pick<UserRow, 'id' | 'password_hash' | 'totp_secret'>,
  secondFactorAt: Moment | null,
): Promise<{ token: string; codes_left: number } | undefined> {
  const [session] = await query(
    em,
    sql<{ id: string; codes_left: number }>`
      with old as (
        delete from sessions where id in (
          select id from sessions where user_id = ${id} and expires_at < now()
            and (second_factor_at is null or second_factor_at < now() - make_interval(days => ${REMEMBERED_DAYS}))
          for update skip locked)
      ), holder as (
        select id from users
        where id = ${id} and is_active and password_hash = ${password_hash} and totp_secret is not distinct from ${totp_secret}
        for share
      )
      insert into sessions (user_id, second_factor_at, expires_at)
      select id, ${secondFactorAt}::timestamptz, now() + make_interval(secs => ${tokens.lifetimeSeconds}) from holder
      returning id, (select count(*)::int from recovery_codes where user_id = ${id} and used_at is null) as codes_left`,
  );
  return session && { token: tokens.sign({ userId: id, sessionId: session.id }), codes_left: session.codes_left };
}

function fewCodesLeft(left: number): string {
  const count = left === 0 ? 'No recovery code is' : left === 1 ? 'One recovery code is' : `${left} recovery codes are`;
  return `${count} left: make new ones.`;
}
