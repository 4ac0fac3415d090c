import { z } from 'zod';
import { email, id, timestamp } from './fields.ts';
import { projectChoice } from './member.ts';
import { Page, pageOf } from './paging.ts';
import { linkSecret } from './recovery.ts';
import { requestExamples } from './requestExample.ts';
import { ROLES } from './user.ts';

/** A membership that waits for its user to accept it. */

const role = z.enum(ROLES).meta({ description: 'The role that they get.' });

const invitation = {
  id,
  project_id: id.meta({ description: 'The project.' }),
  role,
  created_at: timestamp.meta({ description: 'When it was created.' }),
};

/** For owners of the project; it does not reveal whether the address has an account. */
export const Invitation = z
  .object({
    ...invitation,
    email: z.string().meta({ description: 'The address that was invited.', example: 'ann@demo.test' }),
    invited_by: id.nullable().meta({ description: 'The user who invited them; null for the command line.' }),
    updated_at: timestamp.meta({ description: 'When it was last sent again.' }),
  })
  .meta({ id: 'Invitation', description: 'An invitation to a project.' });

/** For the invited user. */
const OwnInvitation = z
  .object({
    ...invitation,
    project_name: z.string().meta({ description: 'The name of the project.' }),
    platform_name: z.string().meta({ description: 'The name of its platform.' }),
    invited_by_name: z
      .string()
      .nullable()
      .meta({ description: 'The name of the user who invited them; null for the command line.' }),
  })
  .meta({ id: 'OwnInvitation', description: 'An invitation of the caller.' });

export const MemberInvite = z.object({ project_id: projectChoice, email, role });
MemberInvite.register(requestExamples, { example: { email: 'ann@demo.test', role: 'member', project_id: 1 } });
export type MemberInvite = z.output<typeof MemberInvite>;

export const InvitationList = Page.extend({ project_id: projectChoice });
InvitationList.register(requestExamples, { example: { project_id: 1, limit: 20 } });
export type InvitationList = z.output<typeof InvitationList>;
export const InvitationPage = pageOf('invitations', Invitation);

export const OwnInvitationPage = pageOf('invitations', OwnInvitation);

export const InvitationChoice = z.object({ id: id.meta({ description: 'The invitation.' }) });
export type InvitationChoice = z.output<typeof InvitationChoice>;

export const InvitationAccept = InvitationChoice.extend({
  secret: linkSecret.nullish().meta({
    description: 'The secret of the link in the mail, if the address of the account is not confirmed yet.',
    example: null,
  }),
});
InvitationAccept.register(requestExamples, { example: { id: 1 } });
export type InvitationAccept = z.output<typeof InvitationAccept>;
