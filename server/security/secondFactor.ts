import { createHash, randomInt } from 'node:crypto';

/** Time-based one-time codes (RFC 6238) and recovery codes. The libraries are loaded when they are needed: few calls do. */

export const makeSecret = async () => (await import('otplib')).generateSecret();

/** The otpauth URI of a secret, and its QR code. */
export async function describeSecret(secret: string, email: string): Promise<{ otpauth_uri: string; qr_svg: string }> {
  const [{ generateURI }, { default: QRCode }] = await Promise.all([import('otplib'), import('qrcode')]);
  const otpauth_uri = generateURI({ issuer: 'Deckhand', label: email, secret });
  return { otpauth_uri, qr_svg: await QRCode.toString(otpauth_uri, { type: 'svg' }) };
}

const STEP_SECONDS = 30;

/** The time step of a valid code: the current one or a neighbour; `undefined` for a wrong code. */
export async function stepOfCode(secret: string, code: string): Promise<number | undefined> {
  if (!/^\d{6}$/.test(code)) return undefined;
  const { createGuardrails, verifySync } = await import('otplib');
  // Imported secrets may have only 80 bits, which was usual once.
  const guardrails = createGuardrails({ MIN_SECRET_BYTES: 10 });
  const result = verifySync({ secret, token: code, epochTolerance: STEP_SECONDS, guardrails });
  return result.valid && 'timeStep' in result ? result.timeStep : undefined;
}

/** The code of a time step, counted from the current one. */
export async function codeOf(secret: string, steps: number): Promise<string> {
  const { generateSync } = await import('otplib');
  return generateSync({ secret, epoch: Math.floor(Date.now() / 1000) + steps * STEP_SECONDS });
}

const HOW_MANY_RECOVERY_CODES = 8;

export const makeRecoveryCodes = () => Array.from({ length: HOW_MANY_RECOVERY_CODES }, makeRecoveryCode);

/** Two groups of unambiguous letters and digits: 59 bits. */
function makeRecoveryCode(): string {
  const group = () => Array.from({ length: 6 }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');
  return `${group()}-${group()}`;
}
const ALPHABET = 'abcdefghjkmnpqrstuvwxyz23456789';

/** A plain hash is enough for long random codes, and can be looked up, unlike a salted one. */
export const hashRecoveryCode = (code: string) => createHash('sha256').update(code).digest('hex');
