import { sql } from 'kysely';
import type { Authenticate, AuthenticatedUser } from '../../shared/user.ts';
import type { Context } from '../context.ts';
import { query } from '../database/query.ts';
import { unauthorized } from '../errors.ts';
import { isPassword } from '../security/passwords.ts';

/** Signs a user in: checks the password and opens a session, whose token later calls carry. */
export async function authenticate(
  { em, tokens }: Context,
  { email, password }: Authenticate,
): Promise<AuthenticatedUser> {
  const [user] = await query(
    em,
    sql<UserRow>`
      select id, name, email, language, superadmin, superadmin_billing, enable_ai, password_hash,
        totp_secret is not null as has_second_factor
      from users where lower(email) = lower(${email}) and is_active`,
  );
  const isRight = await isPassword(password, user?.password_hash);
  if (!user || !isRight) throw unauthorized('The e-mail address or the password is wrong.');
  if (user.has_second_factor) throw unauthorized('This account is protected by a second factor: a code is needed.');

  const [session] = await query(
    em,
    sql<{ id: string }>`
      insert into sessions (user_id, expires_at)
      values (${user.id}, now() + make_interval(secs => ${tokens.lifetimeSeconds})) returning id`,
  );

  const { password_hash, has_second_factor, ...profile } = user;
  return {
    ...profile,
    token: tokens.sign({ userId: user.id, sessionId: session!.id }),
    needs_code__regeneration: false,
    warn_message: '',
  };
}

type UserRow = Omit<AuthenticatedUser, 'token' | 'needs_code__regeneration' | 'warn_message'> & {
  password_hash: string;
  has_second_factor: boolean;
};
