import { sql } from 'kysely';
import { badRequest } from '../../../shared/errors.ts';
import type { MailKind } from '../../../shared/mail.ts';
import { type Db, query } from '../../database/query.ts';
import type { With } from '../access/context.ts';

/** A mail to be sent, in words of its kind: `domain/mail/text.ts` writes it when it is sent. */
export type QueuedMail = {
  kind: MailKind;
  email: string;
  user_id?: number | null;
  invitation_id?: number | null;
  data?: Record<string, unknown>;
};

/** Throws a 400 where the service has no mail server. */
export function mustSendMail({ services: { sendsMail } }: With<'sendsMail'>): void {
  if (!sendsMail)
    throw badRequest(
      'This service sends no mails: an operator has to set SMTP_URL and MAIL_FROM.',
      'mail_not_configured',
    );
}

/**
 * Queues mails in the transaction of what they are about; a process sends them after its commit. Without a mail server, nothing:
 * those who can't do without a mail ask with `mustSendMail` first.
 */
export async function queueMails(context: { db: Db } & With<'sendsMail'>, mails: QueuedMail[]): Promise<void> {
  if (!context.services.sendsMail || mails.length === 0) return;
  for (const { kind, email, user_id = null, invitation_id = null, data = {} } of mails)
    await query(
      context.db,
      sql`
        insert into mails (kind, email, user_id, invitation_id, data)
        values (${kind}, ${email}, ${user_id}, ${invitation_id}, ${JSON.stringify(data)}::jsonb)`,
    );
}
