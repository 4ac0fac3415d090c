import { createGuardrails, generateSync } from 'otplib';
import { afterEach, beforeEach, vi } from 'vitest';
import { insertRows } from '../../server/database/query.ts';
import { hashRecoveryCode } from '../../server/security/secondFactor.ts';
import { givenUser, type TestUser, testDb } from './world.ts';

export const SECRET = 'JBSWY3DPEHPK3PXP';

/** The code that an authenticator app shows, a number of 30-second steps from now. */
export const codeAt = (steps: number, secret = SECRET) =>
  generateSync({
    secret,
    epoch: Math.floor(Date.now() / 1000) + steps * 30,
    guardrails: createGuardrails({ MIN_SECRET_BYTES: 10 }),
  });

/** Sets the clock of a suite to the middle of a time step, so that no code expires during a test. */
export function holdTimeStep(): void {
  beforeEach(() => {
    const step = 30_000;
    vi.useFakeTimers({ toFake: ['Date'], now: Math.floor(Date.now() / step) * step + step / 2 });
  });
  afterEach(() => {
    vi.useRealTimers();
  });
}

/** A user with a second factor and recovery codes. */
export async function givenProtectedUser({ recoveryCodes = ['a-code', 'b-code', 'c-code'] } = {}): Promise<TestUser> {
  const user = await givenUser({ totp_secret: SECRET });
  const db = await testDb();
  await insertRows(
    db,
    'recovery_codes',
    recoveryCodes.map((code) => ({ user_id: user.id, code_hash: hashRecoveryCode(code) })),
  );
  return user;
}
