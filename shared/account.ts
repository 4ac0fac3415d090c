import { z } from 'zod';
import { newPassword, secret } from './fields.ts';
import { User } from './user.ts';

/** What somebody does with their own account. */

export const Account = User.extend({
  recovery_codes_left: z.int().meta({ description: 'How many recovery codes have not been used.' }),
}).meta({ id: 'Account' });

const password = secret.meta({ description: 'The present password.' });

export const PasswordChange = z.object({
  password,
  new_password: newPassword.meta({ description: 'The password from now on.' }),
});
export type PasswordChange = z.output<typeof PasswordChange>;

/** Every session ends with the old password, the caller's own too: this token is for a new one. */
export const PasswordChanged = z.object({
  token: z.string().meta({ description: 'The Bearer token of later calls.' }),
});

export const SecondFactorStart = z.object({ password });
export type SecondFactorStart = z.output<typeof SecondFactorStart>;

/** Shown once: the authenticator app takes the picture, the address or the secret. */
export const SecondFactorOffer = z.object({
  secret: z.string().meta({ description: 'The secret, to type in by hand.' }),
  otpauth_uri: z.string().meta({ description: 'The address that authenticator apps understand.' }),
  qr_svg: z.string().meta({ description: 'The same address as a QR code: an SVG picture.' }),
});

export const SecondFactorConfirm = z.object({
  code: secret.meta({ description: 'The six digits that the authenticator app shows.' }),
});
export type SecondFactorConfirm = z.output<typeof SecondFactorConfirm>;

/** What takes more than a stolen token. */
export const SecondFactorProof = z.object({
  password,
  code: secret.meta({ description: 'The code of the second factor, or a recovery code.' }),
  is_recovery: z.boolean().nullish().meta({ description: 'Whether `code` is a recovery code.' }),
});
export type SecondFactorProof = z.output<typeof SecondFactorProof>;

/** Shown once: only hashes are kept. */
export const RecoveryCodes = z.object({
  recovery_codes: z.array(z.string()).meta({ description: 'Each signs in once where the app is not at hand.' }),
});
