import { sql } from 'kysely';
import { query } from '../../database/query.ts';
import { type WriteContext, writeEvents } from '../event/event.ts';
import type { Published } from './release.ts';

/**
 * A sync or push of a board ends its open rollout: both would bring something else. So does the deletion of the board. In a
 * transaction that has the lock of the board: no step of the rollout is under way.
 */
export async function abortOpenRollout(context: WriteContext, board_id: number): Promise<number | null> {
  const [aborted] = await query(
    context.db,
    sql<{ id: number }>`
      update rollouts set state = 'aborted', reason = 'superseded', next_at = null, finished_at = now()
      where board_id = ${board_id} and state in ('running', 'paused') returning id`,
  );
  if (!aborted) return null;
  const data = { board_id, reason: 'superseded' };
  await writeEvents(context, [{ type: 'rollout.aborted', subject_id: aborted.id, data }]);
  return aborted.id;
}

/**
 * On a board that was rolled out, new projects get a release, not the draft: from now on that of this sync, or that of this push if it
 * changes a part of the release that they got so far.
 */
export async function followRelease(
  { db }: WriteContext,
  { board_id, kind }: { board_id: number; kind: string },
  { id, previous_id }: Published,
): Promise<void> {
  const isBefore = kind === 'sync' ? sql`rolled_out_id is not null` : sql`rolled_out_id = ${previous_id}`;
  await query(
    db,
    sql`update boards set rolled_out_id = ${id} where id = ${board_id} and ${isBefore} and rolled_out_id <> ${id}`,
  );
}
