import { z } from 'zod';
import { Card } from './card.ts';
import { fieldsOfUpdate } from './changes.ts';
import {
  changedPosition,
  count,
  flag,
  IS_ACTIVE,
  id,
  ifVersion,
  lifetime,
  newPosition,
  optionalText,
  PLAIN_TEXT,
  PLAIN_TITLE,
  placements,
  position,
  text,
} from './fields.ts';
import { Group } from './group.ts';
import { requestExamples } from './requestExample.ts';

export const Board = z
  .object({
    id,
    project_id: id.nullable().meta({ description: 'Its project; null for a master board.' }),
    platform_id: id.nullable().meta({ description: 'The platform of its project; null for a master board.' }),
    master_board_id: id.nullable().meta({ description: 'The master board that it is a copy of.', example: null }),
    is_master: z.boolean().meta({ description: 'Whether it is a template.' }),
    is_active: z.boolean().meta({ description: `${IS_ACTIVE}.`, example: true }),
    title: z.string().meta({ description: PLAIN_TITLE, example: 'Launch plan' }),
    description: z
      .string()
      .nullable()
      .meta({ description: `Its description; ${PLAIN_TEXT}.` }),
    tool_key: z.string().nullable().meta({ description: 'The tool that it belongs to.', example: 'seo' }),
    position,
    created_by: id.nullable().meta({ description: 'The user who created it; null for a copy of a template.' }),
    ...lifetime,
  })
  .meta({ id: 'Board', description: 'A board.' });

export const ListedBoard = Board.extend({
  groups_count: count.meta({ description: 'Number of groups.', example: 3 }),
  cards_count: count.meta({ description: 'Number of cards in its groups.', example: 8 }),
}).meta({ id: 'ListedBoard', description: 'A board with its counts.' });

export const BoardList = z.object({
  tool_key: optionalText().meta({ description: 'Only the boards of this tool.', example: 'seo' }),
});
export type BoardList = z.output<typeof BoardList>;

export const FullGroup = Group.extend({
  cards: z.array(Card).meta({ description: 'Its cards in order.' }),
}).meta({ id: 'FullGroup', description: 'A group with its cards.' });

export const FullBoard = Board.extend({
  groups: z.array(FullGroup).meta({ description: 'Its groups in order.' }),
}).meta({ id: 'FullBoard', description: 'A board with its groups, and their cards.' });

export const BoardGet = z.object({ id: id.meta({ description: 'The board.', example: 2 }) });

const content = {
  description: optionalText().meta({ description: `Its description; ${PLAIN_TEXT}.` }),
  tool_key: optionalText(100).meta({ description: 'The tool that it belongs to.', example: 'seo' }),
  position: changedPosition,
};

export const BoardCreate = z.object({
  title: text(255).meta({ description: PLAIN_TITLE }),
  ...content,
  position: newPosition,
});
BoardCreate.register(requestExamples, {
  example: { title: 'Spring campaign', description: 'All that has to be done by May.', tool_key: 'seo' },
});
export type BoardCreate = z.output<typeof BoardCreate>;

const changes = {
  title: optionalText(255).meta({ description: PLAIN_TITLE }),
  ...content,
  is_active: flag.meta({ description: `${IS_ACTIVE}.` }),
};
export const BoardUpdate = z.object({
  id,
  ...fieldsOfUpdate(changes, Board),
  if_version: ifVersion,
});
BoardUpdate.register(requestExamples, { example: { id: 2, title: 'Launch plan for May', description: null } });
export type BoardUpdate = z.output<typeof BoardUpdate>;

export const BoardDelete = z.object({ id, if_version: ifVersion }).register(requestExamples, { example: { id: 3 } });
export type BoardDelete = z.output<typeof BoardDelete>;

export const BoardReorder = z.object({
  boards: placements.meta({ description: 'The boards and their new positions.' }),
});
BoardReorder.register(requestExamples, {
  example: {
    boards: [
      { id: 2, position: 1 },
      { id: 3, position: 2 },
    ],
  },
});
export type BoardReorder = z.output<typeof BoardReorder>;
