import { batch, computed, effect, signal } from '@preact/signals';

/** The sign-in that all tabs share. `isSignedIn` is false for a pasted token or key. */
export type Session = { token: string; name: string; isSignedIn: boolean };

const KEY = 'deckhand.session';

export const session = signal(readSession());
/** The service has refused the token: what is on the screen stays, and a dialog asks to sign in again. */
export const hasEnded = signal(false);

/** What the browser keeps for the user goes. */
export const hasSignedOut = signal(false);

/** The tab is about to be loaded again, for another user or for nobody. */
export const isLeaving = signal(false);

export const token = () => session.peek()?.token;
export const isSignedIn = computed(() => session.value !== undefined);

export function keepSession(kept: Session | undefined): void {
  if (isLeaving.peek()) return;
  if (kept) localStorage.setItem(KEY, JSON.stringify(kept));
  else localStorage.removeItem(KEY);
  adopt(kept);
}

/** For the page that ends a sign-in elsewhere and is then left: other tabs adopt it. */
export const storeSession = (kept: Session) => localStorage.setItem(KEY, JSON.stringify(kept));

/** Another tab signed in or out. */
addEventListener('storage', ({ key }) => {
  if (key === KEY || key === null) adopt(readSession());
});

/**
 * A tab belongs to one user: for another one, or for nobody, it is loaded again. Until then it keeps the old token, so that what is
 * open, typed or under way never becomes somebody else's.
 */
function adopt(kept: Session | undefined): void {
  const before = session.peek();
  if (!kept) hasSignedOut.value = true;
  if (before && kept?.name !== before.name) leave();
  else
    batch(() => {
      hasEnded.value = false;
      session.value = kept;
    });
}

function leave(): void {
  isLeaving.value = true;
  location.reload();
}

/** Forgets the session at once, in all tabs, and leaves when the service knows it, too, or after a moment. */
export async function endSession(tellService: () => Promise<unknown>): Promise<void> {
  if (isLeaving.peek()) return;
  isLeaving.value = true;
  hasSignedOut.value = true;
  if (readSession()?.token === token()) localStorage.removeItem(KEY);
  const pause = new Promise((resolve) => setTimeout(resolve, LONGEST_LEAVING_MILLISECONDS));
  await Promise.race([tellService().catch(() => undefined), pause]);
  leave();
}
const LONGEST_LEAVING_MILLISECONDS = 3000;

/** Resolves when the same user has signed in again. */
export function untilSignedIn(refused: string): Promise<void> {
  if (token() !== refused) return Promise.resolve();
  hasEnded.value = true;
  return new Promise((resolve) => {
    const stop = effect(() => {
      if (hasEnded.value) return;
      queueMicrotask(() => stop());
      resolve();
    });
  });
}

function readSession(): Session | undefined {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? 'null') ?? undefined;
  } catch {
    // Storage is blocked, or somebody else wrote to it.
    return undefined;
  }
}
