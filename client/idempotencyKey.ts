import type { Call } from './call.ts';
import { DeckhandError } from './errors.ts';

/** A random id. Browsers have no `crypto.randomUUID` on pages without HTTPS. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export function keyHeader(calls: Call[]): Record<string, string> {
  const keys = calls.map(({ idempotencyKey }) => idempotencyKey);
  return keys.some((key) => key !== undefined) ? { 'idempotency-key': keys.join() } : {};
}

/** Throws for an invalid key, which would fail the other calls of its batch, too. */
export function validKey(key: string): string {
  if (/^[\x21-\x2b\x2d-\x7e]([\x20-\x2b\x2d-\x7e]{0,253}[\x21-\x2b\x2d-\x7e])?$/.test(key)) return key;
  throw new DeckhandError('idempotencyKey must have 1 to 255 printable ASCII characters without commas.');
}
