import { sql } from 'kysely';
import { workOff } from '../../server/database/background.ts';
import { query } from '../../server/database/query.ts';
import { CLEARING } from '../../server/domain/board/deletion.ts';
import { type TestProject, testDb } from './world.ts';

/** Adds cards to a group of a project, or of a master board. */
export async function addCards(group_id: number, { id, platform_id }: Partial<TestProject>, count: number) {
  await query(
    await testDb(),
    sql`
      insert into cards (group_id, project_id, platform_id, is_master, title, position, sort_order)
      select ${group_id}, ${id ?? null}::int, ${platform_id ?? null}::int, ${id == null}, 'One of many', n, n
      from generate_series(1, ${count}::int) n`,
  );
}

/** Does what is left of all large deletions. */
export const markAll = async () =>
  workOff(await testDb(), CLEARING, { rows: 400, pauseMilliseconds: 0, isStopped: () => false });
