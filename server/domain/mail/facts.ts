import { type RawBuilder, sql } from 'kysely';
import type { NoticeKind } from '../../../shared/mail.ts';
import type { Role } from '../../../shared/user.ts';
import { type Db, query } from '../../database/query.ts';
import { IS_VALID } from '../account/invitation.ts';
import type { ClaimedMail } from './mailQueue.ts';

/** What a mail says, read when it is sent. */
export type Facts = { to: string; when: Date } & (
  | { kind: 'invitation'; project: string; role: Role; inviter: string | null }
  | { kind: 'password_reset'; hasPassword: boolean }
  | { kind: 'address_confirmation' }
  | { kind: NoticeKind; isBySuperadmin: boolean; name: string }
);

/** Undefined if there is nobody to send it to, or its reason is gone: the mail is dropped. */
export async function findFacts(db: Db, mail: ClaimedMail): Promise<Facts | undefined> {
  const { kind, created_at: when, data } = mail;
  switch (kind) {
    case 'invitation':
      return first(db, invitationOf(mail), ({ email, ...found }) => ({ kind, to: email, when, ...found }));
    case 'password_reset':
      return first(db, resetOf(mail), ({ email, has_password }) => ({
        kind,
        to: email,
        when,
        hasPassword: has_password,
      }));
    case 'address_confirmation':
      return first(db, confirmationOf(mail), ({ email }) => ({ kind, to: email, when }));
    default:
      return first(db, noticeOf(mail), ({ email }) => {
        const { by_superadmin, name } = data as { by_superadmin?: boolean; name?: string };
        return { kind, to: email, when, isBySuperadmin: by_superadmin ?? false, name: name ?? '' };
      });
  }
}

async function first<Found>(db: Db, statement: RawBuilder<Found>, toFacts: (found: Found) => Facts) {
  const [found] = await query(db, statement);
  return found && toFacts(found);
}

const invitationOf = ({ invitation_id }: ClaimedMail) =>
  sql<{ email: string; project: string; role: Role; inviter: string | null }>`
    select i.email, p.name as project, i.role, u.name as inviter
    from invitations i join projects p on p.id = i.project_id left join users u on u.id = i.invited_by
    where i.id = ${invitation_id} and ${IS_VALID}`;

/**
 * Sent to the address of the account, not to the one of the request: both may look alike. The mail then belongs to the account.
 * Who asked a day ago, before a long failure, no longer waits for it.
 */
const resetOf = ({ id }: ClaimedMail) =>
  sql<{ email: string; has_password: boolean }>`
    update mails m set user_id = u.id from users u
    where m.id = ${id} and m.used_at is null and m.created_at > now() - interval '2 days' and lower(u.email) = lower(m.email)
      and u.kind = 'person' and u.is_active and u.email_confirmed_at is not null
    returning u.email, u.password_hash is not null as has_password`;

/** Dropped if the address is another user's by now, or is confirmed already. */
const confirmationOf = ({ id }: ClaimedMail) =>
  sql<{ email: string }>`
    select m.email from mails m join users u on u.id = m.user_id
    where m.id = ${id} and m.used_at is null and u.is_active
      and not exists (select from users o where lower(o.email) = lower(m.email) and (o.id <> u.id or o.email_confirmed_at is not null))`;

const noticeOf = ({ id }: ClaimedMail) =>
  sql<{
    email: string;
  }>`select m.email from mails m join users u on u.id = m.user_id where m.id = ${id} and u.is_active`;
