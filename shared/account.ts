import { z } from 'zod';
import { count, flag, id, newPassword, secret } from './fields.ts';
import { requestExamples } from './requestExample.ts';
import { User } from './user.ts';

export const Account = User.extend({
  has_password: z
    .boolean()
    .meta({ description: 'Whether it has a password; otherwise an identity provider signs in.' }),
  recovery_codes_left: count.meta({ description: 'Number of unused recovery codes.' }),
}).meta({ id: 'Account', description: 'The account of the caller.' });

const password = secret.meta({ description: 'The current password.' });

const revoke_keys = flag.meta({
  description: 'Whether to revoke all API keys of the account, too; false if not sent.',
});
/** What still gives access to an account whose sessions were ended. */
export const accessLeft = {
  keys_left: count.meta({ description: 'Number of API keys of the account that are still valid.', example: 0 }),
  identities_left: count.meta({
    description:
      'Number of linked identities that can still sign in. Those that were linked within the last seven days were unlinked.',
    example: 0,
  }),
};

export const SignOutEverywhere = z.object({ revoke_keys });
SignOutEverywhere.register(requestExamples, { example: { revoke_keys: true } });
export type SignOutEverywhere = z.output<typeof SignOutEverywhere>;
export const SignedOutEverywhere = z.object(accessLeft);

export const PasswordChange = z.object({
  password,
  new_password: newPassword.meta({ description: 'The new password.' }),
  revoke_keys,
});
PasswordChange.register(requestExamples, { example: { password: 'demo-password', new_password: 'a long sentence' } });
export type PasswordChange = z.output<typeof PasswordChange>;

/** A password change ends every session, including the caller's; this token belongs to a new one. */
export const PasswordChanged = z.object({
  token: z.string().meta({ description: 'The Bearer token for later calls.' }),
  ...accessLeft,
});

export const DefaultProject = z.object({ project_id: id.meta({ description: 'An active project of the caller.' }) });
export type DefaultProject = z.output<typeof DefaultProject>;

export const SecondFactorStart = z.object({ password });
SecondFactorStart.register(requestExamples, { example: { password: 'demo-password' } });
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
SecondFactorConfirm.register(requestExamples, { example: { code: '123456' } });
export type SecondFactorConfirm = z.output<typeof SecondFactorConfirm>;

const code = secret.meta({ description: 'The code of the second factor, or a recovery code.' });
const is_recovery = flag.meta({ description: 'Whether `code` is a recovery code; false if not sent.' });

/** Proof for sensitive changes, so that a stolen token is not enough. */
export const SecondFactorProof = z.object({ password, code, is_recovery });
SecondFactorProof.register(requestExamples, {
  example: { password: 'demo-password', code: 'demo-recovery-1', is_recovery: true },
});
export type SecondFactorProof = z.output<typeof SecondFactorProof>;

/** The same for `account.prove`: the code is needed only where a second factor is enabled. */
export const ProofGiven = z.object({
  password,
  code: secret
    .nullish()
    .meta({ description: 'The code of the second factor, if it is enabled, or a recovery code.', example: null }),
  is_recovery,
});
ProofGiven.register(requestExamples, { example: { password: 'demo-password' } });
export type ProofGiven = z.output<typeof ProofGiven>;

/** Shown once: only hashes are kept. */
export const RecoveryCodes = z.object({
  recovery_codes: z.array(z.string()).meta({ description: 'Each replaces a code of the app once.' }),
});

export const PROOF_MINUTES = 10;

const UNLESS_RECENT = `not needed within ${PROOF_MINUTES} minutes after signing in or \`account.prove\``;

/** The same proof, optional for a short time after it was given. */
export const recentProof = {
  password: secret.nullish().meta({ description: `The caller's password; ${UNLESS_RECENT}.`, example: null }),
  code: secret.nullish().meta({
    description: `The code of the second factor, if it is enabled, or a recovery code; ${UNLESS_RECENT} with one.`,
    example: null,
  }),
  is_recovery,
};
export type RecentProof = z.output<z.ZodObject<typeof recentProof>>;
