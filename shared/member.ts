import { z } from 'zod';
import { email, id } from './fields.ts';
import { Page, pageOf } from './paging.ts';
import { ROLES } from './user.ts';

/** A user's membership in a project. */
export const Member = z
  .object({
    project_id: id.meta({ description: 'The project.' }),
    user_id: id.meta({ description: 'The user.' }),
    name: z.string().meta({ description: "The user's name." }),
    email: z.string().meta({ description: "The user's e-mail address." }),
    role: z.enum(ROLES).meta({ description: 'Their role.' }),
  })
  .meta({ id: 'Member', description: 'A member of a project.' });

export const projectChoice = id
  .nullish()
  .meta({ description: 'The project; the one that the call acts in if not sent.' });
const project_id = projectChoice;
const role = z.enum(ROLES).meta({ description: 'Their role.' });

export const MemberAdd = z.object({ project_id, email, role });
export type MemberAdd = z.output<typeof MemberAdd>;

export const MemberChoice = z.object({
  project_id,
  user_id: id.meta({ description: 'The user.' }),
});
export type MemberChoice = z.output<typeof MemberChoice>;

export const MemberSet = MemberChoice.extend({ role });
export type MemberSet = z.output<typeof MemberSet>;

/** Required, so that nobody leaves their default project by mistake. */
export const MemberLeave = z.object({ project_id: id.meta({ description: 'The project.' }) });
export type MemberLeave = z.output<typeof MemberLeave>;

export const MemberList = Page.extend({ project_id });
export type MemberList = z.output<typeof MemberList>;
export const MemberPage = pageOf('members', Member);
