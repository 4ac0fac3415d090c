import { defineEntity, p } from '@mikro-orm/core';
import { identity, timestamp } from './columns.ts';

/**
 * A deletion that was not undone, by the row that was deleted. What it took along has the same `deletion_id`. Like events without
 * foreign keys.
 */
export const Deletion = defineEntity({
  name: 'Deletion',
  tableName: 'deletions',
  properties: {
    id: identity(),
    /** Null for a template. */
    project_id: p.integer().nullable(),
    /** What it is, such as `board`. */
    noun: p.string().length(50),
    subject_id: p.integer(),
    /** How many rows it took along. */
    count: p.integer().default(0),
    /** Who did it. */
    user_id: p.integer().nullable(),
    /** The deletion of a master card that also deleted this copy. */
    cause_id: p.integer().nullable(),
    /** The cards that a tag was taken from. */
    card_ids: p.array().columnType('int[]').$type<number[]>().nullable(),
    deleted_at: timestamp().defaultRaw('now()'),
  },
  indexes: [{ properties: ['project_id', 'id'] }, { properties: ['deleted_at'] }],
});
