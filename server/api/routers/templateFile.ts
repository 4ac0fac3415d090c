import { z } from 'zod';
import {
  ExportedTemplate,
  TemplateApply,
  TemplateExport,
  TemplateFilePlan,
  TemplateFileResult,
  TemplatePlan,
} from '../../../shared/templateFile.ts';
import {
  applyTemplateFile,
  exportTemplate,
  planTemplate,
  sanitiseTemplate,
} from '../../domain/template/templateFile.ts';
import { rest } from '../restOperation.ts';
import { router, superadminProcedure } from '../trpc.ts';

export const templateFileRouter = router({
  export: rest(superadminProcedure, '/services/operations/v1/admin/template-files/export', {
    message: 'The template file.',
    summary: 'Export a master board as a file',
    description:
      'A master board with its groups and cards, as `plan` and `import` take it. Fields that are null or have their default are left out. The command `templates export` writes it as YAML.',
  })
    .meta({ reasons: ['answer_too_large'] })
    .input(TemplateExport)
    .output(z.object({ template: ExportedTemplate }))
    .query(({ ctx, input }) => exportTemplate(ctx, input)),

  plan: rest(superadminProcedure, '/services/operations/v1/admin/template-files/plan', {
    message: 'What the file would change.',
    summary: 'Plan a template file',
    description:
      'What applying a template file would change on the master board with its key; nothing changes. Rows are found by their keys, so a changed title is a rename.',
  })
    .meta({ reasons: ['already_exists', 'answer_too_large'] })
    .input(TemplatePlan)
    .output(TemplateFilePlan)
    .query(({ ctx, input }) => planTemplate(ctx, input)),

  // Not named `apply`, which tRPC reserves.
  import: rest(superadminProcedure, '/services/operations/v1/admin/template-files/import', {
    message: 'Template file applied.',
    summary: 'Apply a template file',
    description:
      'Makes the master board what the file says, in one transaction: creates, changes, moves and deletes its groups and cards. The copies in projects stay as they are until a sync, a push or a rollout. With a `plan`, only if nothing has changed since it. Applying the same file again changes nothing.',
  })
    .meta({
      isDestructive: true,
      prepare: sanitiseTemplate,
      events: [
        ...(['master_board.created', 'master_board.updated'] as const),
        ...([
          'master_group.created',
          'master_group.updated',
          'master_group.reordered',
          'master_group.deleted',
        ] as const),
        ...(['master_card.created', 'master_card.updated', 'master_card.reordered', 'master_card.deleted'] as const),
      ],
      reasons: ['unknown_reference', 'already_exists', 'answer_too_large', 'place_full'],
    })
    .input(TemplateApply)
    .output(TemplateFileResult)
    .mutation(({ ctx, input }) => applyTemplateFile(ctx, input)),
});
