import { createHash } from 'node:crypto';
import jwt from 'jsonwebtoken';
import { z } from 'zod';

export type Claims = { userId: number; sessionId: string };

export type Tokens = {
  lifetimeSeconds: number;
  sign: (claims: Claims) => string;
  /** What a genuine, unexpired token says; `undefined` of any other. Whether its session still stands, it can't know. */
  read: (token: string) => Claims | undefined;
};

const ALGORITHM = 'HS256';
const ISSUER = 'deckhand';
const AUDIENCE = 'deckhand-api';

/** Signs with the first secret and accepts all of them, so that secrets can be exchanged without signing anybody out. */
export function makeTokens(secrets: [string, ...string[]], lifetimeSeconds: number): Tokens {
  const keys = new Map(secrets.map((secret) => [keyId(secret), secret]));
  const [current] = secrets;

  return {
    lifetimeSeconds,
    sign: ({ userId, sessionId }) =>
      jwt.sign({}, current, {
        algorithm: ALGORITHM,
        keyid: keyId(current),
        issuer: ISSUER,
        audience: AUDIENCE,
        subject: String(userId),
        jwtid: sessionId,
        expiresIn: lifetimeSeconds,
      }),
    read: (token) => {
      try {
        const key = keys.get(jwt.decode(token, { complete: true })?.header.kid ?? '');
        if (!key) return undefined;
        const payload = jwt.verify(token, key, { algorithms: [ALGORITHM], issuer: ISSUER, audience: AUDIENCE });
        const { sub, jti } = Payload.parse(payload);
        return { userId: sub, sessionId: jti };
      } catch {
        return undefined;
      }
    },
  };
}

const Payload = z.object({ sub: z.string().regex(/^\d+$/).transform(Number), jti: z.uuid() });

/** Tells keys apart without telling anything of them. */
const keyId = (secret: string) =>
  createHash('sha256').update(`deckhand key id ${secret}`).digest('base64url').slice(0, 12);
