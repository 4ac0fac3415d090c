import { z } from 'zod';
import { id, text, timestamp } from './fields.ts';
import { Page, pageOf } from './paging.ts';

export const Platform = z
  .object({
    id,
    name: z.string().meta({ description: 'Its name.' }),
    created_at: timestamp.meta({ description: 'When it was created.' }),
    updated_at: timestamp.meta({ description: 'When it was last changed.' }),
  })
  .meta({ id: 'Platform', description: 'A platform: a customer.' });

const name = text(255).meta({ description: 'Its name.' });

export const PlatformCreate = z.object({ name });
export type PlatformCreate = z.output<typeof PlatformCreate>;

export const PlatformUpdate = z.object({ id, name });
export type PlatformUpdate = z.output<typeof PlatformUpdate>;

export const PlatformList = Page;
export const PlatformPage = pageOf('platforms', Platform);
