import { ProjectList, ProjectPage } from '../../shared/project.ts';
import { listOwnProjects } from '../domain/project.ts';
import { router, signedInProcedure } from '../trpc.ts';

export const projectRouter = router({
  listOwn: signedInProcedure
    .input(ProjectList)
    .output(ProjectPage)
    .query(({ ctx, input }) => listOwnProjects(ctx, input)),
});
