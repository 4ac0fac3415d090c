import { z } from 'zod';
import { Board, BoardCreate, BoardReorder, BoardUpdate } from './board.ts';
import { Card } from './card.ts';
import { fieldsOfUpdate } from './changes.ts';
import {
  count,
  flag,
  HTML,
  IS_ACTIVE,
  id,
  ifVersion,
  optionalChoice,
  optionalText,
  PLAIN_TEXT,
  PLAIN_TITLE,
  placements,
  text,
} from './fields.ts';
import { Group, look } from './group.ts';
import { PRIORITIES } from './priority.ts';
import { requestExamples } from './requestExample.ts';

/** Master boards, groups and cards: templates that are copied to projects. */

const MASTER_STATUSES = ['open', 'in_progress', 'closed', 'to_check', 'blocked'] as const;

export const MasterBoard = Board.extend({
  groups_count: count.meta({ description: 'Number of groups.', example: 2 }),
  cards_count: count.meta({ description: 'Number of cards in its groups.', example: 5 }),
}).meta({ id: 'MasterBoard', description: 'A master board with its counts.' });

const tool_key = optionalText(100).meta({
  description: 'Only projects with this tool get a copy; a board without a tool goes to all projects.',
});
export const MasterBoardCreate = BoardCreate.extend({ tool_key });
MasterBoardCreate.register(requestExamples, { example: { title: 'Search engines', tool_key: 'seo' } });
export type MasterBoardCreate = z.output<typeof MasterBoardCreate>;

export const MasterBoardUpdate = BoardUpdate.extend(fieldsOfUpdate({ tool_key }, Board));
MasterBoardUpdate.register(requestExamples, { example: { id: 1, description: 'First steps.' } });
export type MasterBoardUpdate = z.output<typeof MasterBoardUpdate>;

export const MasterBoardReorder = BoardReorder.clone().register(requestExamples, {
  example: { boards: [{ id: 1, position: 1 }] },
});

export const MasterBoardGet = z.object({ id: id.meta({ description: 'The master board.' }) });
export const MasterBoardDelete = z.object({ id, if_version: ifVersion });
export type MasterBoardDelete = z.output<typeof MasterBoardDelete>;
export const MasterBoardSync = z.object({ board_id: id.meta({ description: 'The master board.' }) });
export type MasterBoardSync = z.output<typeof MasterBoardSync>;

export const MasterBoardPush = MasterBoardSync;
export type MasterBoardPush = z.output<typeof MasterBoardPush>;

export const SyncResult = z.object({
  synced_count: count.meta({ description: 'Number of active projects with access to the board.', example: 2 }),
  skipped_no_access: count.meta({ description: 'Number of active projects without access.', example: 1 }),
});

export const MasterGroup = Group.extend({
  cards_count: count.meta({ description: 'Number of cards.', example: 3 }),
}).meta({ id: 'MasterGroup', description: 'A master group with the number of its cards.' });

export const MasterGroupList = z.object({ board_id: id.meta({ description: 'The master board.' }) });
export type MasterGroupList = z.output<typeof MasterGroupList>;

export const MasterGroupCreate = z.object({
  board_id: id.meta({ description: 'Its master board.' }),
  title: text(255).meta({ description: PLAIN_TITLE, example: 'Get started' }),
  description: optionalText().meta({ description: `Its description; ${PLAIN_TEXT}.`, example: 'The first steps.' }),
});
export type MasterGroupCreate = z.output<typeof MasterGroupCreate>;

const groupChanges = {
  title: optionalText(255).meta({ description: PLAIN_TITLE, example: 'Get started' }),
  description: optionalText().meta({ description: `Its description; ${PLAIN_TEXT}.`, example: 'The first steps.' }),
};
export const MasterGroupUpdate = z.object({
  id,
  ...fieldsOfUpdate(groupChanges, Group),
  if_version: ifVersion,
});
export type MasterGroupUpdate = z.output<typeof MasterGroupUpdate>;

const groupSettings = {
  type: look.type,
  color: look.color,
  icon: look.icon,
  is_collapsed: flag.meta({ description: 'Whether new copies are shown collapsed.' }),
  is_active: flag.meta({ description: `${IS_ACTIVE}.` }),
};
/** Beyond the specified fields of MasterGroupUpdate. */
export const MasterGroupConfigure = z.object({
  id: id.meta({ description: 'The master group.' }),
  ...fieldsOfUpdate(groupSettings, Group),
  if_version: ifVersion,
});
MasterGroupConfigure.register(requestExamples, { example: { id: 1, color: '#0b6e99', is_collapsed: true } });
export type MasterGroupConfigure = z.output<typeof MasterGroupConfigure>;

export const MasterGroupPush = z.object({ group_id: id.meta({ description: 'The master group.' }) });
export type MasterGroupPush = z.output<typeof MasterGroupPush>;

export const MasterGroupReorder = z.object({
  board_id: id.meta({ description: 'The master board of the groups.' }),
  groups: placements.meta({
    description: 'The groups and their new positions.',
    example: [
      { id: 1, position: 2 },
      { id: 2, position: 1 },
    ],
  }),
});
export type MasterGroupReorder = z.output<typeof MasterGroupReorder>;

export const MasterGroupDelete = z.object({
  id: id.meta({ description: 'The master group.', example: 2 }),
  if_version: ifVersion,
});
export type MasterGroupDelete = z.output<typeof MasterGroupDelete>;

const cardContent = {
  description: optionalText().meta({
    description: `Its description; ${HTML}.`,
    example: '<p>Look around.</p>',
  }),
  unique_identifier: optionalText(100).meta({
    description: 'A stable identifier, unique among master cards. Copies have the same one.',
  }),
  evaluation_check: optionalText(100).meta({
    description: 'The check that decides whether it is done.',
    example: 'site_published',
  }),
  tour_key: optionalText(100).meta({ description: 'The key of its tour, if it is a tour card.', example: 'welcome' }),
  short_description: optionalText().meta({
    description: `A short description; ${PLAIN_TEXT}.`,
    example: 'Your first visit.',
  }),
  status: optionalChoice(MASTER_STATUSES).meta({ description: 'The initial status of copies.' }),
  is_active: flag.meta({ description: `${IS_ACTIVE}.`, example: true }),
  priority: optionalChoice(PRIORITIES).meta({ description: 'The initial priority of copies.' }),
};

export const MasterCardCreate = z.object({
  group_id: id.meta({ description: 'Its master group, where it becomes the last card.' }),
  title: text(255).meta({ description: PLAIN_TITLE, example: 'Look around' }),
  ...cardContent,
  unique_identifier: cardContent.unique_identifier.meta({
    description: 'A stable identifier, unique among master cards; generated if not sent. Copies have the same one.',
    example: null,
  }),
  status: cardContent.status.meta({ description: 'The initial status of copies; `open` if not sent.' }),
  is_active: cardContent.is_active.meta({ description: `${IS_ACTIVE}; true if not sent.`, example: true }),
  priority: cardContent.priority.meta({ description: 'The initial priority of copies; `normal` if not sent.' }),
  push_to_projects: flag.meta({ description: 'Whether to push it to all projects with access; false if not sent.' }),
});
export type MasterCardCreate = z.output<typeof MasterCardCreate>;

const cardChanges = {
  title: optionalText(255).meta({ description: PLAIN_TITLE }),
  ...cardContent,
};
export const MasterCardUpdate = z.object({
  id,
  ...fieldsOfUpdate(cardChanges, Card),
  if_version: ifVersion,
});
MasterCardUpdate.register(requestExamples, { example: { id: 1, title: 'Look around you' } });
export type MasterCardUpdate = z.output<typeof MasterCardUpdate>;

export const MasterCardMove = z.object({
  group_id: id.meta({ description: 'The new master group of the cards.' }),
  cards: placements.meta({
    description: 'Master cards of groups of the same board, and their new positions.',
  }),
});
MasterCardMove.register(requestExamples, {
  example: {
    group_id: 1,
    cards: [
      { id: 2, position: 1 },
      { id: 1, position: 2 },
    ],
  },
});
export type MasterCardMove = z.output<typeof MasterCardMove>;

export const MasterCardPush = z.object({ card_id: id.meta({ description: 'The master card.' }) });
export type MasterCardPush = z.output<typeof MasterCardPush>;

export const MasterCardDelete = z.object({
  id,
  delete_from_projects: z
    .boolean()
    .optional()
    .meta({ description: 'Whether to delete the copies in projects, too; false if not sent.' }),
  if_version: ifVersion,
});
export type MasterCardDelete = z.output<typeof MasterCardDelete>;

export const projectsUpdated = count.meta({ description: 'Number of changed projects.', example: 2 });
