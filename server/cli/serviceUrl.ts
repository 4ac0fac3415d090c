import { readSettings, type Settings } from '../runtime/env.ts';
import { ownAddress } from '../runtime/host.ts';
import type { ReadEnvironment, Where } from './command.ts';
import { readLogins } from './logins.ts';
import { misuse } from './misuse.ts';
import { chosenUrl } from './url.ts';

type Place = Omit<Where, 'terminal'>;

/** The service of `--url` or `DECKHAND_URL`, else of the only login; undefined without any. */
export async function knownUrl({ chosen, environment }: Place): Promise<string | undefined> {
  const url = chosenUrl({ chosen, environment });
  if (url !== undefined) return url;
  const urls = Object.keys(await readLogins(environment));
  if (urls.length > 1) throw misuse(`--url is missing; you are signed in to ${urls.join(', ')}.`);
  return chosenUrl({ chosen: { url: urls[0] ?? '' }, environment });
}

/** The same; without any, the service on this machine. */
export const serviceUrl = async (place: Place) => (await knownUrl(place)) ?? (await urlHere(place.environment));

async function urlHere(environment: ReadEnvironment): Promise<string> {
  // Only the address is needed, which no secret protects.
  const settings = readSettings({ ...environment(), JWT_SECRET: 'x'.repeat(32) });
  return settings.DATABASE_URL === undefined ? urlOf(settings) : ownAddress(settings.HOST, settings.PORT);
}

/** Where the service with this data directory listens. */
export async function urlOf({ HOST, PORT, DATA_DIR }: Settings): Promise<string> {
  const { readAddress } = await import('../database/embedded/dataDirectory.ts');
  return (await readAddress(DATA_DIR)) ?? ownAddress(HOST, PORT);
}
