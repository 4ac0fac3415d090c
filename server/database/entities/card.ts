import { defineEntity, p } from '@mikro-orm/core';
import { PRIORITIES } from '../../../shared/priority.ts';
import { position, refersTo, refersWithinTenant, type SelfReference, softDeleted, timestamp } from './columns.ts';
import { DELETED, LIVE } from './deletion.ts';
import { Group } from './group.ts';
import { Tag } from './tag.ts';
import { templateParentCheck, tenantOrTemplate, tenantOrTemplateCheck } from './tenant.ts';
import { User } from './user.ts';

export const Card = defineEntity({
  name: 'Card',
  tableName: 'cards',
  properties: {
    ...tenantOrTemplate(),
    master_card_id: (): SelfReference<'master_card_id'> => refersTo(Card, 'master_card_id').nullable(),
    group_id: () => refersWithinTenant(Group, 'group_id').nullable(),
    /** The group of a master card; null in others. A trigger fills it. */
    template_group_id: () => refersWithinTenant(Group, 'template_group_id').nullable(),
    owner_id: () => refersWithinTenant(User, 'owner_id').nullable(),
    tag_id: () => refersWithinTenant(Tag, 'tag_id').nullable(),
    unique_identifier: p.string().length(100).defaultRaw('gen_random_uuid()'),
    evaluation_check: p.string().length(100).nullable(),
    tour_key: p.string().length(100).nullable(),
    title: p.string().length(255),
    short_description: p.text().nullable(),
    description: p.text().nullable(),
    status: p.string().length(50).default('open'),
    priority: p.enum([...PRIORITIES]).default('normal'),
    due_date: timestamp().nullable(),
    /** Whether midnight UTC is a time that was sent; otherwise it stands for the whole day. */
    is_due_at_midnight: p.boolean().default(false),
    snoozed_until: timestamp().nullable(),
    /** Its position in the group. */
    position: position(),
    /** Its position in the project. */
    sort_order: position(),
    /** The content that a copy came from (`template_rows`), without a foreign key, which would slow down a sync. */
    base_id: p.integer().nullable(),
    /** Fields that came from another content: those that the project had edited when a later one was brought. */
    base_values: p.json<Record<string, unknown>>().nullable(),
    created_by: () => refersTo(User, 'created_by').nullable(),
    ...softDeleted(),
  },
  checks: [
    tenantOrTemplateCheck('cards', 'master_card_id'),
    templateParentCheck('cards', 'template_group_id', 'group_id'),
    {
      name: 'cards_master_check',
      expression: 'not is_master or (group_id is not null and owner_id is null and tag_id is null)',
    },
  ],
  indexes: [
    // With the order in the project, for lists of a group: in an index of four integers, the fourth takes no space.
    { name: 'cards_group_index', properties: ['group_id', 'position', 'id', 'sort_order'], where: LIVE },
    { properties: ['project_id', 'sort_order', 'id'], where: LIVE },
    {
      name: 'cards_outside_groups_index',
      properties: ['project_id', 'position'],
      where: `group_id is null and ${LIVE}`,
    },
    { name: 'cards_tour_index', properties: ['project_id'], where: `tour_key is not null and ${LIVE}` },
    {
      name: 'cards_deleted_identifier_index',
      properties: ['unique_identifier'],
      where: 'is_master and deleted_at is not null',
    },
    // For the removal of groups.
    { properties: ['group_id'], where: 'group_id is not null' },
    { name: 'cards_deleted_index', properties: ['master_card_id', 'deleted_at'], where: DELETED },
    { properties: ['template_group_id'], where: 'template_group_id is not null' },
    {
      name: 'cards_owner_index',
      properties: ['owner_id', 'project_id', 'sort_order', 'id'],
      where: 'owner_id is not null',
    },
    { name: 'cards_tag_index', properties: ['tag_id', 'sort_order', 'id'], where: 'tag_id is not null' },
  ],
  uniques: [
    { name: 'cards_one_copy', properties: ['master_card_id', 'project_id'] },
    { properties: ['id', 'project_id'] },
    // Also finds the copies in a project, for a search.
    {
      name: 'cards_copy_identifier',
      properties: ['project_id', 'unique_identifier'],
      where: `master_card_id is not null and ${LIVE}`,
    },
    // Partial, so that the many copies of a sync are not in it.
    { name: 'cards_master_identifier', properties: ['unique_identifier'], where: `is_master and ${LIVE}` },
  ],
});

/** A tour card that a user does not want to see again. */
export const TourDismissal = defineEntity({
  name: 'TourDismissal',
  tableName: 'tour_dismissals',
  properties: {
    user_id: () => refersTo(User, 'user_id').primary().deleteRule('cascade'),
    card_id: () => refersTo(Card, 'card_id').primary().deleteRule('cascade'),
    /** The step that was dismissed; null if an older version stored it. */
    tour_key: p.string().length(100).nullable(),
    dismissed_at: timestamp().defaultRaw('now()'),
  },
  indexes: [{ properties: ['card_id'] }],
});
