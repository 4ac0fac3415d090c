import { isLoopback } from '../host.ts';
import { startFailure } from '../startFailure.ts';
import type { Where } from './command.ts';
import { misuse } from './misuse.ts';

/** The address of the service without a trailing slash; undefined for the database of the settings. */
export function chosenUrl({ chosen, environment }: Where): string | undefined {
  const given = chosen.url ?? environment().DECKHAND_URL ?? '';
  if (given === '') return undefined;
  const url = URL.parse(given);
  if (url && /^https?:$/.test(url.protocol) && !url.username && !/[?#]/.test(given)) {
    return url.href.replace(/\/+$/, '');
  }
  const refusal = 'must be an address such as https://deckhand.example.com';
  throw chosen.url === undefined ? startFailure(`DECKHAND_URL: ${refusal}.`) : misuse(`--url ${refusal}.`);
}

/** Whether others in the network can read what is sent to this address. */
export function isOpenToOthers(url: string): boolean {
  return new URL(url).protocol === 'http:' && !isOnThisMachine(url);
}

export const isOnThisMachine = (url: string) => isLoopback(new URL(url).hostname.replace(/^\[|\]$/g, ''));
