import { type RawBuilder, sql } from 'kysely';
import { notFound } from '../../../shared/errors.ts';
import type { Placement } from '../../../shared/fields.ts';
import { type Db, live, plannedEachTime, query } from '../../database/query.ts';
import type { RowChanges } from '../../database/tables.ts';
import { NOW } from '../../database/timestamp.ts';
import { setPositions } from './position.ts';
import { type Column, isLiveCard, nounOf, type Selected } from './row.ts';

/** The tables with templates. */
type MasterTable = 'boards' | 'groups' | 'cards';

export const noSuchMaster = (table: MasterTable) => notFound(`There is no such master ${nounOf(table)}.`);

/** Finds a template, and returns these columns; rows of projects are a 404. */
export async function findMaster<Table extends MasterTable, const Columns extends readonly Column<Table>[]>(
  db: Db,
  table: Table,
  id: number,
  columns: Columns,
): Promise<Selected<Table, Columns>> {
  const row = await db
    .selectFrom(table as MasterTable)
    .select(columns as readonly Column<MasterTable>[])
    .where('id', '=', id)
    .where('is_master', 'is', true)
    .where(isLive(table))
    .executeTakeFirstOrThrow(() => noSuchMaster(table));
  return row as unknown as Selected<Table, Columns>;
}

/** Changes a template, and returns these columns. */
export async function changeMaster<Table extends MasterTable, const Columns extends readonly Column<Table>[]>(
  db: Db,
  table: Table,
  id: number,
  changes: RowChanges<Table>,
  columns: Columns,
): Promise<Selected<Table, Columns>> {
  const update = db
    .updateTable(table as MasterTable)
    .set({ ...changes, updated_at: NOW })
    .where('id', '=', id)
    .where('is_master', 'is', true)
    .where(isLive(table))
    .returning(columns as readonly Column<MasterTable>[]);
  const [row] = await query(db, plannedEachTime(sql<Selected<Table, Columns>>`${update}`));
  if (!row) throw noSuchMaster(table);
  return row;
}

const isLive = (table: MasterTable) => (table === 'cards' ? isLiveCard('cards') : live());

export async function deleteMaster(db: Db, table: MasterTable, id: number): Promise<void> {
  await changeMaster(db, table, id, { deleted_at: new Date() }, ['id']);
}

/** Puts templates `t` at their positions among these siblings, atomically; `db` is in a transaction. */
export async function placeMasters(
  db: Db,
  table: MasterTable,
  placements: Placement[],
  isSibling: RawBuilder<boolean>,
): Promise<void> {
  const placed = await setPositions(db, table, placements, sql`t.is_master and ${isSibling}`);
  if (placed < placements.length) throw noSuchMaster(table);
}
