import { z } from 'zod';
import { Board, BoardCreate, BoardReorder, BoardUpdate } from './board.ts';
import { PRIORITIES } from './card.ts';
import {
  flag,
  HTML,
  IS_ACTIVE,
  id,
  optionalChoice,
  optionalText,
  PLAIN_TEXT,
  placements,
  text,
  timestamp,
} from './fields.ts';
import { Group, look } from './group.ts';
import { Page, pageOf } from './paging.ts';

/** Master boards, groups and cards: templates that are copied to projects. */

const MASTER_STATUSES = ['open', 'in_progress', 'closed', 'to_check', 'blocked'] as const;

export const MasterBoard = Board.extend({
  groups_count: z.int().meta({ description: 'Number of groups.', example: 2 }),
  cards_count: z.int().meta({ description: 'Number of cards in its groups.', example: 5 }),
}).meta({ id: 'MasterBoard', description: 'A master board with its counts.' });

const tool_key = optionalText(100).meta({
  description: 'Only projects with this tool get a copy; without it, all projects.',
});
export const MasterBoardCreate = BoardCreate.extend({ tool_key });
export type MasterBoardCreate = z.output<typeof MasterBoardCreate>;

export const MasterBoardUpdate = BoardUpdate.extend({ tool_key });
export type MasterBoardUpdate = z.output<typeof MasterBoardUpdate>;

export const MasterBoardReorder = BoardReorder;

export const MasterBoardGet = z.object({ id: id.meta({ description: 'The master board.' }) });
export const MasterBoardDelete = z.object({ id });
export const MasterBoardSync = z.object({ board_id: id.meta({ description: 'The master board.' }) });
export type MasterBoardSync = z.output<typeof MasterBoardSync>;

export const SyncResult = z.object({
  synced_count: z.int().meta({ description: 'Number of active projects with access to the board.', example: 2 }),
  skipped_no_access: z.int().meta({ description: 'Number of active projects without access.', example: 1 }),
});

export const MasterGroup = Group.extend({
  cards_count: z.int().meta({ description: 'Number of cards.', example: 3 }),
}).meta({ id: 'MasterGroup', description: 'A master group with the number of its cards.' });

export const MasterGroupList = z.object({ board_id: id.meta({ description: 'The master board.' }) });
export type MasterGroupList = z.output<typeof MasterGroupList>;

export const MasterGroupCreate = z.object({
  board_id: id.meta({ description: 'Its master board.' }),
  title: text(255).meta({ description: `Its title; ${PLAIN_TEXT}.`, example: 'Get started' }),
  description: optionalText().meta({ description: `Its description; ${PLAIN_TEXT}.` }),
});
export type MasterGroupCreate = z.output<typeof MasterGroupCreate>;

/** Absent fields are not changed; null clears the description, and does not change the title. */
export const MasterGroupUpdate = z.object({
  id,
  title: optionalText(255).meta({ description: `Its title; ${PLAIN_TEXT}.`, example: 'Get started' }),
  description: optionalText().meta({ description: `Its description; ${PLAIN_TEXT}.` }),
});
export type MasterGroupUpdate = z.output<typeof MasterGroupUpdate>;

/**
 * What MasterGroupUpdate, whose fields are documented, does not take. Absent fields are not changed; null clears type, color
 * and icon, and does not change the others.
 */
export const MasterGroupConfigure = z.object({
  id: id.meta({ description: 'The master group.' }),
  type: look.type,
  color: look.color,
  icon: look.icon,
  is_collapsed: flag.meta({ description: 'Whether new copies are shown collapsed.' }),
  is_active: flag.meta({ description: `${IS_ACTIVE}.` }),
});
export type MasterGroupConfigure = z.output<typeof MasterGroupConfigure>;

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

export const MasterGroupDelete = z.object({ id: id.meta({ description: 'The master group.', example: 2 }) });

const cardContent = {
  description: optionalText().meta({
    description: `Its description; ${HTML}.`,
    example: '<p>Look around.</p>',
  }),
  unique_identifier: optionalText(100).meta({
    description: 'A stable identifier, unique among master cards; generated if not sent. Copies have the same one.',
  }),
  evaluation_check: optionalText(100).meta({ description: 'The check that decides whether it is done.' }),
  tour_key: optionalText(100).meta({ description: 'The key of its tour, if it is a tour card.' }),
  short_description: optionalText().meta({ description: `A short description; ${PLAIN_TEXT}.` }),
  status: optionalChoice(MASTER_STATUSES).meta({
    description: 'The initial status of copies; `open` if not sent.',
  }),
  is_active: flag.meta({ description: 'Whether it is active; true if not sent.', example: true }),
  priority: optionalChoice(PRIORITIES).meta({
    description: 'The initial priority of copies; `normal` if not sent.',
  }),
};

export const MasterCardCreate = z.object({
  group_id: id.meta({ description: 'Its master group, where it becomes the last card.' }),
  title: text(255).meta({ description: `Its title; ${PLAIN_TEXT}.`, example: 'Look around' }),
  ...cardContent,
  push_to_projects: flag.meta({ description: 'Whether to push it to all projects with access.' }),
});
export type MasterCardCreate = z.output<typeof MasterCardCreate>;

/** Absent fields are not changed; null clears nullable texts, and does not change the others. */
export const MasterCardUpdate = z.object({
  id,
  title: optionalText(255).meta({ description: `Its title; ${PLAIN_TEXT}.` }),
  ...cardContent,
});
export type MasterCardUpdate = z.output<typeof MasterCardUpdate>;

export const MasterCardMove = z.object({
  group_id: id.meta({ description: 'The new master group of the cards.' }),
  cards: placements.meta({
    description: 'Master cards of groups of the same board, and their new positions.',
  }),
});
export type MasterCardMove = z.output<typeof MasterCardMove>;

export const MasterCardPush = z.object({ card_id: id.meta({ description: 'The master card.' }) });
export type MasterCardPush = z.output<typeof MasterCardPush>;

export const MasterCardDelete = z.object({
  id,
  delete_from_projects: z.boolean().optional().meta({ description: 'Whether to delete the copies in projects, too.' }),
});
export type MasterCardDelete = z.output<typeof MasterCardDelete>;

export const projectsUpdated = z.int().meta({ description: 'Number of changed projects.', example: 2 });

export const OUTCOMES = ['added', 'updated', 'unchanged', 'skipped'] as const;
export const SKIP_REASONS = ['no_access', 'deleted_by_project'] as const;

/** What a sync or push did, or would do, to one project. */
export const ProjectOutcome = z.object({
  project_id: id,
  project_name: z.string().meta({ description: 'The name of the project.' }),
  outcome: z.enum(OUTCOMES).meta({ description: 'What happened to the project.' }),
  reason: z.enum(SKIP_REASONS).nullable().meta({ description: 'Why it was skipped.' }),
  boards_added: z.int().meta({ description: 'Number of added boards.' }),
  groups_added: z.int().meta({ description: 'Number of added groups.' }),
  cards_added: z.int().meta({ description: 'Number of added cards.' }),
  cards_updated: z.int().meta({ description: 'Number of updated cards.' }),
});

export const SyncPreview = Page.extend({ board_id: id.meta({ description: 'The master board.' }) });
export type SyncPreview = z.output<typeof SyncPreview>;
export const PushPreview = Page.extend({ card_id: id.meta({ description: 'The master card.' }) });
export type PushPreview = z.output<typeof PushPreview>;

export const OutcomePage = pageOf('projects', ProjectOutcome);

export const RUN_KINDS = ['sync', 'push'] as const;

/** A sync or push: who ran it, when, and its result. */
export const TemplateRun = z.object({
  id,
  kind: z.enum(RUN_KINDS).meta({ description: 'The sync of a board or the push of a card.' }),
  board_id: id.meta({ description: 'The master board.' }),
  board_title: z.string().meta({ description: 'The title of the master board.' }),
  card_id: id.nullable().meta({ description: 'The master card that was pushed.' }),
  card_title: z.string().nullable().meta({ description: 'The title of that card.' }),
  user_id: id.nullable().meta({ description: 'The superadmin who ran it.' }),
  user_name: z.string().nullable().meta({ description: 'The name of that superadmin.' }),
  started_at: timestamp.meta({ description: 'When it started.' }),
  finished_at: timestamp
    .nullable()
    .meta({ description: 'When it finished; null while it runs, or if it was interrupted.' }),
  interrupted_at: timestamp.nullable().meta({
    description:
      'When it made its last progress before it failed or its node stopped; null while it runs, or if it finished.',
  }),
  projects_with_access: z.int().meta({ description: 'Number of projects with access.' }),
  projects_skipped: z.int().meta({ description: 'Number of projects without access.' }),
  projects_changed: z.int().meta({ description: 'Number of changed projects.' }),
  cards_added: z.int().meta({ description: 'Total number of added cards.' }),
  cards_updated: z.int().meta({ description: 'Total number of updated cards.' }),
});

export const TemplateRunList = Page.extend({
  board_id: id.nullish().meta({ description: 'Only those of this board.' }),
});
export type TemplateRunList = z.output<typeof TemplateRunList>;
export const TemplateRunPage = pageOf('runs', TemplateRun);

export const TemplateRunReport = Page.extend({
  id,
  outcome: optionalChoice(OUTCOMES).meta({ description: 'Only the projects with this outcome.' }),
});
export type TemplateRunReport = z.output<typeof TemplateRunReport>;
