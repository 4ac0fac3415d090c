import { randomUUID } from 'node:crypto';
import type { Started } from './messages.ts';
import { makeStates, type States } from './states.ts';

/** What another process needs to use a Deckhand: plain values, as Vitest's `provide` takes them. */
export type SharedDeckhand = Pick<Started, 'url' | 'admin'>;

/**
 * Uses a Deckhand that another process has started, which also stops it: `joinDeckhand(inject('deckhand'))`. Names and e-mail
 * addresses are unique among all that join. The clock stays with the one who started it.
 */
export function joinDeckhand({ url, admin }: SharedDeckhand): States & { url: string } {
  return { url, ...makeStates(url, admin, randomUUID().slice(0, 8)) };
}
