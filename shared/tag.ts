import { z } from 'zod';
import { fieldsOfUpdate } from './changes.ts';
import { changedPosition, flag, id, ifVersion, lifetime, newPosition, optionalText, position, text } from './fields.ts';
import { Page, pageOf } from './paging.ts';
import { requestExamples } from './requestExample.ts';

export const Tag = z
  .object({
    id,
    project_id: id.meta({ description: 'Its project.' }),
    position,
    created_by: id.nullable().meta({ description: 'The user who created it.' }),
    name: z.string().meta({ description: 'Its name.', example: 'Content' }),
    color: z.string().nullable().meta({ description: 'Its color.', example: '#0b6e99' }),
    icon: z.string().nullable().meta({ description: 'The name of its icon.', example: 'pen' }),
    is_active: z.boolean().meta({ description: 'Whether it is active.', example: true }),
    ...lifetime,
  })
  .meta({ id: 'Tag', description: 'A tag of a project.' });

const look = {
  color: optionalText(50).meta({ description: 'Its color.', example: '#0b6e99' }),
  icon: optionalText(100).meta({ description: 'The name of its icon.', example: 'pen' }),
};

export const TagCreate = z.object({
  name: text(255).meta({ description: 'Its name; equal names are allowed.', example: 'Content' }),
  ...look,
  position: newPosition.meta({ example: null }),
});
export type TagCreate = z.output<typeof TagCreate>;

const changes = {
  name: optionalText(255).meta({ description: 'Its name.' }),
  ...look,
  position: changedPosition,
  is_active: flag.meta({ description: 'Whether it is active.' }),
};
export const TagUpdate = z.object({ id, ...fieldsOfUpdate(changes, Tag), if_version: ifVersion });
TagUpdate.register(requestExamples, { example: { id: 1, name: 'Texts', color: '#0b6e99' } });
export type TagUpdate = z.output<typeof TagUpdate>;

export const TagDelete = z.object({ id, if_version: ifVersion }).register(requestExamples, { example: { id: 2 } });
export type TagDelete = z.output<typeof TagDelete>;

export const TagList = Page;
export const TagPage = pageOf('tags', Tag);
