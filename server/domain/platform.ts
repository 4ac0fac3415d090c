import { sql } from 'kysely';
import type { z } from 'zod';
import type { Page } from '../../shared/paging.ts';
import type { Platform, PlatformCreate, PlatformUpdate } from '../../shared/platform.ts';
import type { Provisioning } from '../context.ts';
import { query } from '../database/query.ts';
import { notFound } from '../errors.ts';
import { readCursor, toPage } from './page.ts';

type PlatformRow = z.input<typeof Platform>;

export async function createPlatform({ db }: Provisioning, { name }: PlatformCreate) {
  const [platform] = await query(db, sql<PlatformRow>`insert into platforms (name) values (${name}) returning *`);
  return { platform: platform! };
}

export async function updatePlatform({ db }: Provisioning, { id, name }: PlatformUpdate) {
  const [platform] = await query(
    db,
    sql<PlatformRow>`update platforms set name = ${name}, updated_at = now() where id = ${id} returning *`,
  );
  if (!platform) throw notFound('There is no such platform.');
  return { platform };
}

export async function listPlatforms({ db }: Provisioning, { cursor, limit }: Page) {
  const [after] = readCursor(cursor, 1) ?? [0];
  const found = await query(
    db,
    sql<PlatformRow>`select * from platforms where id > ${after} order by id limit ${limit + 1}`,
  );
  const { rows: platforms, next_cursor } = toPage(found, limit, ({ id }) => [id]);
  return { platforms, next_cursor };
}
