import { z } from 'zod';
import { fieldsOfUpdate } from './changes.ts';
import { flag, id, optionalText, text, timestamp } from './fields.ts';
import { Page, pageOf } from './paging.ts';
import { requestExamples } from './requestExample.ts';
import { ROLES } from './user.ts';

const ownership = {
  id,
  platform_id: id.meta({ description: 'The platform that it belongs to.' }),
  name: z.string().meta({ description: 'Its name.' }),
};

/** For members. */
const OwnProject = z
  .object({
    ...ownership,
    platform_name: z.string().meta({ description: 'The name of the platform.' }),
    role: z.enum(ROLES).meta({ description: "The caller's role." }),
    is_default: z
      .boolean()
      .meta({ description: 'Whether it is the project of calls that name no project and no row.' }),
  })
  .meta({ id: 'OwnProject', description: 'A project of the caller.' });

const choice = {
  id: id.nullish().meta({ description: 'Only the project with this id.' }),
  search: optionalText(255).meta({ description: 'Only projects whose name contains this.' }),
};

export const OwnProjectList = Page.extend(choice);
OwnProjectList.register(requestExamples, { example: { limit: 20 } });
export type OwnProjectList = z.output<typeof OwnProjectList>;
export const OwnProjectPage = pageOf('projects', OwnProject);

/** For superadmins. */
export const Project = z
  .object({
    ...ownership,
    is_active: z.boolean().meta({ description: 'Whether calls can use it and it gets templates.' }),
    tools: z.array(z.string()).meta({ description: 'Its enabled tools.' }),
    created_at: timestamp.meta({ description: 'When it was created.' }),
    updated_at: timestamp.meta({ description: 'When it was last changed.' }),
  })
  .meta({ id: 'Project', description: 'A project of a platform.' });

const tools = z.array(text(100)).max(100).meta({ description: 'Its enabled tools.' });

export const ProjectCreate = z.object({
  platform_id: id.meta({ description: 'The platform that it belongs to.' }),
  name: text(255).meta({ description: 'Its name.' }),
  tools: tools.default([]),
});
ProjectCreate.register(requestExamples, {
  example: { platform_id: 1, name: 'Their site', tools: ['onboarding', 'seo'] },
});
export type ProjectCreate = z.output<typeof ProjectCreate>;

const changes = {
  name: optionalText(255).meta({ description: 'Its name.' }),
  is_active: flag.meta({ description: 'Whether calls can use it and it gets templates.' }),
  tools: tools.nullish().meta({ description: 'Its enabled tools, which replace the previous ones.' }),
};
export const ProjectUpdate = z.object({ id, ...fieldsOfUpdate(changes, Project) });
ProjectUpdate.register(requestExamples, { example: { id: 3, tools: ['onboarding'] } });
export type ProjectUpdate = z.output<typeof ProjectUpdate>;

export const ProjectList = Page.extend({
  platform_id: id.nullish().meta({ description: 'Only the projects of this platform.' }),
  ...choice,
});
ProjectList.register(requestExamples, { example: { platform_id: 1, limit: 20 } });
export type ProjectList = z.output<typeof ProjectList>;
export const ProjectPage = pageOf('projects', Project);
