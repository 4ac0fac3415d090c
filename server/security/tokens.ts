import { createHash, createSecretKey, type KeyObject } from 'node:crypto';
import { createRequire } from 'node:module';
import type jsonwebtoken from 'jsonwebtoken';
import { z } from 'zod';

export type Claims = { userId: number; sessionId: string };

export type Tokens = {
  lifetimeSeconds: number;
  /** Valid for `lifetimeSeconds`, unless its session ends sooner. */
  sign: (claims: Claims & { seconds?: number }) => string;
  /** The claims of a valid, unexpired token; `undefined` for any other. Does not check the session. */
  read: (token: string) => Claims | undefined;
  /** The same, but also for expired tokens: devices are remembered for longer than a token is valid. */
  readExpired: (token: string) => Claims | undefined;
};

/** Loaded with the first token: few commands of the command line need it. */
const jwt = (): typeof jsonwebtoken => require('jsonwebtoken');
const require = createRequire(import.meta.url);

const ALGORITHM = 'HS256' as const;
const ISSUER = 'deckhand';
const AUDIENCE = 'deckhand-api';

const MOST_REMEMBERED = 1000;

/** Signs with the first secret and accepts all of them, so that secrets can be rotated without signing anybody out. */
export function makeTokens(secrets: [string, ...string[]], lifetimeSeconds: number): Tokens {
  // As key objects: jsonwebtoken would try to parse a string as a public key for every token.
  const keys = new Map<string, KeyObject>(secrets.map((secret) => [keyId(secret), createSecretKey(secret, 'utf8')]));
  const currentId = keyId(secrets[0]);
  const currentKey = createSecretKey(secrets[0], 'utf8');

  const verify = (token: string, ignoreExpiration: boolean) => {
    try {
      const key = keys.get(jwt().decode(token, { complete: true })?.header.kid ?? '');
      if (!key) return undefined;
      const expected = { algorithms: [ALGORITHM], issuer: ISSUER, audience: AUDIENCE, ignoreExpiration };
      const { sub, jti, exp } = Payload.parse(jwt().verify(token, key, expected));
      return { claims: { userId: sub, sessionId: jti }, expiresAt: exp * 1000 };
    } catch {
      return undefined;
    }
  };

  /** A cache of verified tokens: a signature stays valid, so only the expiry is checked again. */
  const genuine = new Map<string, { claims: Claims; expiresAt: number }>();
  const read = (token: string) => {
    let known = genuine.get(token);
    if (!known) {
      known = verify(token, false);
      if (known) genuine.set(token, known);
      const [oldest = ''] = genuine.size > MOST_REMEMBERED ? genuine.keys() : [];
      genuine.delete(oldest);
    }
    if (known && known.expiresAt > Date.now()) return known.claims;
    genuine.delete(token);
    return undefined;
  };

  return {
    lifetimeSeconds,
    sign: ({ userId, sessionId, seconds = lifetimeSeconds }) =>
      jwt().sign({}, currentKey, {
        algorithm: ALGORITHM,
        keyid: currentId,
        issuer: ISSUER,
        audience: AUDIENCE,
        subject: String(userId),
        jwtid: sessionId,
        expiresIn: seconds,
      }),
    read,
    readExpired: (token) => verify(token, true)?.claims,
  };
}

const Payload = z.object({ sub: z.string().regex(/^\d+$/).transform(Number), jti: z.uuid(), exp: z.int() });

/** Identifies a key without revealing it. */
export const keyId = (secret: string) =>
  createHash('sha256').update(`deckhand key id ${secret}`).digest('base64url').slice(0, 12);
