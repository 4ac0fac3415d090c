import { sql } from 'kysely';
import type { PasswordReset, PasswordResetRequest } from '../../../shared/recovery.ts';
import { type Db, query, transact } from '../../database/query.ts';
import { NOW } from '../../database/timestamp.ts';
import { hashPassword } from '../../security/passwords.ts';
import type { Context } from '../access/context.ts';
import { countValidKeys } from '../access/keyEnd.ts';
import { writeEvents } from '../event/event.ts';
import { endLinks, findLink, type LinkedMail, linkInvalid, useLink } from '../mail/link.ts';
import { callForMail, mustSendMail, notify } from '../mail/mail.ts';
import { unlinkDoubtful } from './identity.ts';
import { withLink } from './linkAttempt.ts';
import { endSessions, mustBeGoodPassword } from './user.ts';

/**
 * Queues a mail to an address, whether or not somebody has it: the user is looked up when it is sent. So the answer, the
 * statements and the time are the same for every address.
 *
 * Nothing is queued while an earlier mail waits or is a few minutes old: that one is in the mailbox, and its link works. The pause
 * is always shorter than a link is valid, so somebody who requests all the time can't keep the owner from resetting. One that waits
 * for hours after failures of the mail server is tried now.
 */
export async function requestPasswordReset(context: Context, { email }: PasswordResetRequest): Promise<void> {
  mustSendMail(context);
  await context.services.mailLimit.countOfNetwork(context.origin.address);
  await transact(context.db, async (db) => {
    // Of several requests at once for an address, one queues a mail. Without the lock, each would see that none is queued yet.
    const [lock] = await query(
      db,
      sql<{ isFree: boolean }>`
        select pg_try_advisory_xact_lock(hashtextextended(lower(${email}), ${RESET_SEED})) as "isFree"`,
    );
    if (lock?.isFree) await queueReset(db, email);
    callForMail();
  });
}

/** Any number that no other hash for locks uses. */
const RESET_SEED = 39;

const PAUSE_MINUTES = 5;
/** After this many mails in a day, the longer pause; a link is valid for 30 minutes. */
const MANY_MAILS = 6;
const LONG_PAUSE_MINUTES = 25;

/** Sending takes longer for an address with an account. It begins after the answer, whose time would tell the difference. */
const AFTER_ANSWER = sql`interval '300 milliseconds'`;

const queueReset = (db: Db, email: string) =>
  query(
    db,
    sql`
      with hurried as (
        update mails set next_attempt_at = now() + ${AFTER_ANSWER}
        where lower(email) = lower(${email}) and kind = 'password_reset' and state = 'waiting' and used_at is null
          and next_attempt_at > now() + interval '1 minute'
      )
      insert into mails (kind, email, next_attempt_at)
      select 'password_reset', ${email}, now() + ${AFTER_ANSWER} from (
        select max(created_at) filter (where used_at is null) as latest, bool_or(state = 'waiting' and used_at is null) as is_waiting,
          count(*) filter (where created_at > now() - interval '1 day') as in_a_day
        from mails where lower(email) = lower(${email}) and kind = 'password_reset'
      ) as earlier
      where is_waiting is not true and (latest is null or latest < now() - make_interval(
        mins => case when in_a_day >= ${MANY_MAILS}::int then ${LONG_PAUSE_MINUTES}::int else ${PAUSE_MINUTES}::int end))`,
  );

/**
 * Sets a new password with the link of a mail. Ends all sessions and remembered devices; the second factor stays, and so do API
 * keys, which the answer counts. Wrong codes still count: who reads the mails could otherwise reset again and again, and guess.
 */
export async function resetPassword(context: Context, { secret, new_password }: PasswordReset) {
  return withLink(context, secret, async () => {
    // Checked before hashing, so that a wrong link costs little.
    const mail = await findLink(context.db, 'password_reset', secret);
    const user = await holderOf(context.db, mail).executeTakeFirstOrThrow(linkInvalid);
    mustBeGoodPassword('new_password', new_password, user);
    const password_hash = await hashPassword(new_password, context.origin.address);

    return transact(context.db, async (db) => {
      // Locks the user row first, and mails after it, as every change of an account does.
      const { id, email } = await holderOf(db, mail).forUpdate().executeTakeFirstOrThrow(linkInvalid);
      await useLink(db, 'password_reset', secret);
      await endLinks(db, [email], ['password_reset'], id);
      const changes = { password_hash, updated_at: NOW };
      await db.updateTable('users').set(changes).where('id', '=', id).execute();
      await endSessions(db, id);
      // A token that is sent along says nothing about who resets.
      const changed = { type: 'user.password_changed', subject_id: id, user_id: id } as const;
      const byNobody = { ...context, caller: undefined, db };
      await writeEvents(byNobody, [changed]);
      await notify(byNobody, 'password_changed', id);
      const identities_left = await unlinkDoubtful({ ...byNobody, db }, id);
      return { keys_left: await countValidKeys({ ...context, db }, id), identities_left };
    });
  });
}

/** The user that the link was sent to, if they still have the address and sign in with a password. */
const holderOf = (db: Db, { user_id, email }: LinkedMail) =>
  db
    .selectFrom('users')
    .select(['id', 'name', 'email'])
    .where('id', '=', user_id)
    .where(sql<boolean>`lower(email) = lower(${email})`)
    .where('is_active', 'is', true)
    .where('email_confirmed_at', 'is not', null)
    .where('kind', '=', 'person')
    .where('password_hash', 'is not', null);
