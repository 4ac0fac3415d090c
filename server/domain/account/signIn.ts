import { sql } from 'kysely';
import { unauthorized } from '../../../shared/errors.ts';
import { type Authenticate, AuthenticatedUser } from '../../../shared/user.ts';
import { query, withShortTimeout } from '../../database/query.ts';
import type { Removal } from '../../database/removal.ts';
import type { Row } from '../../database/tables.ts';
import { daysBefore, NOW } from '../../database/timestamp.ts';
import { isPassword } from '../../security/passwords.ts';
import type { Context, With } from '../access/context.ts';
import { bound } from '../access/permission.ts';
import { type Actor, actorOf, eventParts } from '../event/event.ts';
import { countFailure, mustBeAllowed } from './attempt.ts';
import { useCode } from './code.ts';

/** Checks the password and the second factor, if enabled, and opens a session with a token for later calls. */
export async function authenticate(context: Context, sent: Authenticate): Promise<AuthenticatedUser> {
  const [user] = await query(
    context.db,
    withShortTimeout(sql<SignInRow>`
      select ${sql.join(SIGN_IN_COLUMNS.map((column) => sql.ref(column)))}
      from users where lower(email) = lower(${sent.email}) and is_active`),
  );
  const { id = null, password_hash: hash = null } = user ?? {};
  const isRight = await checkPassword(context, { id, email: sent.email, password_hash: hash }, sent.password);
  if (!user || !isRight) throw wrongCredentials();

  const secondFactorAt = user.totp_secret === null ? null : await passSecondFactor(context, user, sent);
  // A token that is sent along says nothing about who signs in.
  const actor = actorOf({ ...context, caller: undefined });
  const session = await openSession(context, user, secondFactorAt, actor);
  if (!session) throw wrongCredentials();

  return { ...answerOf(user, session.codes_left), token: session.token };
}

/** The answer of a sign-in, without its token. */
export function answerOf({ password_hash, totp_secret, ...profile }: SignInRow, codesLeft: number) {
  const needsCodes = totp_secret !== null && codesLeft <= FEW_CODES;
  return {
    ...profile,
    needs_code__regeneration: needsCodes,
    warn_message: needsCodes ? fewCodesLeft(codesLeft) : '',
  };
}

export const codeRequired = () =>
  unauthorized('This account is protected by a second factor: a code is needed.', 'code_required');
export const wrongCredentials = () => unauthorized('The e-mail address or the password is wrong.', 'wrong_credentials');
const FEW_CODES = 2;
const REMEMBERED_DAYS = 30;

const { needs_code__regeneration, warn_message, token, ...PROFILE } = AuthenticatedUser.keyof().enum;
export const SIGN_IN_COLUMNS = [...Object.values(PROFILE), 'password_hash', 'totp_secret'] as const;
export type SignInRow = Pick<Row<'users'>, (typeof SIGN_IN_COLUMNS)[number]>;

/** Checks a password, and counts a wrong one. */
export async function checkPassword(
  context: Context,
  account: { id: number | null; email: string; password_hash: string | null },
  password: string,
): Promise<boolean> {
  const { email, password_hash } = account;
  const { hasFailed } = await mustBeAllowed(context, email);
  const isRight = await isPassword(password, password_hash ?? undefined, context.origin.address, { hasFailed });
  // Checked again, since others may have failed while this one was queued.
  await mustBeAllowed(context, email);
  if (!isRight) await countFailure(context, account, password_hash === null ? 'unknown account' : 'wrong password');
  return isRight;
}

/** A timestamptz, or `now`: only the clock of the database counts. */
type DatabaseTime = Date | 'now';

/** Checks the second factor. Returns when it was checked: now, or earlier for a remembered device. */
async function passSecondFactor(
  context: Context,
  user: SignInRow,
  { token, code, is_recovery }: Authenticate,
): Promise<DatabaseTime> {
  const remembered = token ? await rememberedSince(context, user, token) : undefined;
  return remembered ?? passCode(context, user, { code, is_recovery });
}

/** Throws a 401 without a code of the second factor, and for a wrong one, which counts as a failed sign-in. */
export async function passCode(
  context: Context,
  user: SignInRow,
  { code, is_recovery }: Pick<Authenticate, 'code' | 'is_recovery'>,
): Promise<'now'> {
  if (!code) throw codeRequired();
  if (!(await useCode(context, user, { code, is_recovery }))) {
    throw unauthorized('The code is wrong, or was used before.', 'code_wrong');
  }
  return 'now';
}

async function rememberedSince(
  { db, services: { tokens } }: Context,
  user: SignInRow,
  token: string,
): Promise<DatabaseTime | null | undefined> {
  const claims = tokens.readExpired(token);
  if (claims?.userId !== user.id) return undefined;
  const session = await db
    .selectFrom('sessions')
    .select('second_factor_at')
    .where('id', '=', claims.sessionId)
    .where('user_id', '=', user.id)
    .where('revoked_at', 'is', null)
    .where('second_factor_at', '>', daysBefore(NOW, REMEMBERED_DAYS))
    .executeTakeFirst();
  return session?.second_factor_at;
}

/** What a session of an identity provider has besides. */
export type SsoSession = {
  identity_id: number;
  issuer_session: string | null;
  seconds: number | undefined;
  isProven: boolean;
};

/**
 * Opens a session, and returns its token and the number of recovery codes left.
 *
 * - `holder`: locks the user, if password and second factor are still those that were checked.
 * - `opened`: the session.
 * - `noted`: the event of a sign-in, if there is an actor.
 */
export async function openSession(
  { db, services: { tokens } }: Pick<Context, 'db'> & With<'tokens'>,
  { id, password_hash, totp_secret }: Pick<SignInRow, 'id' | 'password_hash' | 'totp_secret'>,
  secondFactorAt: DatabaseTime | null,
  actor?: Actor,
  /** Of a sign-in at an identity provider. */
  sso?: SsoSession,
): Promise<{ token: string; codes_left: number } | undefined> {
  // On a remembered device, no code was given now.
  const isProven = sso?.isProven ?? (totp_secret === null || secondFactorAt === 'now');
  const seconds = sso?.seconds ?? tokens.lifetimeSeconds;
  const { identity_id = null, issuer_session = null } = sso ?? {};
  const [session] = await query(
    db,
    sql<Pick<Row<'sessions'>, 'id'> & { codes_left: number }>`
      with holder as (
        select id from users
        where id = ${id} and is_active and password_hash is not distinct from ${password_hash} and totp_secret is not distinct from ${totp_secret}
        for share
      ), opened as (
        insert into sessions (user_id, second_factor_at, proven_at, expires_at, identity_id, issuer_session)
        select id, ${secondFactorAt}::timestamptz, ${isProven ? sql`now()` : null}::timestamptz,
          now() + make_interval(secs => ${seconds}), ${identity_id}::int, ${issuer_session} from holder
        returning id, user_id
      )${actor ? sql`, ${eventParts(SIGNED_IN, bound(actor), true)}` : sql``}
      select id, (select count(*)::int from recovery_codes where user_id = ${id} and used_at is null) as codes_left from opened`,
  );
  if (!session) return undefined;
  return { token: tokens.sign({ userId: id, sessionId: session.id, seconds }), codes_left: session.codes_left };
}

const SIGNED_IN = sql`
  select 'session.started' as type, null::int as platform_id, null::int as project_id, null::int as subject_id, '{}'::jsonb as data,
    user_id as by_user_id
  from opened`;

/** Expired sessions; those of remembered devices are needed until they are forgotten. Each kind has its own index. */
export const SESSION_REMOVALS: Removal[] = [
  {
    table: 'sessions',
    due: (now) => sql`t.second_factor_at is null and t.expires_at < ${now}`,
    by: 'expires_at',
  },
  {
    table: 'sessions',
    due: (now) => sql`t.second_factor_at < ${daysBefore(now, REMEMBERED_DAYS)} and t.expires_at < ${now}`,
    by: 'second_factor_at',
  },
];

function fewCodesLeft(left: number): string {
  const count = left === 0 ? 'No recovery code is' : left === 1 ? 'One recovery code is' : `${left} recovery codes are`;
  return `${count} left: create new ones.`;
}
