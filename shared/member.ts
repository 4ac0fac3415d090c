import { z } from 'zod';
import { email, id, optionalText } from './fields.ts';
import { Page, pageOf } from './paging.ts';
import { requestExamples } from './requestExample.ts';
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
MemberAdd.register(requestExamples, { example: { email: 'outsider@demo.test', role: 'viewer', project_id: 1 } });
export type MemberAdd = z.output<typeof MemberAdd>;

export const MemberChoice = z.object({
  project_id,
  user_id: id.meta({ description: 'The user.' }),
});
MemberChoice.register(requestExamples, { example: { user_id: 4, project_id: 1 } });
export type MemberChoice = z.output<typeof MemberChoice>;

export const MemberSet = MemberChoice.extend({ role });
MemberSet.register(requestExamples, { example: { user_id: 4, role: 'member', project_id: 1 } });
export type MemberSet = z.output<typeof MemberSet>;

/** Required, so that nobody leaves their default project by mistake. */
export const MemberLeave = z.object({ project_id: id.meta({ description: 'The project.' }) });
export type MemberLeave = z.output<typeof MemberLeave>;

export const MemberList = Page.extend({
  project_id,
  search: optionalText(320).meta({ description: 'Only members whose name or e-mail address contains this.' }),
});
MemberList.register(requestExamples, { example: { project_id: 1, limit: 20 } });
export type MemberList = z.output<typeof MemberList>;
export const MemberPage = pageOf('members', Member);
