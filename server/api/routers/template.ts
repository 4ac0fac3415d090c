import { z } from 'zod';
import { rowVersion } from '../../../shared/fields.ts';
import {
  DriftList,
  DriftPage,
  ProjectTemplate,
  TemplateHold,
  TemplateReset,
  TemplateUnhold,
  TemplateUnpin,
} from '../../../shared/projectTemplate.ts';
import { noun } from '../../../shared/release.ts';
import { listDrift } from '../../domain/template/drift.ts';
import {
  holdTemplate,
  listProjectTemplates,
  resetToTemplate,
  unholdTemplate,
  unpinTemplate,
} from '../../domain/template/projectTemplate.ts';
import { RELEASE_LEVEL } from '../../domain/template/release.ts';
import { rest } from '../restOperation.ts';
import { memberProcedure, ownerOrSuperadminProcedure, router, superadminProcedure, viewerProcedure } from '../trpc.ts';

export const templateRouter = router({
  list: rest(viewerProcedure, '/services/operations/v1/operations/templates/list', {
    message: 'Boards from templates.',
    summary: 'List boards from templates',
    description:
      'The boards of the project that came from master boards: which release they have, what changed in it and why, and whether the project holds changes.',
  })
    .output(z.object({ templates: z.array(ProjectTemplate).meta({ description: 'The boards in order.' }) }))
    .query(({ ctx }) => listProjectTemplates(ctx)),

  hold: rest(ownerOrSuperadminProcedure, '/services/operations/v1/operations/templates/hold', {
    message: 'Changes are held.',
    summary: 'Hold changes of a template',
    description: 'Syncs, pushes and rollouts leave this board alone until then.',
  })
    .meta({ events: ['template.held'], level: RELEASE_LEVEL, reasons: ['not_from_template'] })
    .input(TemplateHold)
    .output(z.void())
    .mutation(({ ctx, input }) => holdTemplate(ctx, input)),

  unhold: rest(ownerOrSuperadminProcedure, '/services/operations/v1/operations/templates/unhold', {
    message: 'Changes are taken again.',
    summary: 'Take changes of a template again',
    description: 'Ends a hold. What was left out comes with the next sync or push, or with a retry of the rollout.',
  })
    .meta({ isDestructive: true, events: ['template.unheld'], level: RELEASE_LEVEL, reasons: ['not_from_template'] })
    .input(TemplateUnhold)
    .output(z.void())
    .mutation(({ ctx, input }) => unholdTemplate(ctx, input)),

  unpin: rest(ownerOrSuperadminProcedure, '/services/operations/v1/operations/templates/unpin', {
    message: 'Rolled-back contents are taken again.',
    summary: 'Take rolled-back contents again',
    description: 'Contents that a rollback has taken back in the project can be brought again.',
  })
    .meta({ events: ['template.unpinned'], level: RELEASE_LEVEL, reasons: ['not_from_template'] })
    .input(TemplateUnpin)
    .output(z.void())
    .mutation(({ ctx, input }) => unpinTemplate(ctx, input)),

  reset: rest(memberProcedure, '/services/operations/v1/operations/templates/reset', {
    message: 'Reset to the template.',
    summary: 'Reset a row to its template',
    description:
      'Sets the fields of a board, group or card that came from a template back to the release that the project has. What belongs to the project stays: status, owner, tag, dates, place and comments.',
  })
    .meta({
      isDestructive: true,
      events: ['board.updated', 'group.updated', 'card.updated'],
      reasons: ['not_from_template'],
    })
    .input(TemplateReset)
    .output(z.object({ noun, id: TemplateReset.shape.id, version: rowVersion }))
    .mutation(({ ctx, input }) => resetToTemplate(ctx, input)),

  drift: rest(superadminProcedure, '/services/operations/v1/operations/templates/drift', {
    message: 'What differs.',
    summary: 'List what differs from a template',
    description:
      'Each project with a copy of the master board: which release it has, which fields differ from it, and how many rows it added, deleted or never got.',
  })
    .input(DriftList)
    .output(DriftPage)
    .query(({ ctx, input }) => listDrift(ctx, input)),
});
