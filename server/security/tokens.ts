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

  /** By the first part of our tokens, which is the same for all of a key: reading it again would take as long as the check. */
  const keysByHeader = new Map([...keys].map(([keyid, key]) => [headerOf(keyid, key), key]));

  const readWith = (ignoreExpiration: boolean) => (token: string) => {
    try {
      const key = keysByHeader.get(token.slice(0, token.indexOf('.'))) ?? keys.get(kidOf(token));
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

const headerOf = (keyid: string, key: KeyObject) =>
  jwt.sign({}, key, { algorithm: ALGORITHM, keyid }).split('.', 1)[0]!;

const kidOf = (token: string) => jwt.decode(token, { complete: true })?.header.kid ?? '';

const Payload = z.object({ sub: z.string().regex(/^\d+$/).transform(Number), jti: z.uuid() });

/** Tells keys apart without telling anything of them. */
export const keyId = (secret: string) =>
  createHash('sha256').update(`deckhand key id ${secret}`).digest('base64url').slice(0, 12);
