import { sql } from 'kysely';
import type { z } from 'zod';
import type { Page } from '../../shared/paging.ts';
import type { OwnProject } from '../../shared/project.ts';
import { query } from '../database/query.ts';
import type { SignedInContext } from '../trpc.ts';
import { DEFAULT_PROJECT } from './caller.ts';
import { readCursor, toPage } from './page.ts';

/** The active projects that the caller belongs to. */
export async function listOwnProjects({ em, caller }: SignedInContext, { cursor, limit }: Page) {
  const [after] = readCursor(cursor, 1) ?? [0];
  const found = await query(
    em,
    sql<z.input<typeof OwnProject>>`
      select p.id, p.platform_id, p.name, pl.name as platform_name, m.role,
        coalesce(p.id = ${DEFAULT_PROJECT}, false) as is_default
      from members m
      join projects p on p.id = m.project_id and p.is_active
      join platforms pl on pl.id = p.platform_id
      join users u on u.id = m.user_id
      where m.user_id = ${caller.id} and p.id > ${after}
      order by p.id limit ${limit + 1}`,
  );
  const { rows: projects, next_cursor } = toPage(found, limit, ({ id }) => [id]);
  return { projects, next_cursor };
}
