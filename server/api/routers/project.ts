import { z } from 'zod';
import {
  OwnProjectList,
  OwnProjectPage,
  Project,
  ProjectCreate,
  ProjectList,
  ProjectPage,
  ProjectUpdate,
} from '../../../shared/project.ts';
import { createProject, listOwnProjects, listProjects, updateProject } from '../../domain/account/project.ts';
import { rest } from '../restOperation.ts';
import { router, signedInProcedure, superadminProcedure } from '../trpc.ts';

const oneProject = z.object({ project: Project });

export const projectRouter = router({
  listOwn: rest(signedInProcedure, '/services/platforms/v1/projects/list-own', {
    message: 'Your projects.',
    summary: 'List your projects',
    description:
      'The active projects that the caller is a member of, with their role there, page by page; all of them, or those that an id or a text finds.',
    namesRow: false,
  })
    .meta({ onPrimary: true, tool: true })
    .input(OwnProjectList)
    .output(OwnProjectPage)
    .query(({ ctx, input }) => listOwnProjects(ctx, input)),

  create: rest(superadminProcedure, '/services/platforms/v1/projects/create', {
    status: 201,
    message: 'Project created.',
    summary: 'Create a project',
    description:
      'Creates a project of a platform, with its tools. It gets copies of the active master boards that it has access to.',
    namesRow: false,
  })
    .meta({ events: ['project.created'], reasons: ['unknown_reference'] })
    .input(ProjectCreate)
    .output(oneProject)
    .mutation(({ ctx, input }) => createProject(ctx, input)),

  update: rest(superadminProcedure, '/services/platforms/v1/projects/update', {
    message: 'Project updated.',
    summary: 'Update a project',
    description:
      'Changes the sent fields of a project; `tools` replaces the previous ones. It gets copies of the active master boards of its new tools and, when it becomes active again, what it missed of all its master boards.',
  })
    .meta({ events: ['project.updated'] })
    .input(ProjectUpdate)
    .output(oneProject)
    .mutation(({ ctx, input }) => updateProject(ctx, input)),

  list: rest(superadminProcedure, '/services/platforms/v1/projects/list', {
    message: 'Projects.',
    summary: 'List projects',
    description: 'All projects, or those that a platform, an id or a text finds, page by page.',
    namesRow: false,
  })
    .input(ProjectList)
    .output(ProjectPage)
    .query(({ ctx, input }) => listProjects(ctx, input)),
});
