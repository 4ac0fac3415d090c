import { createHash, randomInt } from 'node:crypto';
import { createGuardrails, generateSecret, generateURI, verifySync } from 'otplib';
import QRCode from 'qrcode';

/** Time-based one-time codes (RFC 6238) and the recovery codes for when they are not at hand. */

export const makeSecret = () => generateSecret();

/** What an authenticator app needs to know, as an address and as a picture of it. */
export async function describeSecret(secret: string, email: string): Promise<{ otpauth_uri: string; qr_svg: string }> {
  const otpauth_uri = generateURI({ issuer: 'Deckhand', label: email, secret });
  return { otpauth_uri, qr_svg: await QRCode.toString(otpauth_uri, { type: 'svg' }) };
}

const STEP_SECONDS = 30;

/** The time step that a code is right for, out of the present one and its neighbours; `undefined` of a wrong code. */
export function stepOfCode(secret: string, code: string): number | undefined {
  if (!/^\d{6}$/.test(code)) return undefined;
  const result = verifySync({ secret, token: code, epochTolerance: STEP_SECONDS, guardrails: SHORT_SECRETS_TOO });
  return result.valid && 'timeStep' in result ? result.timeStep : undefined;
}

/** Secrets that came from elsewhere may have the 80 bits that were once usual. */
const SHORT_SECRETS_TOO = createGuardrails({ MIN_SECRET_BYTES: 10 });

const HOW_MANY_RECOVERY_CODES = 8;

export const makeRecoveryCodes = () => Array.from({ length: HOW_MANY_RECOVERY_CODES }, makeRecoveryCode);

/** Two groups of letters and digits that nobody mistakes for each other: 59 bits. */
function makeRecoveryCode(): string {
  const group = () => Array.from({ length: 6 }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');
  return `${group()}-${group()}`;
}
const ALPHABET = 'abcdefghjkmnpqrstuvwxyz23456789';

/** Codes are long and random, so that a plain hash protects them; it can be looked up, which a salted one can't. */
export const hashRecoveryCode = (code: string) => createHash('sha256').update(code).digest('hex');
