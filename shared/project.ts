import { z } from 'zod';
import { id } from './fields.ts';
import { nextCursor, Page } from './paging.ts';
import { ROLES } from './user.ts';

/** A project as one of its members sees it. */
export const OwnProject = z.object({
  id,
  platform_id: id.meta({ description: 'The platform that it belongs to.' }),
  name: z.string().meta({ description: 'Its name.' }),
  platform_name: z.string().meta({ description: 'The name of the platform.' }),
  role: z.enum(ROLES).meta({ description: 'What the caller may do in it.' }),
  is_default: z.boolean().meta({ description: 'Whether calls without X-Project-Id act in it.' }),
});

export const ProjectList = Page;
export const ProjectPage = z.object({ projects: z.array(OwnProject), next_cursor: nextCursor });
