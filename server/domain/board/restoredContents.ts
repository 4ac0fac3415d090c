import { sql } from 'kysely';
import type { EventData } from '../../../shared/event.ts';
import { anyOf, type Db, live, query } from '../../database/query.ts';
import { countRows } from '../../database/rows.ts';
import { furtherRows } from '../event/event.ts';
import { RESTORED } from './deletionRecord.ts';
import type { Restorable } from './nouns.ts';

/** A deleted row, with what decides where it belongs. */
export type Found = {
  id: number;
  project_id: number | null;
  deleted_at: Date | null;
  updated_at: Date;
  deletion_id: number | null;
  board_id?: number;
  group_id?: number | null;
  card_id?: number;
  parent_comment_id?: number | null;
  root_comment_id?: number | null;
};
export type Deleted = Found & { deleted_at: Date };

/** What came back with a row: how many rows, and what its event tells about the row. */
type Contents = { count: number; data: EventData };

/** Restores what the deletion of a row took along. */
export const CONTENTS: Record<Restorable, (db: Db, row: Deleted) => Promise<Contents>> = {
  boards: async (db, row) => {
    // In the order of ids: syncs mark the cards of master groups that are being cleared, and lock them in this order.
    const groups = await query(
      db,
      sql<{ id: number; deleted_at: Date }>`
        select id, deleted_at from groups where board_id = ${row.id} and ${wasTaken(row)} order by id for no key update`,
    );
    const ids = groups.map(({ id }) => id);
    const restored = { ...RESTORED, is_clearing: false };
    await db.updateTable('groups').set(restored).where('id', '=', anyOf(ids)).execute();
    const times = groups.map(({ deleted_at }) => deleted_at);
    return { count: ids.length + (await restoreCards(db, row, ids, times)), data: {} };
  },
  groups: async (db, row) => ({
    count: await restoreCards(db, row, [row.id], [row.deleted_at]),
    data: { board_id: row.board_id },
  }),
  cards: async (_, { group_id }) => ({ count: 0, data: { group_id } }),
  comments: async (db, row) => {
    const replies = db
      .updateTable('comments')
      .set(RESTORED)
      .where('root_comment_id', '=', row.root_comment_id ?? row.id)
      .where('id', '>', row.id)
      .where(wasTaken(row));
    return { count: (await replies.returning('id').execute()).length, data: { card_id: row.card_id } };
  },
  tags: async (db, { id, project_id, deletion_id }) => {
    const taken = sql<{
      total: number;
    }>`select cardinality(card_ids) as total from deletions where id = ${deletion_id}::int`;
    const [{ total } = { total: 0 }] = await query(db, taken);
    const ids: number[] = [];
    for (let first = 1; first <= total; first += CARDS_PER_STATEMENT) {
      // A card that another tag was taken from since then had that one.
      const cards = await query(
        db,
        sql<{ id: number }>`
          update cards c set tag_id = ${id}, updated_at = now()
          from (
            select unnest(card_ids[${first}::int:${first - 1 + CARDS_PER_STATEMENT}::int]) as card_id from deletions
            where id = ${deletion_id}::int
          ) as taken
          where c.id = taken.card_id and c.tag_id is null and c.id not in (
            select unnest(card_ids) from deletions where project_id = ${project_id} and id > ${deletion_id}::int and card_ids is not null)
          returning c.id`,
      );
      for (const card of cards) ids.push(card.id);
    }
    return { count: ids.length, data: furtherRows(ids) };
  },
};

/** A few seconds, far below the time limit of a statement. */
const CARDS_PER_STATEMENT = 50_000;

/**
 * Rows that the deletion of this row took along. Nodes of the version before gave them no id: they wrote the time of the
 * transaction, which the deleted row itself has as `updated_at`.
 */
const wasTaken = ({ deletion_id, deleted_at, updated_at }: Deleted) => sql<boolean>`
  (deletion_id = ${deletion_id}::int or deletion_id is null and deleted_at in (${deleted_at}, ${updated_at}))`;

/** Restores the cards of these groups, which had these times. Cards that were not marked yet are visible again already. */
async function restoreCards(db: Db, { deletion_id }: Deleted, groups: number[], times: Date[]): Promise<number> {
  const marked = sql`
    select id from cards where group_id = ${anyOf(groups)}
      and (deletion_id = ${deletion_id}::int or deletion_id is null and deleted_at = any(${times}::timestamptz[]))
    limit ${sql.lit(CARDS_PER_STATEMENT)}`;
  const some = db.updateTable('cards').set(RESTORED).where(sql<boolean>`id = any(array(${marked}))`).returning('id');
  while ((await some.execute()).length === CARDS_PER_STATEMENT);
  return countRows(db, 'cards', sql`group_id = ${anyOf(groups)} and ${live()}`);
}
