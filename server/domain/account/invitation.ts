import { type RawBuilder, sql } from 'kysely';
import { badRequest, forbidden, invalid, notFound } from '../../../shared/errors.ts';
import {
  Invitation,
  type InvitationAccept,
  type InvitationChoice,
  type InvitationList,
  type MemberInvite,
} from '../../../shared/invitation.ts';
import type { Page } from '../../../shared/paging.ts';
import { readPage } from '../../database/page.ts';
import { lockProject } from '../../database/projectLock.ts';
import { type Db, transact } from '../../database/query.ts';
import { countRows, rowById } from '../../database/rows.ts';
import { NOW } from '../../database/timestamp.ts';
import type { AccountContext, ProjectContext } from '../access/context.ts';
import { isManager } from '../access/permission.ts';
import { type Happened, type WriteContext, writeEvents } from '../event/event.ts';
import { findLink, linkInvalid } from '../mail/link.ts';
import { queueMailOnce } from '../mail/mail.ts';
import { withLink } from './linkAttempt.ts';
import { findMember, insertMember, namedProject } from './member.ts';
import { mustMayGive, mustStillBeValid } from './proof.ts';
import { isSameAddress, SERVICE_DOMAIN } from './user.ts';

const COLUMNS = Invitation.keyof().options;

const MOST_INVITATIONS = 1000;

/**
 * Invites an e-mail address to a project, with a mail if the service sends any; a second invitation changes the role. The response is the same whether or not somebody
 * has that address.
 */
export async function inviteMember(context: ProjectContext, { email, role, ...named }: MemberInvite) {
  mustMayGive(context.caller, role);
  const project_id = await namedProject(context, named);
  if (email.toLowerCase().endsWith(SERVICE_DOMAIN))
    throw invalid({ email: 'is that of a service: a superadmin adds services' });

  const { caller, services } = context;
  if (services.sendsMail && caller.id !== null) await services.mailLimit.countOfUser(caller.id, email);
  return transact(context.db, async (db) => {
    await lockProject(db, project_id);
    await mustStillBeValid({ ...context, db });
    await mustNotBeMember(db, project_id, email);
    await mustHaveRoom(db, project_id, email);
    const before = await db
      .selectFrom('invitations')
      .select(['role', 'invited_by'])
      .where('project_id', '=', project_id)
      .where(sql<boolean>`lower(email) = lower(${email})`)
      .executeTakeFirst();
    const invitation = await db
      .insertInto('invitations')
      .values({ project_id, email, role, invited_by: context.caller.id })
      .onConflict((known) =>
        known
          .expression(sql`project_id, lower(email)`)
          .doUpdateSet({ role, invited_by: context.caller.id, updated_at: NOW }),
      )
      .returning(COLUMNS)
      .executeTakeFirstOrThrow();
    if (before?.role !== role || before.invited_by !== context.caller.id) {
      const created = { type: 'invitation.created', project_id, subject_id: invitation.id, data: { role } } as const;
      await writeEvents({ ...context, db }, [created]);
    }
    await queueMailOnce({ ...context, db }, { kind: 'invitation', email, invitation_id: invitation.id });
    return { invitation };
  });
}

/** The open invitations to a project. */
export async function listInvitations(context: ProjectContext, { project_id, ...page }: InvitationList) {
  const invitations = context.db
    .selectFrom('invitations')
    .select(COLUMNS)
    .where('project_id', '=', await namedProject(context, { project_id }));
  return readPage('invitations', invitations, page);
}

export async function withdrawInvitation(context: ProjectContext, { id }: InvitationChoice): Promise<void> {
  const invitation = await rowById(context.db, 'invitations', id, ['project_id'], { missing: unknownInvitation });
  await namedProject(context, invitation);
  await deleteInvitation(context, id, 'invitation.withdrawn');
}

/** The invitations of the caller that they can accept. */
export async function listOwnInvitations({ db, caller }: AccountContext, page: Page) {
  await mustBeConfirmed(db, caller.id);
  const invitations = db
    .selectFrom('invitations as i')
    .innerJoin('projects as p', 'p.id', 'i.project_id')
    .innerJoin('platforms as pl', 'pl.id', 'p.platform_id')
    .leftJoin('users as inviter', 'inviter.id', 'i.invited_by')
    .select(['i.id', 'i.project_id', 'i.role', 'i.created_at', 'p.name as project_name', 'pl.name as platform_name'])
    .select('inviter.name as invited_by_name')
    .where(isOfUser(caller.id))
    .where(IS_VALID);
  return readPage('invitations', invitations, page, ['i.id']);
}

/** Makes the caller a member of the project. The secret of a link to their address confirms that address, too. */
export async function acceptInvitation(context: AccountContext, { id, secret }: InvitationAccept) {
  const { caller } = context;
  if (secret != null) await confirmByInvitation(context, id, secret);
  const { project_id } = await findOwnInvitation(context, id);
  return transact(context.db, async (db) => {
    const role = await takeInvitation(db, { id, project_id });
    if (role === undefined) throw unknownInvitation();
    const member = { project_id, user_id: caller.id, role };
    const isAdded = await insertMember({ ...context, db }, member, { invitation_id: id });
    // Somebody made them a member meanwhile: the invitation ends without effect.
    if (!isAdded) await writeEvents({ ...context, db }, [{ type: 'invitation.withdrawn', project_id, subject_id: id }]);
    return { member: await findMember(db, project_id, caller.id) };
  });
}

/** Removes an invitation that somebody accepts, and returns its role; undefined if it is gone or not valid any more. */
export async function takeInvitation(db: Db, { id, project_id }: { id: number; project_id: number }) {
  await lockProject(db, project_id);
  const taken = await db
    .deleteFrom('invitations as i')
    .where('i.id', '=', id)
    .where(IS_VALID)
    .returning('i.role')
    .executeTakeFirst();
  return taken?.role;
}

/** Who has the link reads the mails of the address. */
async function confirmByInvitation(context: AccountContext, invitationId: number, secret: string): Promise<void> {
  const { db, caller } = context;
  const { email, invitation_id } = await withLink(context, secret, () => findLink(db, 'invitation', secret));
  if (invitation_id !== invitationId) throw linkInvalid();
  await transact(db, async (db) => {
    const own = await rowById(db, 'users', caller.id, ['email', 'email_confirmed_at'], { lock: 'update' });
    // Compared here: the database takes some letters for equal that stand for different mailboxes.
    if (own.email_confirmed_at || !isSameAddress(own.email, email)) return;
    const changes = { email_confirmed_at: NOW, updated_at: NOW };
    await db.updateTable('users').set(changes).where('id', '=', caller.id).execute();
    const data = { fields: ['email_confirmed_at'] };
    await writeEvents({ ...context, db }, [{ type: 'user.updated', subject_id: caller.id, data }]);
  });
}

/** Throws a 403 for an account whose address may be somebody else's: an invitation is for whoever reads the mails of its address. */
async function mustBeConfirmed(db: Db, userId: number): Promise<void> {
  const { email_confirmed_at } = await rowById(db, 'users', userId, ['email_confirmed_at']);
  if (email_confirmed_at === null)
    throw forbidden(
      'Confirm your e-mail address first: account.requestConfirmation sends a link to it.',
      'address_unconfirmed',
    );
}

export async function declineInvitation(context: AccountContext, { id }: InvitationChoice): Promise<void> {
  await findOwnInvitation(context, id);
  await deleteInvitation(context, id, 'invitation.declined');
}

async function deleteInvitation(context: WriteContext, id: number, type: Happened['type']): Promise<void> {
  await transact(context.db, async (db) => {
    const deleted = await db.deleteFrom('invitations').where('id', '=', id).returning('project_id').executeTakeFirst();
    if (deleted) await writeEvents({ ...context, db }, [{ type, subject_id: id, ...deleted }]);
  });
}

/** Whether an invitation `i` is for this user's address. */
const isOfUser = (userId: number): RawBuilder<boolean> =>
  sql`lower(i.email) = (select lower(own.email) from users own where own.id = ${userId})`;

/** Whether the project of an invitation `i` is active, and the user who sent it may still invite. */
export const IS_VALID = sql<boolean>`exists (select from projects host where host.id = i.project_id and host.is_active) and (
  i.invited_by is null or exists (select from users sender where sender.id = i.invited_by and sender.is_active and (
    sender.superadmin or exists (select from members theirs
      where theirs.project_id = i.project_id and theirs.user_id = sender.id and ${isManager('theirs')}))))`;

async function findOwnInvitation({ db, caller }: AccountContext, id: number) {
  const invitation = await db
    .selectFrom('invitations as i')
    .select(['i.project_id', isOfUser(caller.id).as('is_own')])
    .where('i.id', '=', id)
    .executeTakeFirstOrThrow(unknownInvitation);
  if (!invitation.is_own) throw forbidden('This invitation is for another user.', 'other_user');
  await mustBeConfirmed(db, caller.id);
  return invitation;
}

const unknownInvitation = () => notFound('There is no such invitation.');

async function mustNotBeMember(db: Db, project_id: number, email: string): Promise<void> {
  const member = await db
    .selectFrom('members as m')
    .innerJoin('users as u', 'u.id', 'm.user_id')
    .select('m.user_id')
    .where('m.project_id', '=', project_id)
    .where(sql<boolean>`lower(u.email) = lower(${email})`)
    .executeTakeFirst();
  if (member) throw invalid({ email: 'belongs to a member already: set their role' }, 'already_a_member');
}

/** Throws a 400 at the cap of invitations; the project row is locked, so the count can't change meanwhile. */
async function mustHaveRoom(db: Db, project_id: number, email: string): Promise<void> {
  const isOther = sql`project_id = ${project_id} and lower(email) <> lower(${email})`;
  if ((await countRows(db, 'invitations', isOther)) >= MOST_INVITATIONS)
    throw badRequest(
      `A project has at most ${MOST_INVITATIONS} open invitations. Withdraw some of them first.`,
      'place_full',
    );
}
