import { defineEntity, p } from '@mikro-orm/core';
import { Card } from './card.ts';
import { identity, refersTo, refersWithinTenant, type SelfReference, softDeleted, timestamp } from './columns.ts';
import { DELETED, LIVE } from './deletion.ts';
import { Project } from './platform.ts';
import { User } from './user.ts';

export const Comment = defineEntity({
  name: 'Comment',
  tableName: 'comments',
  properties: {
    id: identity(),
    project_id: () => refersWithinTenant(Project, 'project_id'),
    card_id: () => refersWithinTenant(Card, 'card_id'),
    user_id: () => refersTo(User, 'user_id'),
    parent_comment_id: (): SelfReference<'parent_comment_id'> =>
      refersWithinTenant(Comment, 'parent_comment_id').nullable(),
    /** The first comment of its thread, and how many comments are above it: null and 0 for the first one itself. */
    root_comment_id: (): SelfReference<'root_comment_id'> => refersWithinTenant(Comment, 'root_comment_id').nullable(),
    depth: p.integer().default(0),
    comment: p.text(),
    is_read: p.boolean().default(false),
    read_at: timestamp().nullable(),
    ...softDeleted(),
  },
  checks: [
    { name: 'comments_read_check', expression: 'is_read = (read_at is not null)' },
    {
      name: 'comments_thread_check',
      expression:
        '(root_comment_id is null) = (parent_comment_id is null) and (depth = 0) = (parent_comment_id is null)',
    },
  ],
  indexes: [
    { properties: ['card_id', 'id'], where: LIVE },
    { properties: ['parent_comment_id'], where: 'parent_comment_id is not null' },
    { properties: ['root_comment_id', 'id'], where: `root_comment_id is not null and ${LIVE}` },
    // For the removal of cards and of comments that have replies.
    { properties: ['card_id'] },
    { properties: ['root_comment_id'], where: 'root_comment_id is not null' },
    { name: 'comments_deleted_index', properties: ['deleted_at'], where: DELETED },
    { properties: ['user_id'] },
    { properties: ['project_id'] },
  ],
  // A reply refers to its parent and card in one foreign key, so both have the same card.
  uniques: [{ properties: ['id', 'card_id'] }],
});
