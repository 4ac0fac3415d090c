import { createHash, createSecretKey, type KeyObject } from 'node:crypto';
import jwt from 'jsonwebtoken';
import { z } from 'zod';

export type Claims = { userId: number; sessionId: string };

export type Tokens = {
  lifetimeSeconds: number;
  sign: (claims: Claims) => string;
  /** What a genuine, unexpired token says; `undefined` of any other. Whether its session still stands, it can't know. */
  read: (token: string) => Claims | undefined;
  /** The same of a genuine token that may have expired: a device is remembered for longer than a token lasts. */
  readExpired: (token: string) => Claims | undefined;
};

const ALGORITHM = 'HS256' as const;
const ISSUER = 'deckhand';
const AUDIENCE = 'deckhand-api';

/** Signs with the first secret and accepts all of them, so that secrets can be exchanged without signing anybody out. */
export function makeTokens(secrets: [string, ...string[]], lifetimeSeconds: number): Tokens {
  // As key objects: a text would be tried as a public key first, with every token.
  const keys = new Map<string, KeyObject>(secrets.map((secret) => [keyId(secret), createSecretKey(secret, 'utf8')]));
  const [current] = keys;
  const [currentId, currentKey] = current!;

  const readWith = (ignoreExpiration: boolean) => (token: string) => {
    try {
      const key = keys.get(jwt.decode(token, { complete: true })?.header.kid ?? '');
      if (!key) return undefined;
      const expected = { algorithms: [ALGORITHM], issuer: ISSUER, audience: AUDIENCE, ignoreExpiration };
      const { sub, jti } = Payload.parse(jwt.verify(token, key, expected));
      return { userId: sub, sessionId: jti };
    } catch {
      return undefined;
    }
  };

  return {
    lifetimeSeconds,
    sign: ({ userId, sessionId }) =>
      jwt.sign({}, currentKey, {
        algorithm: ALGORITHM,
        keyid: currentId,
        issuer: ISSUER,
        audience: AUDIENCE,
        subject: String(userId),
        jwtid: sessionId,
        expiresIn: lifetimeSeconds,
      }),
    read: readWith(false),
    readExpired: readWith(true),
  };
}

const Payload = z.object({ sub: z.string().regex(/^\d+$/).transform(Number), jti: z.uuid() });

/** Tells keys apart without telling anything of them. */
export const keyId = (secret: string) =>
  createHash('sha256').update(`deckhand key id ${secret}`).digest('base64url').slice(0, 12);
