import { computed, effect, signal } from '@preact/signals';
import type { DeckhandError } from '../../../client/client.ts';
import { client, retryLater } from './service.ts';
import { session } from './session.ts';

export type Account = Awaited<ReturnType<typeof client.account.whoAmI.query>>['account'];

/** Who is signed in; undefined while that is being read. */
export const account = signal<Account | undefined>(undefined);
/** Why it can't be read. */
export const accountFailure = signal<unknown>(undefined);
export const isSuperadmin = computed(() => account.value?.superadmin === true);
/** How many projects have invited the user. */
export const invitationCount = signal(0);

/** Reads the account again, after a change of it. */
export async function readAccount(): Promise<void> {
  const used = session.peek()?.token;
  try {
    const [read, { invitations }] = await Promise.all([
      client.account.whoAmI.query(),
      client.account.listInvitations.query({ limit: 50 }).catch(noneIfUnconfirmed),
    ]);
    if (session.peek()?.token !== used) return;
    account.value = read.account;
    invitationCount.value = invitations.length;
    accountFailure.value = undefined;
  } catch (error) {
    if (session.peek()?.token !== used) return;
    accountFailure.value = error;
    retryLater(error, readAccount);
  }
}

/** Invitations are shown to whoever reads the mails of their address. */
function noneIfUnconfirmed(error: unknown): { invitations: [] } {
  if ((error as DeckhandError).reason === 'address_unconfirmed') return { invitations: [] };
  throw error;
}

/** Resolves when it is known who is signed in. */
export const untilAccount = () =>
  new Promise<Account>((resolve) => {
    const stop = effect(() => {
      if (!account.value) return;
      resolve(account.value);
      queueMicrotask(() => stop());
    });
  });

/** Reads the account when somebody signs in, and again with each new token. */
export function followSession(): void {
  effect(() => {
    if (session.value) readAccount();
  });
}
