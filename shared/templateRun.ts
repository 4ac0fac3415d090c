import { z } from 'zod';
import { count, id, optionalChoice, storedChoice, timestamp } from './fields.ts';
import { Page, pageOf } from './paging.ts';
import { requestExamples } from './requestExample.ts';

/** Syncs and pushes of templates: their previews, outcomes and history. */

export const OUTCOMES = ['added', 'updated', 'unchanged', 'skipped'] as const;
export const SKIP_REASONS = ['no_access', 'deleted_by_project', 'inactive', 'held', 'pinned'] as const;

export const ProjectOutcome = z
  .object({
    project_id: id.meta({ description: 'The project.' }),
    project_name: z.string().meta({ description: 'The name of the project.' }),
    outcome: storedChoice(OUTCOMES).meta({ description: 'What happened to the project.' }),
    reason: storedChoice(SKIP_REASONS).nullable().meta({
      description:
        'Why it was skipped; `inactive` if the template is switched off, `held` if the project holds changes, `pinned` if the contents were rolled back there.',
    }),
    boards_added: count.meta({ description: 'Number of added boards.' }),
    groups_added: count.meta({ description: 'Number of added groups.' }),
    cards_added: count.meta({ description: 'Number of added cards.' }),
    boards_updated: count.meta({ description: 'Number of updated boards.' }),
    groups_updated: count.meta({ description: 'Number of updated groups.' }),
    cards_updated: count.meta({ description: 'Number of updated cards.' }),
  })
  .meta({ id: 'ProjectOutcome', description: 'What a sync or push did, or would do, to one project.' });

export const SyncPreview = Page.extend({ board_id: id.meta({ description: 'The master board.' }) });
SyncPreview.register(requestExamples, { example: { board_id: 1, limit: 20 } });
export type SyncPreview = z.output<typeof SyncPreview>;
export const BoardPushPreview = SyncPreview;
export type BoardPushPreview = z.output<typeof BoardPushPreview>;
export const GroupPushPreview = Page.extend({ group_id: id.meta({ description: 'The master group.' }) });
GroupPushPreview.register(requestExamples, { example: { group_id: 1, limit: 20 } });
export type GroupPushPreview = z.output<typeof GroupPushPreview>;
export const PushPreview = Page.extend({ card_id: id.meta({ description: 'The master card.' }) });
PushPreview.register(requestExamples, { example: { card_id: 1, limit: 20 } });
export type PushPreview = z.output<typeof PushPreview>;

export const OutcomePage = pageOf('projects', ProjectOutcome);

export const RUN_KINDS = ['sync', 'push', 'push_board', 'push_group'] as const;
export type RunKind = (typeof RUN_KINDS)[number];

export const TemplateRun = z
  .object({
    id,
    kind: storedChoice(RUN_KINDS).meta({
      description: 'The sync of a board, or the push of a card, a board or a group.',
    }),
    board_id: id.meta({ description: 'The master board.' }),
    board_title: z.string().meta({ description: 'The title of the master board.' }),
    group_id: id.nullable().meta({ description: 'The master group that was pushed.' }),
    group_title: z.string().nullable().meta({ description: 'The title of that group.' }),
    card_id: id.nullable().meta({ description: 'The master card that was pushed.' }),
    card_title: z.string().nullable().meta({ description: 'The title of that card.' }),
    user_id: id.nullable().meta({ description: 'The superadmin who ran it.' }),
    user_name: z.string().nullable().meta({ description: 'The name of that superadmin.' }),
    release_id: id.nullable().meta({ description: 'The release that it published, or found published.' }),
    aborted_rollout_id: id.nullable().meta({ description: 'The open rollout of the board that it ended.' }),
    started_at: timestamp.meta({ description: 'When it started.' }),
    finished_at: timestamp
      .nullable()
      .meta({ description: 'When it finished; null while it runs, or if it was interrupted.' }),
    interrupted_at: timestamp.nullable().meta({
      description:
        'When it made its last progress before it failed or its node stopped; null while it runs, or if it finished.',
    }),
    projects_total: count.meta({ description: 'Number of active projects when it started.' }),
    projects_done: count.meta({
      description: 'Number of projects that are done so far, those without access included.',
    }),
    projects_with_access: count.meta({ description: 'Number of projects with access.' }),
    projects_skipped: count.meta({ description: 'Number of projects without access.' }),
    projects_changed: count.meta({ description: 'Number of changed projects.' }),
    cards_added: count.meta({ description: 'Total number of added cards.' }),
    boards_updated: count.meta({ description: 'Total number of updated boards.' }),
    groups_updated: count.meta({ description: 'Total number of updated groups.' }),
    cards_updated: count.meta({ description: 'Total number of updated cards.' }),
  })
  .meta({ id: 'TemplateRun', description: 'A sync or push: who ran it, when, its progress and its result.' });

export const TemplateRunList = Page.extend({
  board_id: id.nullish().meta({ description: 'Only those of this board.' }),
});
TemplateRunList.register(requestExamples, { example: { board_id: 1, limit: 20 } });
export type TemplateRunList = z.output<typeof TemplateRunList>;
export const TemplateRunPage = pageOf('runs', TemplateRun);

export const TemplateRunGet = z.object({ id: id.meta({ description: 'The run.' }) });

export const TemplateRunReport = Page.extend({
  id,
  outcome: optionalChoice(OUTCOMES).meta({ description: 'Only the projects with this outcome.' }),
});
TemplateRunReport.register(requestExamples, { example: { id: 1, outcome: 'added', limit: 20 } });
export type TemplateRunReport = z.output<typeof TemplateRunReport>;
