import { defineEntity, p } from '@mikro-orm/core';
import { Card } from './card.ts';
import { identity, LIVE, moment, refersTo, type SelfReference, softDeleted } from './columns.ts';
import { Project } from './platform.ts';
import { User } from './user.ts';

export const Comment = defineEntity({
  name: 'Comment',
  tableName: 'comments',
  properties: {
    id: identity(),
    project_id: () => refersTo(Project, 'project_id'),
    card_id: () => refersTo(Card, 'card_id'),
    user_id: () => refersTo(User, 'user_id'),
    parent_comment_id: (): SelfReference<'parent_comment_id'> => refersTo(Comment, 'parent_comment_id').nullable(),
    comment: p.text(),
    is_read: p.boolean().default(false),
    read_at: moment().nullable(),
    ...softDeleted(),
  },
  checks: [{ name: 'comments_read_check', expression: 'is_read = (read_at is not null)' }],
  indexes: [
    { properties: ['card_id', 'id'], where: LIVE },
    { properties: ['parent_comment_id'], where: 'parent_comment_id is not null' },
    { properties: ['user_id'] },
    { properties: ['project_id'] },
  ],
  // A reply refers to its parent and card in one foreign key, so both have the same card.
  uniques: [{ properties: ['id', 'card_id'] }],
});
