import { createHash } from 'node:crypto';

/** Codes are long and random, so that a plain hash protects them; it can be looked up, which a salted one can't. */
export const hashRecoveryCode = (code: string) => createHash('sha256').update(code).digest('hex');
