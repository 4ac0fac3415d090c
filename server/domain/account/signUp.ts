import { sql } from 'kysely';
import { invalid } from '../../../shared/errors.ts';
import type { InvitationLink, SignUp } from '../../../shared/recovery.ts';
import { type Db, mapConstraintErrors, transact } from '../../database/query.ts';
import { hashPassword } from '../../security/passwords.ts';
import type { Context } from '../access/context.ts';
import { actorOf, writeEvents } from '../event/event.ts';
import { findLink, linkInvalid } from '../mail/link.ts';
import { IS_VALID, takeInvitation } from './invitation.ts';
import { withLink } from './linkAttempt.ts';
import { insertMember } from './member.ts';
import { openSession } from './signIn.ts';
import { mustBeGoodPassword } from './user.ts';

/** What the link of an invitation is for. It changes nothing: scanners of mails open links, too. */
export async function showInvitation(context: Context, { secret }: InvitationLink) {
  const { project_id, ...shown } = await findInvitation(context, secret);
  return { invitation: shown };
}

/** Creates the account of an invited address, which the link confirms, accepts the invitation, and signs in. */
export async function signUp(context: Context, { secret, name, password }: SignUp) {
  const { id: invitation_id, project_id, email, has_account } = await findInvitation(context, secret);
  if (has_account) throw hasAccount();
  mustBeGoodPassword('password', password, { name, email });
  const password_hash = await hashPassword(password, context.origin.address);

  return transact(context.db, async (db) => {
    // Removed with the mail of the link, which therefore works once.
    const role = await takeInvitation(db, { id: invitation_id, project_id });
    if (role === undefined) throw linkInvalid();
    const inserted = db.insertInto('users').values({ name, email, password_hash }).returning('id');
    const { id } = await mapConstraintErrors(inserted.executeTakeFirstOrThrow(), { users_email_unique: hasAccount });
    const asUser = { ...context, db, caller: newCaller(id) };
    await writeEvents(asUser, [{ type: 'user.created', subject_id: id }]);
    await insertMember(asUser, { project_id, user_id: id, role }, { invitation_id });
    const session = await openSession(asUser, { id, password_hash, totp_secret: null }, null, actorOf(asUser));
    if (!session) throw linkInvalid();
    return { token: session.token, project_id };
  });
}

const hasAccount = () =>
  invalid({ email: 'has an account already: sign in to it, and accept there' }, 'already_exists');

const findInvitation = (context: Context, secret: string) =>
  withLink(context, secret, async () => {
    const { db } = context;
    const { invitation_id, email } = await findLink(db, 'invitation', secret);
    return invitationTo(db, email).where('i.id', '=', invitation_id).executeTakeFirstOrThrow(linkInvalid);
  });

/** Valid invitations to an address. */
const invitationTo = (db: Db, email: string) =>
  db
    .selectFrom('invitations as i')
    .innerJoin('projects as p', 'p.id', 'i.project_id')
    .leftJoin('users as inviter', 'inviter.id', 'i.invited_by')
    .select(['i.id', 'i.project_id', 'i.email', 'i.role', 'p.name as project_name', 'inviter.name as invited_by_name'])
    .select(sql<boolean>`exists (select from users u where lower(u.email) = lower(i.email))`.as('has_account'))
    .where(sql<boolean>`lower(i.email) = lower(${email})`)
    .where(IS_VALID);

/** The user whose account was just made, as the one who did it. */
const newCaller = (id: number) => ({
  id,
  sessionId: '',
  superadmin: false,
  superadmin_billing: false,
  project: undefined,
  isProjectChosen: false,
  highestRole: null,
});
