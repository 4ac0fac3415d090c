import { z } from 'zod';
import { fieldsOfUpdate } from './changes.ts';
import {
  changedPosition,
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
import { Page, pageOf } from './paging.ts';
import { requestExamples } from './requestExample.ts';

export const Group = z
  .object({
    id,
    project_id: id.nullable().meta({ description: 'Its project; null for a master group.' }),
    platform_id: id.nullable().meta({ description: 'The platform of its project; null for a master group.' }),
    master_group_id: id.nullable().meta({ description: 'The master group that it is a copy of.', example: null }),
    board_id: id.meta({ description: 'Its board.' }),
    position,
    created_by: id.nullable().meta({ description: 'The user who created it; null for a copy of a template.' }),
    is_master: z.boolean().meta({ description: 'Whether it is a template.' }),
    is_collapsed: z.boolean().meta({ description: 'Whether it is shown collapsed.' }),
    is_active: z.boolean().meta({ description: `${IS_ACTIVE}.`, example: true }),
    title: z.string().meta({ description: PLAIN_TITLE, example: 'To do' }),
    description: z
      .string()
      .nullable()
      .meta({ description: `Its description; ${PLAIN_TEXT}.` }),
    type: z.string().nullable().meta({ description: 'Its type.' }),
    color: z.string().nullable().meta({ description: 'Its color.', example: '#0b6e99' }),
    icon: z.string().nullable().meta({ description: 'The name of its icon.' }),
    ...lifetime,
  })
  .meta({ id: 'Group', description: 'A group of a board.' });

export const look = {
  description: optionalText().meta({ description: `Its description; ${PLAIN_TEXT}.`, example: 'What comes next.' }),
  type: optionalText(50).meta({ description: 'Its type.', example: 'list' }),
  color: optionalText(50).meta({ description: 'Its color.', example: '#0b6e99' }),
  icon: optionalText(100).meta({ description: 'The name of its icon.', example: 'flag' }),
  position: changedPosition,
  is_collapsed: flag.meta({ description: 'Whether it is shown collapsed.' }),
};

export const GroupCreate = z.object({
  board_id: id.meta({ description: 'Its board.' }),
  title: text(255).meta({ description: PLAIN_TITLE, example: 'To do' }),
  ...look,
  position: newPosition,
  is_collapsed: look.is_collapsed.meta({ description: 'Whether it is shown collapsed; false if not sent.' }),
});
GroupCreate.register(requestExamples, { example: { board_id: 2, title: 'Waiting', color: '#8a4baf' } });
export type GroupCreate = z.output<typeof GroupCreate>;

const changes = {
  title: optionalText(255).meta({ description: PLAIN_TITLE, example: 'To do' }),
  ...look,
};
export const GroupUpdate = z.object({
  id: id.meta({ description: 'The group.', example: 7 }),
  ...fieldsOfUpdate(changes, Group),
  if_version: ifVersion,
});
export type GroupUpdate = z.output<typeof GroupUpdate>;

/** Beyond the specified fields of GroupUpdate. */
export const GroupConfigure = z.object({
  id: id.meta({ description: 'The group.', example: 7 }),
  ...fieldsOfUpdate({ is_active: flag.meta({ description: `${IS_ACTIVE}.` }) }, Group),
  if_version: ifVersion,
});
GroupConfigure.register(requestExamples, { example: { id: 7, is_active: false } });
export type GroupConfigure = z.output<typeof GroupConfigure>;

export const GroupList = z.object({ board_id: id.meta({ description: 'Its board.' }), ...Page.shape });
GroupList.register(requestExamples, { example: { board_id: 2, limit: 20 } });
export type GroupList = z.output<typeof GroupList>;
export const GroupPage = pageOf('groups', Group);

export const GroupDelete = z.object({ id, if_version: ifVersion }).register(requestExamples, { example: { id: 8 } });
export type GroupDelete = z.output<typeof GroupDelete>;

export const GroupReorder = z.object({
  groups: placements.meta({
    description: 'Groups of one board and their new positions.',
    example: [
      { id: 7, position: 2 },
      { id: 8, position: 1 },
    ],
  }),
});
export type GroupReorder = z.output<typeof GroupReorder>;
