import { sql } from 'kysely';
import type { z } from 'zod';
import type { BoardList, ListedBoard } from '../../shared/board.ts';
import { query } from '../database/query.ts';
import type { ProjectContext } from '../trpc.ts';

/** The boards of the project in their order, with how much is in them. */
export async function listBoards({ em, caller }: ProjectContext, { tool_key }: BoardList) {
  const boards = await query(
    em,
    sql<z.input<typeof ListedBoard>>`
      select b.*,
        (select count(*)::int from groups g where g.board_id = b.id and g.deleted_at is null) as groups_count,
        (select count(*)::int from groups g join cards c on c.group_id = g.id and c.deleted_at is null
          where g.board_id = b.id and g.deleted_at is null) as cards_count
      from boards b
      where b.project_id = ${caller.project.id} and b.deleted_at is null
        and (${tool_key ?? null}::text is null or b.tool_key = ${tool_key ?? null})
      order by b.position, b.id`,
  );
  return { boards };
}
