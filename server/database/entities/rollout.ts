import { defineEntity, p } from '@mikro-orm/core';
import { TEMPLATE_NOUNS } from '../../../shared/release.ts';
import { HALT_REASONS, ROLLOUT_STATES, type Stage, TARGET_STATES } from '../../../shared/rollout.ts';
import { Board } from './board.ts';
import { identity, refersTo, timestamp } from './columns.ts';
import { Project } from './platform.ts';
import { Release, TemplateRow } from './release.ts';
import { User } from './user.ts';

/** A release on its way to projects, in stages. */
export const Rollout = defineEntity({
  name: 'Rollout',
  tableName: 'rollouts',
  properties: {
    id: identity(),
    board_id: () => refersTo(Board, 'board_id'),
    release_id: () => refersTo(Release, 'release_id'),
    /** What new projects get after a rollback. */
    previous_release_id: () => refersTo(Release, 'previous_release_id').nullable(),
    state: p.enum([...ROLLOUT_STATES]),
    reason: p.enum([...HALT_REASONS]).nullable(),
    stages: p.json<Stage[]>(),
    stage: p.integer().default(1),
    /** The stage is finished, and the next one begins at `next_at`, or after a call if that is null. */
    is_soaking: p.boolean().default(false),
    overwrite: p.array().$type<string[]>().defaultRaw(`'{}'`),
    max_failed: p.integer().default(0),
    max_conflicts: p.integer().nullable(),
    note: p.text().nullable(),
    user_id: () => refersTo(User, 'user_id').nullable(),
    /** When the next step is due, unless it is paused; null if it waits for a call, or has ended. */
    next_at: timestamp().nullable(),
    progressed_at: timestamp().defaultRaw('now()'),
    created_at: timestamp().defaultRaw('now()'),
    started_at: timestamp().nullable(),
    finished_at: timestamp().nullable(),
  },
  indexes: [
    { properties: ['board_id', 'id'] },
    { properties: ['release_id'] },
    { properties: ['previous_release_id'], where: 'previous_release_id is not null' },
    { properties: ['created_at'] },
    { name: 'rollouts_due_index', properties: ['next_at'], where: 'next_at is not null' },
  ],
  uniques: [
    {
      name: 'rollouts_one_open',
      properties: ['board_id'],
      where: `state in ('running', 'paused', 'rolling_back')`,
    },
  ],
});

/** What a rollout does, or did, to one project. */
export const RolloutTarget = defineEntity({
  name: 'RolloutTarget',
  tableName: 'rollout_targets',
  properties: {
    rollout_id: () => refersTo(Rollout, 'rollout_id').primary().deleteRule('cascade'),
    project_id: () => refersTo(Project, 'project_id').primary().deleteRule('cascade'),
    stage: p.integer(),
    state: p.enum([...TARGET_STATES]),
    /** What the plan has found: a project with another one at its turn has changed. */
    digest: p.string().length(32).nullable(),
    is_replanned: p.boolean().default(false),
    /** The project held changes when this was planned. */
    is_held: p.boolean().default(false),
    error: p.text().nullable(),
    attempts: p.integer().default(0),
    rows_added: p.integer().default(0),
    fields_changed: p.integer().default(0),
    fields_kept: p.integer().default(0),
    fields_in_conflict: p.integer().default(0),
    rows_pinned: p.integer().default(0),
    fields_restored: p.integer().default(0),
    rows_removed: p.integer().default(0),
    left_by_rollback: p.integer().default(0),
    previous_release_id: p.integer().nullable(),
    updated_at: timestamp().defaultRaw('now()'),
  },
  indexes: [{ properties: ['rollout_id', 'state', 'stage', 'project_id'] }, { properties: ['project_id'] }],
});

/** A row that a rollout added to a project or changed there, for its report and its rollback. */
export const RolloutChange = defineEntity({
  name: 'RolloutChange',
  tableName: 'rollout_changes',
  properties: {
    rollout_id: p.integer().primary(),
    project_id: p.integer().primary(),
    noun: p.enum([...TEMPLATE_NOUNS]).primary(),
    copy_id: p.integer().primary(),
    row_id: () => refersTo(TemplateRow, 'row_id').deleteRule('cascade'),
    /** The changed fields as they were; null if the row was added. */
    before: p.json<Record<string, unknown>>().nullable(),
    /** What its fields were compared with before. */
    base: p.json<Record<string, unknown>>().nullable(),
    /** What the rollback did: the fields that it restored, or the row removed; null while it was not rolled back. */
    undone: p.array().$type<string[]>().nullable(),
  },
  indexes: [{ properties: ['row_id'] }],
});
