import { defineEntity, p } from '@mikro-orm/core';
import { OUTCOMES, RUN_KINDS, SKIP_REASONS } from '../../../shared/templateRun.ts';
import { Board } from './board.ts';
import { Card } from './card.ts';
import { identity, refersTo, timestamp } from './columns.ts';
import { Group } from './group.ts';
import { Project } from './platform.ts';
import { User } from './user.ts';

/** A sync or push. It is running while it is neither finished nor interrupted and makes progress. */
export const TemplateRun = defineEntity({
  name: 'TemplateRun',
  tableName: 'template_runs',
  properties: {
    id: identity(),
    kind: p.enum([...RUN_KINDS]),
    board_id: () => refersTo(Board, 'board_id'),
    group_id: () => refersTo(Group, 'group_id').nullable(),
    card_id: () => refersTo(Card, 'card_id').nullable(),
    user_id: () => refersTo(User, 'user_id').nullable(),
    /** What it published or found published. */
    release_id: p.integer().nullable(),
    /** The open rollout of the board that it ended. */
    aborted_rollout_id: p.integer().nullable(),
    started_at: timestamp().defaultRaw('now()'),
    progressed_at: timestamp().defaultRaw('now()'),
    finished_at: timestamp().nullable(),
    interrupted_at: timestamp().nullable(),
    projects_total: p.integer().default(0),
    projects_done: p.integer().default(0),
    projects_with_access: p.integer().default(0),
    projects_skipped: p.integer().default(0),
    projects_changed: p.integer().default(0),
    cards_added: p.integer().default(0),
    boards_updated: p.integer().default(0),
    groups_updated: p.integer().default(0),
    cards_updated: p.integer().default(0),
  },
  checks: [
    { name: 'template_runs_kind_card_check', expression: `(kind = 'push') = (card_id is not null)` },
    { name: 'template_runs_kind_group_check', expression: `(kind = 'push_group') = (group_id is not null)` },
    { name: 'template_runs_end_check', expression: 'finished_at is null or interrupted_at is null' },
  ],
  indexes: [
    { properties: ['board_id', 'id'] },
    { properties: ['started_at'] },
    { properties: ['group_id'], where: 'group_id is not null' },
    { properties: ['card_id'], where: 'card_id is not null' },
  ],
});

/** What a run did to one project. */
export const TemplateOutcome = defineEntity({
  name: 'TemplateOutcome',
  tableName: 'template_outcomes',
  properties: {
    run_id: () => refersTo(TemplateRun, 'run_id').primary().deleteRule('cascade'),
    project_id: () => refersTo(Project, 'project_id').primary().deleteRule('cascade'),
    outcome: p.enum([...OUTCOMES]),
    reason: p.enum([...SKIP_REASONS]).nullable(),
    boards_added: p.integer().default(0),
    groups_added: p.integer().default(0),
    cards_added: p.integer().default(0),
    boards_updated: p.integer().default(0),
    groups_updated: p.integer().default(0),
    cards_updated: p.integer().default(0),
  },
  checks: [{ name: 'template_outcomes_skip_check', expression: `(outcome = 'skipped') = (reason is not null)` }],
  indexes: [{ properties: ['project_id'] }],
});
