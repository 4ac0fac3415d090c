import { sql } from 'kysely';
import { forbidden, invalid, tooManyRequests } from '../../../shared/errors.ts';
import type { AddressChange, AddressConfirm } from '../../../shared/recovery.ts';
import { mapConstraintErrors, transact } from '../../database/query.ts';
import { countRows, rowById } from '../../database/rows.ts';
import { NOW } from '../../database/timestamp.ts';
import type { AccountContext } from '../access/context.ts';
import { writeEvents } from '../event/event.ts';
import { endLinks, findLink, LINK_KINDS, linkInvalid, useLink } from '../mail/link.ts';
import { mustSendMail, notify, queueMailOnce } from '../mail/mail.ts';
import { withLink } from './linkAttempt.ts';
import { CONSTRAINT_ERRORS, isSameAddress, SERVICE_DOMAIN } from './user.ts';

/**
 * Sends a link to the new address of the caller, who then confirms it. The answer is the same if the address belongs to somebody:
 * only who reads its mails finds out.
 */
export async function changeAddress(context: AccountContext, { email }: AddressChange): Promise<void> {
  if (email.toLowerCase().endsWith(SERVICE_DOMAIN)) throw invalid({ email: 'gets no mail: choose one of your own' });
  await sendConfirmation(context, (own) => {
    if (own.email_confirmed_at && isSameAddress(own.email, email)) throw invalid({ email: 'is your address already' });
    return email;
  });
}

/** Sends a link to the address that the caller has, unless it is confirmed already. */
export async function requestConfirmation(context: AccountContext): Promise<void> {
  await sendConfirmation(context, ({ email, email_confirmed_at }) => (email_confirmed_at ? undefined : email));
}

type OwnAddress = { email: string; email_confirmed_at: Date | null };

const MOST_IN_A_DAY = 10;

async function sendConfirmation(
  context: AccountContext,
  choose: (own: OwnAddress) => string | undefined,
): Promise<void> {
  mustSendMail(context);
  const { id } = context.caller;
  await transact(context.db, async (db) => {
    const own = await rowById(db, 'users', id, ['email', 'email_confirmed_at', 'kind'], { lock: 'no key update' });
    if (own.kind === 'service') throw forbidden('A service has no e-mail address.', 'no_password');
    const email = choose(own);
    if (email === undefined) return;
    const isRecent = sql`user_id = ${id} and kind = 'address_confirmation' and created_at > now() - interval '1 day'`;
    if ((await countRows(db, 'mails', isRecent)) >= MOST_IN_A_DAY)
      throw tooManyRequests('You have asked for many mails today. Try again tomorrow.', 60 * 60, 'too_many_mails');
    await queueMailOnce({ ...context, db }, { kind: 'address_confirmation', email, user_id: id });
  });
}

/**
 * Makes the address that the link was sent to that of the caller. Only for the user who asked for it: a stranger who opens the
 * link would otherwise give their own address, and the invitations to it, to somebody else's account.
 */
export async function confirmAddress(context: AccountContext, { secret }: AddressConfirm) {
  const { id } = context.caller;
  return withLink(context, secret, () =>
    transact(context.db, async (db) => {
      const { user_id, email } = await findLink(db, 'address_confirmation', secret);
      if (user_id !== id)
        throw forbidden('This link is for another account: sign in to the account that asked for it.', 'other_user');
      const before = await rowById(db, 'users', id, ['email'], { lock: 'update', missing: linkInvalid });
      await useLink(db, 'address_confirmation', secret);
      // Before the change, so that it goes to the old address.
      if (!isSameAddress(email, before.email)) await notify({ ...context, db }, 'address_changed', id);
      const changes = { email, email_confirmed_at: NOW, updated_at: NOW };
      await mapConstraintErrors(db.updateTable('users').set(changes).where('id', '=', id).execute(), CONSTRAINT_ERRORS);
      await endLinks(db, [before.email, email], LINK_KINDS, id);
      const fields = ['email_confirmed_at', ...(before.email === email ? [] : ['email'])].sort();
      await writeEvents({ ...context, db }, [{ type: 'user.updated', subject_id: id, data: { fields } }]);
      return { email };
    }),
  );
}
