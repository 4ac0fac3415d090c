import { sql } from 'kysely';
import { query } from '../../database/query.ts';
import type { Log } from '../../runtime/log.ts';
import { MailFailure, type SendMessage } from '../../security/smtp.ts';
import { findFacts } from './facts.ts';
import { addLink, hashLinkSecret } from './link.ts';
import {
  type ClaimedMail,
  LONGEST_ATTEMPT_MILLISECONDS,
  type MailStore,
  recordDropped,
  recordFailure,
  recordSent,
  releaseMail,
} from './mailQueue.ts';
import { addressOf, linkOf, writeMail } from './text.ts';

export type Mailing = MailStore & {
  log: Log;
  /** The address of the service, which links begin with. */
  base: string;
  send: SendMessage;
};

/** A mail server that asks others about an address takes longer: the next attempts have this time, in connections of their own. */
const FIRST_RECIPIENT_MILLISECONDS = 5000;

/**
 * Attempts to send a mail. A process that is killed before it records the outcome leads to another attempt, by any. `failing`: the mail
 * server is not there, or refuses everything.
 */
export async function sendMail(
  mailing: Mailing,
  mail: ClaimedMail,
  stopping: AbortSignal,
): Promise<'done' | 'failing'> {
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(LONGEST_ATTEMPT_MILLISECONDS)]);
  try {
    if (await attempt(mailing, mail, signal)) await recordSent(mailing, mail);
    else await recordDropped(mailing, mail);
    return 'done';
  } catch (error) {
    if (stopping.aborted) {
      await releaseMail(mailing, mail);
      return 'done';
    }
    if (!(error instanceof MailFailure)) mailing.log.error(error, `Mail ${mail.id} could not be written.`);
    const failure =
      error instanceof MailFailure ? error : new MailFailure('It could not be written: see the log of the service.');
    const isRetried = await recordFailure(mailing, mail, failure);
    mailing.log.warn(
      `Mail ${mail.id} (${mail.kind}) was not sent${isRetried ? ', another attempt follows' : ': mails.retry tries again'}. ${failure.message}`,
    );
    return failure.isOfServer ? 'failing' : 'done';
  }
}

/** Returns false if there is nobody to send it to. */
async function attempt({ db, base, send }: Mailing, mail: ClaimedMail, signal: AbortSignal): Promise<boolean> {
  const facts = await findFacts(db, mail);
  if (!facts) return false;
  const link = linkOf(facts);
  const secret = link && (await addLink(db, mail.id, link.seconds));
  const words = writeMail(facts, base, link && secret && addressOf(base, link.page, secret));
  // The same for each attempt, so that mail programs can show a doubled mail once.
  const id = `deckhand.${mail.id}.${mail.created_at.getTime()}`;
  try {
    await send(
      { id, to: facts.to, ...words },
      { signal, recipientMilliseconds: mail.failures === 0 ? FIRST_RECIPIENT_MILLISECONDS : undefined },
    );
  } catch (error) {
    const isUncertain = error instanceof MailFailure && error.isUncertain;
    if (secret && !isUncertain)
      await query(db, sql`delete from mail_links where secret_hash = ${hashLinkSecret(secret)}`);
    throw error;
  }
  return true;
}
