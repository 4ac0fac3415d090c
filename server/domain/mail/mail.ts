import { sql } from 'kysely';
import { badRequest } from '../../../shared/errors.ts';
import type { MailKind, NoticeKind } from '../../../shared/mail.ts';
import { type Db, query } from '../../database/query.ts';
import type { Caller, With } from '../access/context.ts';

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

/** For so long after a call, this process looks at each announced change: the call may not be committed yet. */
const CALLED_FOR_MILLISECONDS = 5000;
let calledForUntil = 0;
export const isMailCalledFor = () => performance.now() < calledForUntil;

/** After queueing a mail: the process looks as soon as it is committed and announced. */
export function callForMail(): void {
  calledForUntil = performance.now() + CALLED_FOR_MILLISECONDS;
}

/**
 * Queues mails in the transaction of what they are about; a process sends them after its commit. Without a mail server, nothing:
 * those who can't do without a mail ask with `mustSendMail` first.
 */
export async function queueMails(context: { db: Db } & With<'sendsMail'>, mails: QueuedMail[]): Promise<void> {
  if (!context.services.sendsMail || mails.length === 0) return;
  callForMail();
  for (const { kind, email, user_id = null, invitation_id = null, data = {} } of mails)
    await query(
      context.db,
      sql`
        insert into mails (kind, email, user_id, invitation_id, data)
        values (${kind}, ${email}, ${user_id}, ${invitation_id}, ${JSON.stringify(data)}::jsonb)`,
    );
}

/** Tells a person what happened to their account, in its transaction. Only at a confirmed address: another one may be a stranger's. */
export async function notify(
  { db, caller, services }: { db: Db; caller: Caller | undefined } & With<'sendsMail'>,
  kind: NoticeKind,
  userId: number,
  about: { name?: string } = {},
): Promise<void> {
  if (!services.sendsMail) return;
  callForMail();
  const data = { ...about, ...(caller && caller.id !== userId && { by_superadmin: true }) };
  await query(
    db,
    sql`
      insert into mails (kind, email, user_id, data)
      select ${kind}, email, id, ${JSON.stringify(data)}::jsonb from users
      where id = ${userId} and kind = 'person' and is_active and email_confirmed_at is not null`,
  );
}

/** Queues a mail, unless the same one waits or was queued within the last minutes, and its link was not used. */
export async function queueMailOnce(context: { db: Db } & With<'sendsMail'>, mail: QueuedMail): Promise<void> {
  const { kind, email, user_id = null, invitation_id = null } = mail;
  const queued = await query(
    context.db,
    sql`
      select from mails
      where lower(email) = lower(${email}) and kind = ${kind} and user_id is not distinct from ${user_id}::int
        and invitation_id is not distinct from ${invitation_id}::int and used_at is null
        and (state = 'waiting' or created_at > now() - interval '5 minutes')
      limit 1`,
  );
  if (queued.length === 0) await queueMails(context, [mail]);
}
