import type { JWTPayload, JWTVerifyGetKey } from 'jose';
import { isStorable } from '../../shared/fields.ts';
import { KeysUnreadable } from './keySets.ts';

/** Why a token of another issuer is refused: `message` for its sender, `detail` for operators, who may know more. */
export class TokenRefused extends Error {
  readonly detail: string;
  constructor(message: string, detail = message) {
    super(message);
    this.detail = detail;
  }
}

/** Signatures with public keys alone: an issuer's public key must not work as a shared secret. */
const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];

/** How far the clocks of an issuer and of this service may differ. */
const TOLERANCE_SECONDS = 60;
export const LONGEST_TOKEN_SECONDS = 24 * 60 * 60;

export type IdentityClaims = JWTPayload & { iss: string; sub: string; iat: number; exp: number };

export const NO_TOKEN = 'It is not a JSON Web Token.';

/** Who a token says that it is from, unchecked. Like all of this, it loads `jose` with the first token. */
export async function readIssuer(token: string): Promise<{ iss: string; sub: string }> {
  const { decodeJwt } = await import('jose');
  const { iss, sub } = decoded(() => decodeJwt(token));
  if (typeof iss !== 'string' || !isStorable(iss)) throw new TokenRefused('It has no iss, the issuer.');
  return { iss, sub: typeof sub === 'string' ? sub : '' };
}

function decoded<Part>(decode: () => Part): Part {
  try {
    return decode();
  } catch {
    throw new TokenRefused('It is not a JSON Web Token.');
  }
}

/** Checks everything but whom the token is for, which the rules say. Throws `TokenRefused` or `KeysUnreadable`. */
export async function verifyIdentityToken(
  token: string,
  issuer: string,
  keys: JWTVerifyGetKey,
): Promise<IdentityClaims> {
  const { decodeProtectedHeader, jwtVerify } = await import('jose');
  const { typ = 'JWT' } = decoded(() => decodeProtectedHeader(token));
  // Other types, such as logout tokens, are not made to be exchanged.
  if (!/^(application\/)?jwt$/i.test(String(typ))) throw new TokenRefused('Its typ must be JWT.');
  const options = {
    ...{ algorithms: ALGORITHMS, issuer, requiredClaims: ['sub', 'aud', 'iat', 'exp'] },
    ...{ clockTolerance: TOLERANCE_SECONDS, maxTokenAge: LONGEST_TOKEN_SECONDS },
  };
  const { payload } = await jwtVerify(token, keys, options).catch((error) => {
    throw error instanceof KeysUnreadable ? error : new TokenRefused(...problemOf(error));
  });
  const { iss, sub, iat = 0, exp = Number.POSITIVE_INFINITY } = payload;
  if (typeof iss !== 'string' || typeof sub !== 'string' || !isStorable(sub))
    throw new TokenRefused('Its sub must be text.');
  if (exp - iat > LONGEST_TOKEN_SECONDS)
    throw new TokenRefused('It is valid for longer than 24 hours (exp - iat): have it issued for less.');
  return { ...payload, iss, sub, iat, exp };
}

/** In words of the token's sender; the second text is for operators. */
function problemOf(error: { code?: string; claim?: string; reason?: string; message?: string }): [string, string?] {
  const { code, claim, reason } = error;
  switch (code) {
    case 'ERR_JWT_EXPIRED':
      return [claim === 'exp' ? 'It has expired.' : 'It was issued more than 24 hours ago.'];
    case 'ERR_JWT_CLAIM_VALIDATION_FAILED':
      if (reason === 'missing') return [`It has no ${claim}.`];
      if (reason === 'invalid') return [`Its ${claim} must be a number.`];
      return [`Its ${claim} is in the future: check the clock of its issuer.`];
    case 'ERR_JOSE_ALG_NOT_ALLOWED':
      return [`Its algorithm (alg) is not accepted. Accepted are ${ALGORITHMS.join(', ')}.`];
    case 'ERR_JWKS_NO_MATCHING_KEY':
      return ['Its key (kid) is not one of its issuer.'];
    case 'ERR_JWKS_MULTIPLE_MATCHING_KEYS':
      return ['It has no kid, and its issuer has several keys.'];
    case 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED':
      return ['Its signature is wrong.'];
    default:
      return ['It, or the key of its issuer, can not be used.', error.message];
  }
}
