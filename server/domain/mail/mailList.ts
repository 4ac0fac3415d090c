import { sql } from 'kysely';
import { badRequest, notFound } from '../../../shared/errors.ts';
import { Mail, type MailChoice, type MailList } from '../../../shared/mail.ts';
import { readPage } from '../../database/page.ts';
import { transact } from '../../database/query.ts';
import type { Removal } from '../../database/removal.ts';
import { rowById, updateRow } from '../../database/rows.ts';
import { daysBefore, NOW } from '../../database/timestamp.ts';
import type { SignedInContext } from '../access/context.ts';
import { writeEvents } from '../event/event.ts';
import { callForMail } from './mail.ts';

/** Without `data`, and without links, which the database has only as hashes. */
const COLUMNS = Mail.keyof().options;

/** With the hashes of their links, which have ended by then. */
export const mailRemoval: Removal = {
  table: 'mails',
  due: (now) => sql`t.created_at < ${daysBefore(now, 30)}`,
  by: 'created_at',
};

/** Mails of the last 30 days, newest first. */
export async function listMails({ db }: SignedInContext, { state, ...page }: MailList) {
  const mails = db.selectFrom('mails').select(COLUMNS);
  return readPage('mails', state == null ? mails : mails.where('state', '=', state), page, ['id'], 'desc');
}

/** Sends a mail at once that has failed for good, or that waits for its next attempt after a failure. */
export async function retryMail(context: SignedInContext, { id }: MailChoice) {
  const mail = await transact(context.db, async (db) => {
    const missing = () => notFound('There is no such mail.');
    const { state, failures } = await rowById(db, 'mails', id, ['state', 'failures'], { lock: 'update', missing });
    const hasFailed = state === 'failed' || (state === 'waiting' && failures > 0);
    if (!hasFailed) throw badRequest('Only a mail that has failed can be tried again.', 'mail_not_failed');
    const mail = await updateRow(db, 'mails', id, { state: 'waiting', failures: 0, next_attempt_at: NOW }, COLUMNS);
    await writeEvents({ ...context, db }, [{ type: 'mail.retried', subject_id: id }]);
    return mail;
  });
  callForMail();
  return { mail };
}
