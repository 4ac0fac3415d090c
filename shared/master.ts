import { z } from 'zod';
import { Board } from './board.ts';
import { PRIORITIES } from './card.ts';
import {
  flag,
  HTML,
  id,
  optionalChoice,
  optionalText,
  PLAIN_TEXT,
  placements,
  position,
  text,
  timestamp,
} from './fields.ts';
import { nextCursor, Page } from './paging.ts';

/** Master boards, groups and cards: templates that are brought to projects. */

const MASTER_STATUSES = ['open', 'in_progress', 'closed', 'to_check', 'blocked'] as const;

export const MasterBoard = Board.extend({
  groups_count: z.int().meta({ description: 'How many groups it has.', example: 2 }),
  cards_count: z.int().meta({ description: 'How many cards lie in its groups.', example: 5 }),
}).meta({ id: 'MasterBoard', description: 'A master board, with how much is on it.' });

const boardContent = {
  description: optionalText().meta({ description: `Its description; ${PLAIN_TEXT}.` }),
  tool_key: optionalText(100).meta({ description: 'Only projects with this tool get it; without one, all do.' }),
  position: position.nullish().meta({ description: 'Its place; behind the others when not sent.' }),
};

export const MasterBoardCreate = z.object({
  title: text(255).meta({ description: `Its title; ${PLAIN_TEXT}.` }),
  ...boardContent,
});
export type MasterBoardCreate = z.output<typeof MasterBoardCreate>;

/** What is absent stays; null clears description and tool_key, and leaves the rest. */
export const MasterBoardUpdate = z.object({
  id,
  title: optionalText(255).meta({ description: `Its title; ${PLAIN_TEXT}.` }),
  ...boardContent,
});
export type MasterBoardUpdate = z.output<typeof MasterBoardUpdate>;

export const MasterBoardReorder = z.object({
  boards: placements.meta({ description: 'The boards, and their places.' }),
});
export type MasterBoardReorder = z.output<typeof MasterBoardReorder>;

export const MasterBoardDelete = z.object({ id });
export const MasterBoardSync = z.object({ board_id: id.meta({ description: 'The master board.' }) });
export type MasterBoardSync = z.output<typeof MasterBoardSync>;

export const SyncResult = z.object({
  synced_count: z.int().meta({ description: 'How many active projects have access to the board.', example: 2 }),
  skipped_no_access: z.int().meta({ description: 'How many active projects have none.', example: 1 }),
});

export const MasterGroupCreate = z.object({
  board_id: id.meta({ description: 'The master board to put it on.' }),
  title: text(255).meta({ description: `Its title; ${PLAIN_TEXT}.`, example: 'Get started' }),
  description: optionalText().meta({ description: `Its description; ${PLAIN_TEXT}.` }),
});
export type MasterGroupCreate = z.output<typeof MasterGroupCreate>;

/** What is absent stays; null clears the description, and leaves the title. */
export const MasterGroupUpdate = z.object({
  id,
  title: optionalText(255).meta({ description: `Its title; ${PLAIN_TEXT}.`, example: 'Get started' }),
  description: optionalText().meta({ description: `Its description; ${PLAIN_TEXT}.` }),
});
export type MasterGroupUpdate = z.output<typeof MasterGroupUpdate>;

export const MasterGroupReorder = z.object({
  board_id: id.meta({ description: 'The master board that the groups are on.' }),
  groups: placements.meta({
    description: 'The groups, and their new places.',
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
    description: 'A name for it that stays the same; made when none is given.',
  }),
  evaluation_check: optionalText(100).meta({ description: 'The check that decides whether it is done.' }),
  tour_key: optionalText(100).meta({ description: 'The tour that it is a step of.' }),
  short_description: optionalText().meta({ description: `A short description; ${PLAIN_TEXT}.` }),
  status: optionalChoice(MASTER_STATUSES).meta({
    description: 'The status that copies start with; `open` when not sent.',
  }),
  is_active: flag.meta({ description: 'Whether it is in use; true when not sent.', example: true }),
  priority: optionalChoice(PRIORITIES).meta({
    description: 'The priority that copies start with; `normal` when not sent.',
  }),
};

export const MasterCardCreate = z.object({
  group_id: id.meta({ description: 'The master group to put it in, at the end.' }),
  title: text(255).meta({ description: `Its title; ${PLAIN_TEXT}.`, example: 'Look around' }),
  ...cardContent,
  push_to_projects: flag.meta({ description: 'Whether to bring it to all projects at once.' }),
});
export type MasterCardCreate = z.output<typeof MasterCardCreate>;

/** What is absent stays; null clears the texts that can be empty, and leaves the rest. */
export const MasterCardUpdate = z.object({
  id,
  title: optionalText(255).meta({ description: `Its title; ${PLAIN_TEXT}.` }),
  ...cardContent,
});
export type MasterCardUpdate = z.output<typeof MasterCardUpdate>;

export const MasterCardMove = z.object({
  group_id: id.meta({ description: 'The master group to put the cards in.' }),
  cards: placements.meta({
    description: 'Master cards of that group or of others of its board, and their places in it.',
  }),
});
export type MasterCardMove = z.output<typeof MasterCardMove>;

export const MasterCardPush = z.object({ card_id: id.meta({ description: 'The master card.' }) });
export type MasterCardPush = z.output<typeof MasterCardPush>;

export const MasterCardDelete = z.object({
  id,
  delete_from_projects: z.boolean().optional().meta({ description: 'Whether to delete the copies in projects too.' }),
});
export type MasterCardDelete = z.output<typeof MasterCardDelete>;

export const projectsUpdated = z.int().meta({ description: 'How many projects changed.', example: 2 });

export const OUTCOMES = ['added', 'updated', 'unchanged', 'skipped'] as const;
export const SKIP_REASONS = ['no_access', 'deleted_by_project'] as const;

/** What a sync or push did, or would do, to one project. */
export const ProjectOutcome = z.object({
  project_id: id,
  project_name: z.string().meta({ description: 'The name of the project.' }),
  outcome: z.enum(OUTCOMES).meta({ description: 'What happened to the project.' }),
  reason: z.enum(SKIP_REASONS).nullable().meta({ description: 'Why it was skipped.' }),
  boards_added: z.int().meta({ description: 'How many boards it got.' }),
  groups_added: z.int().meta({ description: 'How many groups it got.' }),
  cards_added: z.int().meta({ description: 'How many cards it got.' }),
  cards_updated: z.int().meta({ description: 'How many of its cards were brought up to date.' }),
});

export const SyncPreview = Page.extend({ board_id: id.meta({ description: 'The master board.' }) });
export type SyncPreview = z.output<typeof SyncPreview>;
export const PushPreview = Page.extend({ card_id: id.meta({ description: 'The master card.' }) });
export type PushPreview = z.output<typeof PushPreview>;

export const OutcomePage = z.object({ projects: z.array(ProjectOutcome), next_cursor: nextCursor });

export const RUN_KINDS = ['sync', 'push'] as const;

/** One sync or push: who brought what to the projects, when, and how it ended. */
export const TemplateRun = z.object({
  id,
  kind: z.enum(RUN_KINDS).meta({ description: 'Whether a board was synced or a card pushed.' }),
  board_id: id.meta({ description: 'The master board.' }),
  board_title: z.string().meta({ description: 'The title of the master board.' }),
  card_id: id.nullable().meta({ description: 'The master card that was pushed.' }),
  card_title: z.string().nullable().meta({ description: 'The title of that card.' }),
  user_id: id.nullable().meta({ description: 'The superadmin who did it.' }),
  user_name: z.string().nullable().meta({ description: 'The name of that superadmin.' }),
  started_at: timestamp.meta({ description: 'When it began.' }),
  finished_at: timestamp
    .nullable()
    .meta({ description: 'When it ended; null while it runs, or if it was interrupted.' }),
  interrupted_at: timestamp.nullable().meta({
    description:
      'When it made its last progress before it failed, or its node was gone; null while it runs, or if it ended.',
  }),
  projects_with_access: z.int().meta({ description: 'How many projects had access.' }),
  projects_skipped: z.int().meta({ description: 'How many projects had none.' }),
  projects_changed: z.int().meta({ description: 'How many projects changed.' }),
  cards_added: z.int().meta({ description: 'How many cards were added in all.' }),
  cards_updated: z.int().meta({ description: 'How many cards were brought up to date in all.' }),
});

export const TemplateRunList = Page.extend({
  board_id: id.nullish().meta({ description: 'Only those of this board.' }),
});
export type TemplateRunList = z.output<typeof TemplateRunList>;
export const TemplateRunPage = z.object({ runs: z.array(TemplateRun), next_cursor: nextCursor });

export const TemplateRunReport = Page.extend({
  id,
  outcome: optionalChoice(OUTCOMES).meta({ description: 'Only the projects with this outcome.' }),
});
export type TemplateRunReport = z.output<typeof TemplateRunReport>;
