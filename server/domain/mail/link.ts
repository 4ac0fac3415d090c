import { hash, randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { badRequest } from '../../../shared/errors.ts';
import type { MailKind } from '../../../shared/mail.ts';
import { type Db, query } from '../../database/query.ts';
import type { Row } from '../../database/tables.ts';

/** The secret of a link is only in the mail: the database has its hash. */
export const hashLinkSecret = (secret: string) => hash('sha256', secret);

/** Adds a link to a mail that is about to be sent, and returns its secret. Earlier links of the mail stay valid. */
export async function addLink(db: Db, mailId: number, validSeconds: number): Promise<string> {
  const secret = randomBytes(32).toString('base64url');
  await query(
    db,
    sql`
      insert into mail_links (secret_hash, mail_id, expires_at)
      values (${hashLinkSecret(secret)}, ${mailId}, now() + make_interval(secs => ${validSeconds}))`,
  );
  return secret;
}

export type LinkedMail = Pick<Row<'mails'>, 'id' | 'kind' | 'email' | 'user_id' | 'invitation_id' | 'data'>;

/** The mail of a link that is neither used nor expired. Throws a 400 for any other, with one text for all reasons. */
export async function findLink(db: Db, kind: MailKind, secret: string): Promise<LinkedMail> {
  const [found] = await query(
    db,
    sql<LinkedMail>`
      select m.id, m.kind, m.email, m.user_id, m.invitation_id, m.data from mail_links l join mails m on m.id = l.mail_id
      where l.secret_hash = ${hashLinkSecret(secret)} and m.kind = ${kind} and l.expires_at > now() and m.used_at is null`,
  );
  if (!found) throw linkInvalid();
  return found;
}

/** Takes the link for good, in the transaction of what it allows. Throws a 400 if another call was faster. */
export async function useLink(db: Db, kind: MailKind, secret: string): Promise<LinkedMail> {
  const mail = await findLink(db, kind, secret);
  const used = await query(
    db,
    sql`update mails set used_at = now() where id = ${mail.id} and used_at is null returning id`,
  );
  if (used.length === 0) throw linkInvalid();
  return mail;
}

/** What has a link. */
export const LINK_KINDS = ['password_reset', 'address_confirmation', 'invitation'] as const satisfies MailKind[];

/**
 * Ends the open links to these addresses, and mails that wait, since they would bring new ones. With a user, also the changes of
 * address that they have begun, to whatever address.
 */
export async function endLinks(
  db: Db,
  emails: string[],
  kinds: readonly MailKind[],
  userId: number | null = null,
): Promise<void> {
  await query(
    db,
    sql`
      update mails set used_at = now(), state = case when state = 'waiting' then 'dropped' else state end
      where used_at is null and (
        (lower(email) = any(select lower(address) from unnest(${emails}::text[]) as address) and kind = any(${kinds}::text[]))
        or (user_id = ${userId}::int and kind = 'address_confirmation'))`,
  );
}

export const linkInvalid = () =>
  badRequest('This link was used, has expired, or is incomplete. Ask for another one.', 'link_invalid');
