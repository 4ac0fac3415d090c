import { notFound } from '../../../shared/errors.ts';
import type { Page } from '../../../shared/paging.ts';
import { Platform, type PlatformCreate, type PlatformUpdate } from '../../../shared/platform.ts';
import { readPage } from '../../database/page.ts';
import { transact } from '../../database/query.ts';
import { insertRow, rowById, updateRow } from '../../database/rows.ts';
import { NOW } from '../../database/timestamp.ts';
import type { ProvisioningContext } from '../access/context.ts';
import { differingFields, writeEvents } from '../event/event.ts';

const PLATFORM_COLUMNS = Platform.keyof().options;

export async function createPlatform(context: ProvisioningContext, { name }: PlatformCreate) {
  return transact(context.db, async (db) => {
    const platform = await insertRow(db, 'platforms', { name }, PLATFORM_COLUMNS);
    const { id } = platform;
    await writeEvents({ ...context, db }, [{ type: 'platform.created', platform_id: id, subject_id: id }]);
    return { platform };
  });
}

export async function updatePlatform(context: ProvisioningContext, { id, name }: PlatformUpdate) {
  return transact(context.db, async (db) => {
    const missing = () => notFound('There is no such platform.');
    const before = await rowById(db, 'platforms', id, PLATFORM_COLUMNS, { lock: 'no key update', missing });
    const platform = await updateRow(db, 'platforms', id, { name, updated_at: NOW }, PLATFORM_COLUMNS);
    const fields = differingFields(before, platform);
    const updated = { type: 'platform.updated', platform_id: id, subject_id: id, data: { fields } } as const;
    await writeEvents({ ...context, db }, fields.length > 0 ? [updated] : []);
    return { platform };
  });
}

export const listPlatforms = ({ db }: ProvisioningContext, page: Page) =>
  readPage('platforms', db.selectFrom('platforms').select(PLATFORM_COLUMNS), page);
