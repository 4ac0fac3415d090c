import { notFound } from '../../../shared/errors.ts';
import type { Page } from '../../../shared/paging.ts';
import { Platform, type PlatformCreate, type PlatformUpdate } from '../../../shared/platform.ts';
import { NOW } from '../../database/timestamp.ts';
import type { ProvisioningContext } from '../access/context.ts';
import { readPage } from '../rows/page.ts';

const PLATFORM_COLUMNS = Platform.keyof().options;

export async function createPlatform({ db }: ProvisioningContext, { name }: PlatformCreate) {
  const platform = await db
    .insertInto('platforms')
    .values({ name })
    .returning(PLATFORM_COLUMNS)
    .executeTakeFirstOrThrow();
  return { platform };
}

export async function updatePlatform({ db }: ProvisioningContext, { id, name }: PlatformUpdate) {
  const platform = await db
    .updateTable('platforms')
    .set({ name, updated_at: NOW })
    .where('id', '=', id)
    .returning(PLATFORM_COLUMNS)
    .executeTakeFirstOrThrow(() => notFound('There is no such platform.'));
  return { platform };
}

export const listPlatforms = ({ db }: ProvisioningContext, page: Page) =>
  readPage('platforms', db.selectFrom('platforms').select(PLATFORM_COLUMNS), page);
