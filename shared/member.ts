import { z } from 'zod';
import { id } from './fields.ts';
import { nextCursor, Page } from './paging.ts';
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
  .meta({ id: 'Member' });

export const MemberChoice = z.object({
  project_id: id.meta({ description: 'The project.' }),
  user_id: id.meta({ description: 'The user.' }),
});
export type MemberChoice = z.output<typeof MemberChoice>;

export const MemberSet = MemberChoice.extend({ role: z.enum(ROLES).meta({ description: 'Their role.' }) });
export type MemberSet = z.output<typeof MemberSet>;

export const MemberList = Page.extend({ project_id: id.meta({ description: 'The project.' }) });
export type MemberList = z.output<typeof MemberList>;
export const MemberPage = z.object({ members: z.array(Member), next_cursor: nextCursor });
