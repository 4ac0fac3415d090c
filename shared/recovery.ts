import { z } from 'zod';
import { accessLeft } from './account.ts';
import { email, id, newPassword, text, untrimmed } from './fields.ts';
import { requestExamples } from './requestExample.ts';
import { ROLES } from './user.ts';

/** What people do with the links in their mails. */

const LONGEST_SECRET = 100;

/** Behind the `#` of the link, so that it is in no log and no history. */
export const linkSecret = untrimmed(LONGEST_SECRET)
  .min(1)
  .meta({ description: 'The secret of the link: its part after `#`.', format: 'password' });

const EXAMPLE_SECRET = 'a5J0cXkDq0sWmD1f3pV0Hn3m0cJd0sLx8vF6t1yqZbE';

export const PasswordResetRequest = z.object({ email });
PasswordResetRequest.register(requestExamples, { example: { email: 'member@demo.test' } });
export type PasswordResetRequest = z.output<typeof PasswordResetRequest>;

export const PasswordReset = z.object({
  secret: linkSecret,
  new_password: newPassword.meta({ description: 'The new password.' }),
});
PasswordReset.register(requestExamples, { example: { secret: EXAMPLE_SECRET, new_password: 'a long sentence' } });
export type PasswordReset = z.output<typeof PasswordReset>;
export const PasswordResetDone = z.object(accessLeft);

export const AddressChange = z.object({ email: email.meta({ description: 'The new address.' }) });
AddressChange.register(requestExamples, { example: { email: 'new@demo.test' } });
export type AddressChange = z.output<typeof AddressChange>;

export const AddressConfirm = z.object({ secret: linkSecret });
AddressConfirm.register(requestExamples, { example: { secret: EXAMPLE_SECRET } });
export type AddressConfirm = z.output<typeof AddressConfirm>;
export const AddressConfirmed = z.object({
  email: z.string().meta({ description: 'The address of the account from now on.', example: 'new@demo.test' }),
});

export const InvitationLink = z.object({ secret: linkSecret });
InvitationLink.register(requestExamples, { example: { secret: EXAMPLE_SECRET } });
export type InvitationLink = z.output<typeof InvitationLink>;

/** For whoever has the link, which is in the mail to that address alone. */
export const ShownInvitation = z
  .object({
    id: id.meta({ description: 'The invitation.' }),
    email: z.string().meta({ description: 'The address that was invited.', example: 'ann@demo.test' }),
    project_name: z.string().meta({ description: 'The name of the project.' }),
    role: z.enum(ROLES).meta({ description: 'The role that they get.' }),
    invited_by_name: z
      .string()
      .nullable()
      .meta({ description: 'The name of the user who invited them; null for the command line.' }),
    has_account: z.boolean().meta({
      description: 'Whether an account has this address: its user signs in and accepts; otherwise they sign up.',
    }),
  })
  .meta({ id: 'ShownInvitation', description: 'The invitation of a link.' });

export const SignUp = z.object({
  secret: linkSecret,
  name: text(255).meta({ description: 'Your name.', example: 'Ann' }),
  password: newPassword.meta({ description: 'The password of the new account.' }),
});
SignUp.register(requestExamples, { example: { secret: EXAMPLE_SECRET, name: 'Ann', password: 'a long sentence' } });
export type SignUp = z.output<typeof SignUp>;
export const SignedUp = z.object({
  token: z.string().meta({ description: 'The Bearer token for later calls.' }),
  project_id: id.meta({ description: 'The project that they are a member of now.' }),
});
