import { hostnameOf, isLoopback } from '../runtime/host.ts';
import { startFailure } from '../runtime/startFailure.ts';
import type { ReadEnvironment, Where } from './command.ts';
import { misuse } from './misuse.ts';

/** The address of the service without a trailing slash; undefined for the database of the settings. */
export function chosenUrl({ chosen, environment }: Omit<Where, 'terminal'>): string | undefined {
  const given = chosen.url ?? environment().DECKHAND_URL ?? '';
  if (given === '') return undefined;
  const url = plainUrl(given);
  if (url !== undefined) return requireEncryption(url, environment);
  const rule = 'must be an address such as https://deckhand.example.com';
  throw chosen.url === undefined ? startFailure(`DECKHAND_URL: ${rule}.`) : misuse(`--url ${rule}.`);
}

/** One spelling for each address; undefined if it is not the address of a service. */
export function plainUrl(given: string): string | undefined {
  const url = URL.parse(given);
  const isAddress = url && /^https?:$/.test(url.protocol) && !url.username && !/[?#]/.test(given);
  return isAddress ? url.href.replace(/\/+$/, '') : undefined;
}

/** Every command sends a password, a token or a key. */
function requireEncryption(url: string, environment: ReadEnvironment): string {
  const isReadable = new URL(url).protocol === 'http:' && !isOnThisMachine(url);
  if (!isReadable || environment().DECKHAND_ALLOW_HTTP === 'on') return url;
  throw startFailure(
    `${url} has no https: everybody on the way could read your password or key, so nothing was sent. Use its https address, or set DECKHAND_ALLOW_HTTP=on if you trust the whole network.`,
  );
}

export const isOnThisMachine = (url: string) => isLoopback(hostnameOf(url));
