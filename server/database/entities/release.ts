import { defineEntity, p } from '@mikro-orm/core';
import { Board } from './board.ts';
import { Card } from './card.ts';
import { identity, position, refersTo, timestamp } from './columns.ts';
import { Group } from './group.ts';
import { Project } from './platform.ts';
import { User } from './user.ts';

/** What a master board, group or card was in some release; stored once, however many releases have it. */
export const TemplateRow = defineEntity({
  name: 'TemplateRow',
  tableName: 'template_rows',
  properties: {
    id: identity(),
    board_id: () => refersTo(Board, 'board_id').nullable().deleteRule('cascade'),
    group_id: () => refersTo(Group, 'group_id').nullable().deleteRule('cascade'),
    card_id: () => refersTo(Card, 'card_id').nullable().deleteRule('cascade'),
    digest: p.string().length(32),
    content: p.json<Record<string, unknown>>(),
  },
  checks: [{ name: 'template_rows_noun_check', expression: 'num_nonnulls(board_id, group_id, card_id) = 1' }],
  uniques: [
    { properties: ['board_id', 'digest'] },
    { properties: ['group_id', 'digest'] },
    { properties: ['card_id', 'digest'] },
  ],
});

/** A published state of a master board. */
export const Release = defineEntity({
  name: 'Release',
  tableName: 'releases',
  properties: {
    id: identity(),
    board_id: () => refersTo(Board, 'board_id').deleteRule('cascade'),
    number: p.integer(),
    note: p.text().nullable(),
    user_id: () => refersTo(User, 'user_id').nullable(),
    created_at: timestamp().defaultRaw('now()'),
  },
  uniques: [{ properties: ['board_id', 'number'] }],
  indexes: [{ properties: ['created_at'] }],
});

export const ReleaseRow = defineEntity({
  name: 'ReleaseRow',
  tableName: 'release_rows',
  properties: {
    release_id: () => refersTo(Release, 'release_id').primary().deleteRule('cascade'),
    row_id: () => refersTo(TemplateRow, 'row_id').primary().deleteRule('cascade'),
    /** The master board of a group, the master group of a card. */
    parent_id: p.integer().nullable(),
    position: position(),
  },
  indexes: [{ properties: ['row_id'] }],
});

/** What a project has of a master board. */
export const ProjectTemplate = defineEntity({
  name: 'ProjectTemplate',
  tableName: 'project_templates',
  properties: {
    project_id: () => refersTo(Project, 'project_id').primary().deleteRule('cascade'),
    board_id: () => refersTo(Board, 'board_id').primary().deleteRule('cascade'),
    /** Null if it is not known, as after an upgrade. */
    release_id: () => refersTo(Release, 'release_id').nullable(),
    hold_until: timestamp().nullable(),
    held_by: () => refersTo(User, 'held_by').nullable(),
    hold_note: p.text().nullable(),
    /** The contents that were rolled back here: nothing brings them again. */
    pinned: p.array().columnType('int[]').$type<number[]>().defaultRaw(`'{}'`),
  },
  indexes: [
    { properties: ['board_id', 'project_id'] },
    { properties: ['release_id'], where: 'release_id is not null' },
  ],
});
