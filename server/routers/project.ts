import { z } from 'zod';
import {
  OwnProjectList,
  OwnProjectPage,
  Project,
  ProjectCreate,
  ProjectList,
  ProjectPage,
  ProjectUpdate,
} from '../../shared/project.ts';
import { createProject, listOwnProjects, listProjects, updateProject } from '../domain/project.ts';
import { router, signedInProcedure, superadminProcedure } from '../trpc.ts';

const oneProject = z.object({ project: Project });

export const projectRouter = router({
  listOwn: signedInProcedure
    .input(OwnProjectList)
    .output(OwnProjectPage)
    .query(({ ctx, input }) => listOwnProjects(ctx, input)),

  create: superadminProcedure
    .meta({ command: 'Create a project of a platform.' })
    .input(ProjectCreate)
    .output(oneProject)
    .mutation(({ ctx, input }) => createProject(ctx, input)),

  update: superadminProcedure
    .meta({ command: 'Change a project; --tools replaces its tools.' })
    .input(ProjectUpdate)
    .output(oneProject)
    .mutation(({ ctx, input }) => updateProject(ctx, input)),

  list: superadminProcedure
    .meta({ command: 'List projects.' })
    .input(ProjectList)
    .output(ProjectPage)
    .query(({ ctx, input }) => listProjects(ctx, input)),
});
