import { effect } from '@preact/signals';
import { account } from './account.ts';
import { hasSignedOut } from './session.ts';

/** What the browser keeps for a user: until they sign out, and at most 30 days. `at` is when it was written. */
type Kept = { at: number; value: unknown };

/** The API page removes these, too, when somebody signs out there. */
const PREFIX = 'deckhand.kept.';
const LONGEST_MILLISECONDS = 30 * 24 * 60 * 60_000;

for (const key of keysOf(PREFIX)) if (isOld(localStorage.getItem(key))) localStorage.removeItem(key);
effect(() => {
  if (hasSignedOut.value) for (const key of keysOf(keyOf(''))) localStorage.removeItem(key);
});

export function readKept<Value>(name: string): Value | undefined {
  const text = localStorage.getItem(keyOf(name));
  return text === null ? undefined : ((JSON.parse(text) as Kept).value as Value);
}

/** Undefined removes it. */
export function keep(name: string, value: unknown): void {
  if (hasSignedOut.peek()) return;
  const kept: Kept = { at: Date.now(), value };
  if (value === undefined) localStorage.removeItem(keyOf(name));
  else localStorage.setItem(keyOf(name), JSON.stringify(kept));
}

/** The names of what is kept that begin like this. */
export const namesKept = (beginning: string) => keysOf(keyOf(beginning)).map((key) => key.slice(keyOf('').length));

/** Another user of the same browser has other names. */
const keyOf = (name: string) => `${PREFIX}${account.peek()?.id}.${name}`;

function keysOf(beginning: string): string[] {
  return Object.keys(localStorage).filter((key) => key.startsWith(beginning));
}

function isOld(text: string | null): boolean {
  try {
    return !(JSON.parse(text ?? '').at > Date.now() - LONGEST_MILLISECONDS);
  } catch {
    return true;
  }
}
