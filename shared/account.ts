import { z } from 'zod';
import { newPassword, secret } from './fields.ts';
import { User } from './user.ts';

/** The account of the caller. */

export const Account = User.extend({
  recovery_codes_left: z.int().meta({ description: 'Number of unused recovery codes.' }),
}).meta({ id: 'Account', description: 'The account of the caller.' });

const password = secret.meta({ description: 'The current password.' });

export const PasswordChange = z.object({
  password,
  new_password: newPassword.meta({ description: 'The new password.' }),
});
export type PasswordChange = z.output<typeof PasswordChange>;

/** A password change ends every session, including the caller's; this token belongs to a new one. */
export const PasswordChanged = z.object({
  token: z.string().meta({ description: 'The Bearer token for later calls.' }),
});

export const SecondFactorStart = z.object({ password });
export type SecondFactorStart = z.output<typeof SecondFactorStart>;

/** Shown once, for the authenticator app: as QR code, URI or secret. */
export const SecondFactorOffer = z.object({
  secret: z.string().meta({ description: 'The secret, for manual entry.' }),
  otpauth_uri: z.string().meta({ description: 'The otpauth URI for authenticator apps.' }),
  qr_svg: z.string().meta({ description: 'The URI as a QR code (SVG).' }),
});

export const SecondFactorConfirm = z.object({
  code: secret.meta({ description: 'The six digits that the authenticator app shows.' }),
});
export type SecondFactorConfirm = z.output<typeof SecondFactorConfirm>;

/** Proof for sensitive changes, so that a stolen token is not enough. */
export const SecondFactorProof = z.object({
  password,
  code: secret.meta({ description: 'The code of the second factor, or a recovery code.' }),
  is_recovery: z.boolean().nullish().meta({ description: 'Whether `code` is a recovery code; false if not sent.' }),
});
export type SecondFactorProof = z.output<typeof SecondFactorProof>;

/** Shown once: only hashes are kept. */
export const RecoveryCodes = z.object({
  recovery_codes: z.array(z.string()).meta({ description: 'Each replaces a code of the app once.' }),
});
