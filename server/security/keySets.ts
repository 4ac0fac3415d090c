import type { JSONWebKeySet, JWTVerifyGetKey } from 'jose';
import { FetchRefused, type GuardedFetch } from './guardedFetch.ts';

/** The public keys of issuers, which are fetched, or were given with the issuer. */
export type KeySets = { keysOf: (issuer: KnownIssuer) => Promise<JWTVerifyGetKey> };

export type KnownIssuer = { issuer: string; jwks_uri: string | null; jwks: object | null };

/** The keys could not be read: a reason for a repeat of the call, and for operators. */
export class KeysUnreadable extends Error {}

const MOST_KEYS = 100;
const MOST_ISSUERS = 100;
const MINUTE = 60_000;
/** How soon a removed key is refused. */
const FRESH_MILLISECONDS = 10 * MINUTE;
/** A token with an unknown key can't make the service ask an issuer more often. */
const PAUSE_MILLISECONDS = 30_000;
const PAUSE_AFTER_FAILURE_MILLISECONDS = 10_000;
/** While an issuer does not answer, its last keys count for as long as a credential may last. */
const STALE_MILLISECONDS = 24 * 60 * MINUTE;

export function makeKeySets(fetchDocument: GuardedFetch): KeySets {
  const fetched = new Map<string, JWTVerifyGetKey>();
  return {
    keysOf: async ({ issuer, jwks_uri, jwks }) => {
      const jose = await import('jose');
      if (jwks) return jose.createLocalJWKSet(jwks as JSONWebKeySet);
      const name = JSON.stringify([issuer, jwks_uri]);
      const keys = fetched.get(name) ?? fetchedKeys(jose, fetchDocument, issuer, jwks_uri);
      fetched.delete(name);
      fetched.set(name, keys);
      const [oldest] = fetched.keys();
      if (fetched.size > MOST_ISSUERS && oldest !== undefined) fetched.delete(oldest);
      return keys;
    },
  };
}

/** Reads a key set that somebody typed. The message of an error goes on behind the name of its field. */
export async function readKeySet(text: string): Promise<JSONWebKeySet> {
  const { createLocalJWKSet } = await import('jose');
  let set: JSONWebKeySet;
  try {
    set = JSON.parse(text);
    createLocalJWKSet(set);
  } catch {
    throw new Error('must be the JSON text of a key set, such as {"keys":[…]}');
  }
  if (set.keys.length === 0 || set.keys.length > MOST_KEYS) throw new Error(`must have 1 to ${MOST_KEYS} keys`);
  if (set.keys.some(({ kty, d }) => d !== undefined || !PUBLIC_TYPES.has(kty)))
    throw new Error('must have public keys alone, of the type RSA, EC or OKP');
  return set;
}
const PUBLIC_TYPES = new Set<unknown>(['RSA', 'EC', 'OKP']);

function fetchedKeys(
  { createLocalJWKSet, createRemoteJWKSet, customFetch }: typeof import('jose'),
  fetchDocument: GuardedFetch,
  issuer: string,
  jwksUri: string | null,
): JWTVerifyGetKey {
  let readAt = 0;
  let failed: { at: number; error: Error } | undefined;
  const discovery = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;

  const readJson = async (url: string, signal: AbortSignal) => {
    const response = await fetchDocument(url, { headers: { accept: 'application/json' }, signal });
    if (response.status !== 200) throw new FetchRefused(`It answered ${response.status}.`);
    return Object(await response.json()) as Record<string, unknown>;
  };
  const readKeys = async (signal: AbortSignal) => {
    const found = jwksUri ? { issuer, jwks_uri: jwksUri } : await readJson(discovery, signal);
    if (found.issuer !== issuer) throw new FetchRefused('Its discovery document names another issuer.');
    const set = await readJson(String(found.jwks_uri), signal);
    if (!Array.isArray(set.keys) || set.keys.length > MOST_KEYS)
      throw new FetchRefused(`Its key set must have a list of at most ${MOST_KEYS} keys.`);
    createLocalJWKSet(set as unknown as JSONWebKeySet);
    return set;
  };

  const remote = createRemoteJWKSet(new URL(discovery), {
    cacheMaxAge: FRESH_MILLISECONDS,
    cooldownDuration: PAUSE_MILLISECONDS,
    timeoutDuration: 10_000,
    [customFetch]: async (_: string, { signal }: { signal: AbortSignal }) => {
      if (failed && Date.now() - failed.at < PAUSE_AFTER_FAILURE_MILLISECONDS) throw failed.error;
      try {
        const set = await readKeys(signal);
        [readAt, failed] = [Date.now(), undefined];
        return Response.json(set);
      } catch (error) {
        failed = { at: Date.now(), error: unreadable(error) };
        throw failed.error;
      }
    },
  });

  return async (header, token) => {
    try {
      return await remote(header, token);
    } catch (error) {
      const known = remote.jwks();
      if (!(error instanceof KeysUnreadable) || !known || Date.now() - readAt > STALE_MILLISECONDS) throw error;
      return createLocalJWKSet(known)(header, token);
    }
  };
}

/** Without internals, such as addresses, which the errors of connections have. */
const unreadable = (error: unknown) =>
  new KeysUnreadable(error instanceof FetchRefused ? error.message : 'The connection failed, or it sent no JSON.', {
    cause: error,
  });
