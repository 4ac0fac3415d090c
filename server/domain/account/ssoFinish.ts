import { sql } from 'kysely';
import { forbidden } from '../../../shared/errors.ts';
import { email } from '../../../shared/fields.ts';
import type { SsoFinish, SsoFinished } from '../../../shared/sso.ts';
import { type Db, mapConstraintErrors, query, transact } from '../../database/query.ts';
import { insertRow } from '../../database/rows.ts';
import type { Row } from '../../database/tables.ts';
import { NOW } from '../../database/timestamp.ts';
import type { SsoClaims } from '../../security/identityProvider.ts';
import type { Context } from '../access/context.ts';
import { actorOf, type WriteContext, writeEvents } from '../event/event.ts';
import { notify } from '../mail/mail.ts';
import { mustBeAllowed } from './attempt.ts';
import { addIdentity } from './identity.ts';
import { markProven } from './proof.ts';
import { answerOf, openSession, passCode, SIGN_IN_COLUMNS, type SignInRow } from './signIn.ts';
import { DEACTIVATED, endFlow, type Flow, flowEnded, refused, verifySso } from './sso.ts';
import { syncGroups } from './ssoGroups.ts';

/** The clocks of provider and database may differ by this much. */
const CLOCK_TOLERANCE_SECONDS = 10;

/** Ends a sign-in at an identity provider: with a session, a linked identity, or fresh proof. */
export async function finishSso(context: Context, sent: SsoFinish): Promise<SsoFinished> {
  const verified = await verifySso(context, sent);
  const work: Work = { ...verified, context: { ...context, caller: undefined }, sent };
  const { flow, provider, claims } = work;
  const { issuer } = provider.settings;
  const known = await findByIdentity(context.db, issuer, claims.sub);
  if (known && !known.user.is_active) throw refused(DEACTIVATED);
  if (flow.purpose === 'link') return link(work, known);
  if (flow.purpose === 'prove') return prove(work, known);
  return signIn(work, known);
}

type Work = Awaited<ReturnType<typeof verifySso>> & { context: Context; sent: SsoFinish };
type Known = { identity_id: number; user: SignInRow & Pick<Row<'users'>, 'is_active'> };

async function signIn(work: Work, known: Known | undefined): Promise<SsoFinished> {
  const { context, flow, provider, claims, sent } = work;
  const { sign_up, title, issuer, session_hours } = provider.settings;
  if (!known && !sign_up)
    throw forbidden(
      `Nobody here has linked this account of ${title}. Sign in to your account with its password, and link it there.`,
      'no_account_here',
    );
  const secondFactorAt = known ? await passOwnFactor(work, known.user) : null;

  return transact(context.db, async (db) => {
    const inTransaction = { ...context, db };
    if (!(await endFlow(db, sent.state))) throw flowEnded();
    const { user, identity_id } = known ?? (await signUp(inTransaction, issuer, claims));
    // Before the session, which locks the user: memberships lock the project first everywhere.
    await syncGroups(inTransaction, provider.settings, user.id, claims.groups);
    await db
      .updateTable('identities')
      .set({ last_used_at: NOW })
      .where('id', '=', identity_id)
      .returning('id')
      .executeTakeFirstOrThrow(() => refused('This identity was unlinked in the meantime.'));
    const session = await openSession(inTransaction, user, secondFactorAt, actorOf(context), {
      identity_id,
      issuer_session: claims.sid ?? null,
      seconds: session_hours === undefined ? undefined : session_hours * 60 * 60,
      isProven: isFresh(flow, claims),
    });
    if (!session) throw refused('This account has changed in the meantime. Start the sign-in again.');
    return { ...answerOf(user, session.codes_left), token: session.token, purpose: 'sign_in' };
  });
}

/** Asks for a code of the local second factor, unless the provider has asked for one that is trusted. */
async function passOwnFactor({ context, provider, claims, sent }: Work, user: SignInRow) {
  const isTrusted = claims.amr.some((method) => provider.settings.trusted_amr.includes(method));
  if (user.totp_secret === null || isTrusted) return null;
  await mustBeAllowed(context, user.email);
  return passCode(context, user, sent);
}

/** Whether the person has signed in there since this began, rather than in a session of before. */
const isFresh = ({ created_at }: Flow, { auth_time }: SsoClaims) =>
  auth_time !== undefined && auth_time >= created_at.getTime() / 1000 - CLOCK_TOLERANCE_SECONDS;

/** A new person without a password. Never an existing one: an address at a provider says nothing about an account here. */
async function signUp(context: WriteContext, issuer: string, claims: SsoClaims): Promise<Known> {
  const { success, data: address } = email.safeParse(claims.email);
  if (!success) throw refused('The identity provider sent no e-mail address. It is needed for a new account.');
  const row = {
    name: claims.name?.trim().slice(0, 255) || address.split('@')[0] || address,
    email: address,
    email_confirmed_at: claims.email_verified === true ? NOW : null,
  };
  const inserted = insertRow(context.db, 'users', row, [...SIGN_IN_COLUMNS, 'is_active']);
  const user = await mapConstraintErrors(inserted, {
    users_email_unique: () =>
      forbidden(
        'An account with this e-mail address exists already. Sign in to it with its password, and link the identity there.',
        'account_exists',
      ),
  });
  await writeEvents(context, [{ type: 'user.created', subject_id: user.id, user_id: user.id }]);
  return { user, identity_id: await addIdentity(context, { user_id: user.id, issuer, subject: claims.sub }) };
}

/** Links the identity to the account that started it, while its session is valid. */
async function link({ context, flow, provider, claims, sent }: Work, known: Known | undefined): Promise<SsoFinished> {
  if (known && known.user.id !== flow.user_id) throw refused('This identity is linked to another account.');
  return transact(context.db, async (db) => {
    if (!(await endFlow(db, sent.state))) throw flowEnded();
    const user = await holderOf(db, flow);
    const { issuer, title } = provider.settings;
    if (!known) {
      await addIdentity({ ...context, db }, { user_id: user.id, issuer, subject: claims.sub });
      await notify({ ...context, db }, 'identity_linked', user.id, { name: title });
    }
    return { ...answerOf(user, ENOUGH), token: null, purpose: 'link' };
  });
}

/** A fresh sign-in at the provider is proof, in the session that started it. */
async function prove(work: Work, known: Known | undefined): Promise<SsoFinished> {
  const { context, flow, claims, sent } = work;
  if (!known || known.user.id !== flow.user_id)
    throw refused('This is another identity than that of your account. Sign in there with the one that you linked.');
  if (!isFresh(flow, claims))
    throw refused('The identity provider did not ask you to sign in again: auth_time is missing or old.');
  await passOwnFactor(work, known.user);
  return transact(context.db, async (db) => {
    if (!(await endFlow(db, sent.state))) throw flowEnded();
    const user = await holderOf(db, flow);
    await markProven(db, flow.session_id ?? '', known.user);
    await writeEvents({ ...context, db }, [{ type: 'session.proven', user_id: user.id }]);
    return { ...answerOf(user, ENOUGH), token: null, purpose: 'prove' };
  });
}

/** Recovery codes are no matter of linking and proving. */
const ENOUGH = Number.POSITIVE_INFINITY;

/** Who ends the session meanwhile waits for the commit, and then sees what was linked. */
async function holderOf(db: Db, { user_id, session_id }: Flow): Promise<SignInRow> {
  const [user] = await query(
    db,
    sql<SignInRow>`
      select ${sql.join(SIGN_IN_COLUMNS.map((column) => sql.ref(`u.${column}`)))} from sessions s join users u on u.id = s.user_id
      where s.id = ${session_id}::uuid and u.id = ${user_id} and u.is_active and s.revoked_at is null and s.expires_at > now()
      for share of s`,
  );
  if (!user) throw refused('The session that started this has ended. Sign in again.');
  return user;
}

async function findByIdentity(db: Db, issuer: string, subject: string): Promise<Known | undefined> {
  const found = await db
    .selectFrom('identities as i')
    .innerJoin('users as u', 'u.id', 'i.user_id')
    .select([...SIGN_IN_COLUMNS.map((column) => `u.${column}` as const), 'u.is_active', 'i.id as identity_id'])
    .where('i.issuer', '=', issuer)
    .where('i.subject', '=', subject)
    .executeTakeFirst();
  if (!found) return undefined;
  const { identity_id, ...user } = found;
  return { identity_id, user };
}
