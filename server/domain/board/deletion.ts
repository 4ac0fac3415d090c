import { type RawBuilder, sql } from 'kysely';
import type { BackgroundWork } from '../../database/background.ts';
import { lockProject } from '../../database/projectLock.ts';
import { anyOf, type Db, live, query, queryOne, transact } from '../../database/query.ts';
import type { ProjectContext } from '../access/context.ts';
import { deletedBy } from './deletionRecord.ts';
import { deleteRow, findRow } from './row.ts';

/** A deletion marks up to this many cards itself. More are marked in the background, and hidden until then. */
export const MOST_AT_ONCE = 1000;

/** Deletes a board with its groups and cards, or a group with its cards. */
export async function deleteWithContents(
  context: ProjectContext,
  table: 'boards' | 'groups',
  { id, if_version }: { id: number; if_version?: string | undefined },
) {
  const { project } = await findRow(context, table, id);

  await transact(context.db, async (db) => {
    await lockProject(db, project.id);
    const deletion_id = await deleteRow({ ...context, db }, table, id, { if_version });
    await deleteContents[table](db, { id, deletion_id });
  });
}

type Deleted = { id: number; deletion_id: number };

/** Marks the contents of a deleted board or group as deleted, too; `db` is in a transaction. */
export const deleteContents = {
  boards: async (db: Db, { id, deletion_id }: Deleted): Promise<void> => {
    const groups = await db
      .updateTable('groups')
      .set(deletedBy(deletion_id))
      .where('board_id', '=', id)
      .where(live())
      .returning('id')
      .execute();
    // A statement of its own: it also sees the cards that were created while the update waited for their group.
    const ids = groups.map(({ id }) => id);
    await countTaken(db, deletion_id, ids.length + (await deleteCards(db, ids)));
  },
  groups: async (db: Db, { id, deletion_id }: Deleted): Promise<void> =>
    countTaken(db, deletion_id, await deleteCards(db, [id])),
};

/** Records how many rows a deletion took along. */
export async function countTaken(db: Db, deletion_id: number, count: number): Promise<void> {
  if (count > 0) await db.updateTable('deletions').set({ count }).where('id', '=', deletion_id).execute();
}

/** Returns how many cards the groups have. */
async function deleteCards(db: Db, groups: number[]): Promise<number> {
  const cards = sql`from cards where group_id = any(${groups}::int[]) and ${live()}`;
  const { count } = await queryOne(db, sql<{ count: number }>`select count(*)::int as count ${cards}`);
  if (count > MOST_AT_ONCE) {
    await db.updateTable('groups').set({ is_clearing: true }).where('id', '=', anyOf(groups)).execute();
    lastLargeDeletion = performance.now();
  } else await markCards(db, groups, sql`select id ${cards}`);
  return count;
}

/** Marks the remaining cards of deleted groups that meet the condition, before a statement that reads deleted rows. */
export async function clearGroups(db: Db, which: RawBuilder<unknown>): Promise<void> {
  const groups = await query(
    db,
    sql<{ id: number }>`select id from groups where is_clearing and ${which} order by id for no key update`,
  );
  if (groups.length === 0) return;
  const ids = groups.map(({ id }) => id);
  await markCards(db, ids, sql`select id from cards where group_id = any(${ids}::int[]) and ${live()}`);
  await db.updateTable('groups').set({ is_clearing: false }).where('id', '=', anyOf(ids)).execute();
}

/** Marks the cards of deleted groups in steps. Skips what another transaction has locked, so it never waits. */
export const CLEARING: BackgroundWork = {
  table: 'cards',
  step: (db, { rows }) =>
    transact(db, async (db) => {
      const found = await query(
        db,
        sql<{ id: number }>`
          select id from groups where is_clearing order by id limit ${sql.lit(GROUPS_PER_STEP)} for no key update skip locked`,
      );
      if (found.length === 0) return { count: 0 };
      const groups = found.map(({ id }) => id);
      const count = await markCards(
        db,
        groups,
        sql`select id from cards where group_id = any(${groups}::int[]) and ${live()} limit ${sql.lit(rows)} for update skip locked`,
      );
      const cleared = await query(
        db,
        sql`
          update groups g set is_clearing = false where g.id = any(${groups}::int[])
            and not exists (select from cards c where c.group_id = g.id and ${live('c')}) returning g.id`,
      );
      // Groups without cards count, too: others wait behind them.
      return { count: Math.max(count, cleared.length) };
    }),
};
const GROUPS_PER_STEP = 100;

let lastLargeDeletion = Number.NEGATIVE_INFINITY;

/** Marks the cards of what this process deleted within the last minute. A process that deleted nothing large sends no statement. */
export const RECENT_CLEARING: BackgroundWork = {
  ...CLEARING,
  mayBeDue: () => performance.now() - lastLargeDeletion < 60_000,
};

/** Marks cards of these groups as deleted at the same time as their group, by the same deletion; not those deleted meanwhile. */
async function markCards(db: Db, groups: number[], cards: RawBuilder<unknown>): Promise<number> {
  const marked = await query(
    db,
    sql`
      update cards c set deleted_at = g.deleted_at, updated_at = g.deleted_at, deletion_id = g.deletion_id from groups g
      where c.id = any(array(${cards})) and g.id = c.group_id and g.id = any(${groups}::int[]) and ${live('c')} returning c.id`,
  );
  return marked.length;
}
