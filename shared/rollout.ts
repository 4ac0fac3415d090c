import { z } from 'zod';
import { count, id, optionalChoice, optionalText, storedChoice, timestamp } from './fields.ts';
import { Page, pageOf } from './paging.ts';
import { noun } from './release.ts';
import { requestExamples } from './requestExample.ts';

/** Rollouts: a release is brought to projects in stages, and can be taken back. */

export const ROLLOUT_STATES = [
  'planning',
  'planned',
  'running',
  'paused',
  'aborted',
  'done',
  'rolling_back',
  'rolled_back',
] as const;

/** Why it does not go on by itself, or ended early. */
export const HALT_REASONS = ['user', 'failures', 'conflicts', 'superseded'] as const;

export const TARGET_STATES = [
  'planned',
  'held',
  'done',
  'unchanged',
  'failed',
  'conflict',
  'skipped',
  'rolled_back',
] as const;

/** The fields that a rollout can overwrite. */
export const OVERWRITABLE = [
  ...['title', 'description', 'tool_key', 'is_active', 'type', 'color', 'icon', 'position'],
  ...['short_description', 'evaluation_check', 'tour_key'],
] as const;

const MOST_STAGES = 20;
const LONGEST_SOAK_MINUTES = 60 * 24 * 30;

const Stage = z
  .object({
    percent: z.int().min(1).max(100).nullish().meta({
      description:
        'How many percent of the projects have it after this stage, but at least one: always the same ones first.',
      example: 10,
    }),
    projects: z.array(id).min(1).max(1000).nullish().meta({ description: 'Or these projects.', example: null }),
    soak_minutes: z.int().min(0).max(LONGEST_SOAK_MINUTES).nullish().meta({
      description: 'How long to wait after it; until `rollouts.advance` if not sent.',
      example: 60,
    }),
  })
  .refine(({ percent, projects }) => (percent == null) !== (projects == null), {
    error: 'needs either percent or projects',
  });
export type Stage = z.output<typeof Stage>;

export const RolloutPlan = z.object({
  release_id: id.meta({ description: 'The release.' }),
  stages: z
    .array(Stage)
    .min(1)
    .max(MOST_STAGES)
    .check(({ value, issues }) => {
      const seen = new Set<number>();
      let most = 0;
      for (const [at, { percent, projects }] of value.entries()) {
        if (percent != null && percent <= most)
          issues.push({
            code: 'custom',
            input: percent,
            path: [at, 'percent'],
            message: 'must be more than in the stages before',
          });
        most = Math.max(most, percent ?? 0);
        if (projects?.some((id) => seen.has(id)))
          issues.push({
            code: 'custom',
            input: projects,
            path: [at, 'projects'],
            message: 'has projects of a stage before',
          });
        for (const id of projects ?? []) seen.add(id);
      }
    })
    .default([{ percent: 10 }, { percent: 100 }])
    .meta({
      description:
        'The stages in order. By default 10 percent of the projects and, after `rollouts.advance`, the others.',
    }),
  overwrite: z
    .array(z.enum(OVERWRITABLE))
    .max(OVERWRITABLE.length)
    .default([])
    .meta({ description: 'Fields that are overwritten even where a project has edited them.', example: [] }),
  max_failed: z.int32().min(0).default(0).meta({ description: 'It pauses when more projects than this have failed.' }),
  max_conflicts: z.int32().min(0).nullish().meta({
    description: 'It pauses when more projects than this have gained a conflict since the plan; never if not sent.',
    example: null,
  }),
  note: optionalText(2000).meta({ description: 'Why, for those who read the history.', example: null }),
});
RolloutPlan.register(requestExamples, { example: { release_id: 1, stages: [{ percent: 10 }, { percent: 100 }] } });
export type RolloutPlan = z.output<typeof RolloutPlan>;

export const Rollout = z
  .object({
    id,
    board_id: id.meta({ description: 'The master board.' }),
    board_title: z.string().meta({ description: 'The title of the master board.' }),
    release_id: id.meta({ description: 'The release.' }),
    release_number: count.meta({ description: 'The number of the release.', example: 2 }),
    state: storedChoice(ROLLOUT_STATES).meta({ description: 'What it is doing.', example: 'running' }),
    reason: storedChoice(HALT_REASONS).nullable().meta({ description: 'Why it was paused or aborted.', example: null }),
    stage: count.meta({ description: 'The number of its current stage, from 1.', example: 1 }),
    is_soaking: z.boolean().meta({ description: 'Whether that stage is finished, and the next one has not begun.' }),
    stages: z
      .array(
        z.object({
          percent: count.nullable().meta({ description: 'Up to how many percent of the projects.', example: 10 }),
          projects: z.array(id).nullable().meta({ description: 'Or these projects.', example: null }),
          soak_minutes: count.nullable().meta({ description: 'How long to wait after it.', example: 60 }),
        }),
      )
      .meta({ description: 'Its stages.' }),
    next_at: timestamp.nullable().meta({
      description: 'When it goes on; null if it waits for a call (`advance` or `resume`), or has ended.',
    }),
    overwrite: z.array(z.string()).meta({ description: 'Fields that it overwrites.', example: [] }),
    max_failed: count.meta({ description: 'It pauses above this number of failed projects.', example: 0 }),
    max_conflicts: count.nullable().meta({ description: 'It pauses above this number of new conflicts.' }),
    note: z.string().nullable().meta({ description: 'Why.' }),
    user_id: id.nullable().meta({ description: 'Who started it, or planned it.' }),
    user_name: z.string().nullable().meta({ description: 'The name of that user.' }),
    created_at: timestamp.meta({ description: 'When it was planned.' }),
    started_at: timestamp.nullable().meta({ description: 'When it was started.' }),
    finished_at: timestamp.nullable().meta({ description: 'When it ended.' }),
    projects: z.record(z.string(), count).meta({
      description: 'How many projects are in which state.',
      example: { planned: 90, done: 10 },
    }),
    rows_added: count.meta({ description: 'Rows that it adds, in all projects.', example: 120 }),
    fields_changed: count.meta({ description: 'Fields that it changes.', example: 40 }),
    fields_kept: count.meta({ description: 'Fields that stay, since a project edited them.', example: 3 }),
    fields_in_conflict: count.meta({
      description: 'Those of them that the template has changed, too.',
      example: 1,
    }),
    rows_pinned: count.meta({
      description: 'Rows left out, since they were rolled back in a project: `templates.unpin` lets them in again.',
      example: 0,
    }),
  })
  .meta({ id: 'Rollout', description: 'A release on its way to projects.' });

export const RolloutGet = z.object({ id: id.meta({ description: 'The rollout.' }) });
export const RolloutList = Page.extend({
  board_id: id.nullish().meta({ description: 'Only those of this board.' }),
  state: optionalChoice(ROLLOUT_STATES).meta({ description: 'Only those in this state.', example: null }),
});
RolloutList.register(requestExamples, { example: { board_id: 1, limit: 20 } });
export type RolloutList = z.output<typeof RolloutList>;
export const RolloutPage = pageOf('rollouts', Rollout);

export const RolloutTarget = z
  .object({
    project_id: id.meta({ description: 'The project.' }),
    project_name: z.string().meta({ description: 'Its name.' }),
    stage: count.meta({ description: 'The stage that it belongs to, from 1.', example: 1 }),
    state: storedChoice(TARGET_STATES).meta({ description: 'What happened to it.', example: 'done' }),
    error: z.string().nullable().meta({ description: 'Why it failed.' }),
    attempts: count.meta({ description: 'How often it was tried.', example: 1 }),
    is_held: z.boolean().meta({ description: 'Whether it held changes when this was planned.' }),
    is_replanned: z.boolean().meta({ description: 'Whether it changed between the plan and its turn.' }),
    rows_added: count.meta({ description: 'Added rows.', example: 1 }),
    fields_changed: count.meta({ description: 'Changed fields.', example: 2 }),
    fields_kept: count.meta({ description: 'Fields that stay, since the project edited them.', example: 1 }),
    fields_in_conflict: count.meta({ description: 'Those of them that the template has changed, too.', example: 1 }),
    rows_pinned: count.meta({ description: 'Rows left out, since they were rolled back there.', example: 0 }),
    fields_restored: count.meta({ description: 'Fields that the rollback restored.', example: 0 }),
    rows_removed: count.meta({ description: 'Rows that the rollback removed.', example: 0 }),
    left_by_rollback: count.meta({
      description: 'Fields and rows that the rollback left, since the project has changed them.',
      example: 0,
    }),
    updated_at: timestamp.meta({ description: 'When that was.' }),
  })
  .meta({ id: 'RolloutTarget', description: 'What a rollout does, or did, to one project.' });

export const RolloutReport = Page.extend({
  id: id.meta({ description: 'The rollout.' }),
  state: optionalChoice(TARGET_STATES).meta({ description: 'Only projects in this state.', example: null }),
});
RolloutReport.register(requestExamples, { example: { id: 1, limit: 20 } });
export type RolloutReport = z.output<typeof RolloutReport>;
export const RolloutTargetPage = pageOf('projects', RolloutTarget);

export const RolloutPreview = z.object({
  id: id.meta({ description: 'The rollout.' }),
  project_id: id.meta({ description: 'The project.' }),
});
RolloutPreview.register(requestExamples, { example: { id: 1, project_id: 1 } });
export type RolloutPreview = z.output<typeof RolloutPreview>;

export const PreviewLine = z
  .object({
    noun,
    master_id: id.meta({ description: 'The master board, group or card.' }),
    id: id.nullable().meta({ description: "The project's copy; null if it is to be added." }),
    title: z.string().meta({ description: 'The title in the release.' }),
    what: storedChoice(['added', 'changed', 'kept', 'conflict', 'pinned', 'held', 'restored', 'removed', 'left']).meta({
      description:
        '`kept` was edited by the project, `conflict` was also changed in the template, `pinned` was rolled back before, `held` is a board whose changes the project holds. After a rollback: `restored`, `removed` or `left`.',
    }),
    field: z.string().nullable().meta({ description: 'The field; null for a whole row.', example: 'title' }),
    before: z.unknown().meta({ description: 'The value in the project.', example: 'Hello' }),
    after: z.unknown().meta({ description: 'The value in the release.', example: 'Say hello' }),
  })
  .meta({ id: 'RolloutPreviewLine', description: 'What happens to a row or a field of a project.' });
