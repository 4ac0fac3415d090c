import { sql } from 'kysely';
import { invalid } from '../../../shared/errors.ts';
import type { Placement } from '../../../shared/fields.ts';
import type { MasterGroupCreate } from '../../../shared/master.ts';
import { live, mapConstraintErrors, nextPosition, query } from '../../database/query.ts';
import type { RowChanges } from '../../database/tables.ts';
import type { SignedInContext } from '../access/context.ts';
import { namesOf, typedColumns } from '../board/columns.ts';
import { clearGroups } from '../board/deletion.ts';
import { NEW_ROW, writeEvents } from '../event/event.ts';
import { createMasterBoard } from './masterBoard.ts';
import { deleteMasterCard, reorderMasterCards } from './masterCard.ts';
import { createMasterGroup, deleteMasterGroup, reorderMasterGroups } from './masterGroup.ts';
import { changeMaster } from './masterRow.ts';
import { changedFields } from './templateFileChanges.ts';
import { type DraftRow, FILE_FIELDS, type FileRow, rowsByKey } from './templateFileRows.ts';

/** Makes the draft what the file says, in a transaction with the lock of the board. Returns the board's id. */
export async function writeDraft(
  context: SignedInContext,
  draft: DraftRow | undefined,
  file: FileRow,
): Promise<number> {
  const before = rowsByKey(draft);
  const after = rowsByKey(file);
  const board_id = draft ? await changeRow(context, 'boards', draft, file) : await createBoard(context, file);

  const groups: Written[] = [];
  for (const group of file.rows) {
    const old = before.groups.get(group.key);
    const id = old ? await changeRow(context, 'groups', old, group) : await createGroup(context, board_id, group);
    groups.push({ id, row: group });
  }
  for (const { card, group } of before.cards.values()) {
    // Others are deleted with their group.
    if (!after.cards.has(card.key) && after.groups.has(group.key)) await deleteMasterCard(context, { id: card.id });
  }
  // Before groups are deleted, with the cards that are still in them.
  for (const { id: group_id, row: group } of groups) {
    const isNew = ({ key }: FileRow) => !before.cards.has(key);
    const created = await createCards(context, group_id, group.rows.filter(isNew));
    const cards: Written[] = [];
    for (const card of group.rows) {
      const old = before.cards.get(card.key)?.card;
      const id = old ? await changeRow(context, 'cards', old, card) : created.get(card.key);
      if (id !== undefined) cards.push({ id, row: card });
    }
    const isJoined = cards.some(({ row }) => (before.cards.get(row.key)?.group.key ?? group.key) !== group.key);
    if (isJoined || !isInOrder(before.groups.get(group.key), cards))
      await reorderMasterCards(context, { group_id, cards: placesOf(cards) });
  }

  for (const { key, id } of before.groups.values()) {
    if (!after.groups.has(key)) await deleteMasterGroup(context, { id });
  }
  if (!isInOrder(draft, groups)) await reorderMasterGroups(context, { board_id, groups: placesOf(groups) });
  return board_id;
}

/** A row of the file with its id. */
type Written = { id: number; row: FileRow };

/** Changes what differs, and returns the id. */
async function changeRow(
  context: SignedInContext,
  table: 'boards' | 'groups' | 'cards',
  before: DraftRow,
  after: FileRow,
): Promise<number> {
  const changes = changedFields(before, after).map(({ field, after }) => [field, after]);
  if (changes.length > 0) await changeMaster(context, table, before.id, Object.fromEntries(changes), ['id']);
  return before.id;
}

async function createBoard(context: SignedInContext, { key, content }: FileRow): Promise<number> {
  const { title, description, tool_key, ...others } = content as NewContent<'boards'>;
  const { board } = await createMasterBoard(context, { title, description, tool_key });
  await completeRow(context, 'boards', board.id, key, others);
  return board.id;
}

async function createGroup(context: SignedInContext, board_id: number, { key, content }: FileRow): Promise<number> {
  const { title, description, ...others } = content as NewContent<'groups'>;
  const { group } = await createMasterGroup(context, { board_id, title, description });
  await completeRow(context, 'groups', group.id, key, others);
  return group.id;
}

/** Sets what a new row does not have yet. If that is another version of the row, it has an event of its own. */
async function completeRow(
  context: SignedInContext,
  table: 'boards' | 'groups',
  id: number,
  template_key: string,
  others: RowChanges<'boards' | 'groups'>,
): Promise<void> {
  if (Object.keys(others).length > 0) await changeMaster(context, table, id, others, ['id']);
  await query(context.db, sql`update ${sql.table(table)} set template_key = ${template_key} where id = ${id}`);
}

type NewContent<Table extends 'boards' | 'groups'> = RowChanges<Table> & Pick<MasterGroupCreate, 'title'>;

/** Creates cards at the end of their group in one statement, since a file may have thousands. Returns their ids by key. */
async function createCards(context: SignedInContext, group_id: number, cards: FileRow[]): Promise<Map<string, number>> {
  if (cards.length === 0) return new Map();
  // A key of a deleted master card can be used again.
  await clearGroups(context.db, sql`is_master`);
  const rows = cards.map(({ key, content }, at) => ({ ...content, unique_identifier: key, place: at + 1 }));
  const columns = [...FILE_FIELDS.card, 'unique_identifier'];
  const last = sql`select max(position) from cards where group_id = ${group_id}::int and ${live()}`;
  const position = nextPosition(last, sql`new.place`);
  const inserted = query(
    context.db,
    sql<{ id: number; key: string }>`
      insert into cards (is_master, group_id, created_by, position, sort_order, ${namesOf(columns)})
      select true, ${group_id}::int, ${context.caller.id}::int, ${position}, ${position}, ${namesOf(columns, 'new')}
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as new (place int, ${typedColumns('cards', columns)})
      order by new.place
      returning id, unique_identifier as key`,
  );
  const ids = new Map((await mapConstraintErrors(inserted, TAKEN)).map(({ key, id }) => [key, id]));
  const created = [...ids.values()].sort((one, other) => one - other);
  const events = created.map((id) => ({
    type: 'master_card.created' as const,
    subject_id: id,
    data: { group_id, ...NEW_ROW },
  }));
  await writeEvents(context, events);
  return ids;
}

const TAKEN = {
  cards_master_identifier: () =>
    invalid({ template: 'has the key of a card that another master board has by now' }, 'already_exists'),
};

/** Whether rows have the order of the file. New rows are the last ones of their parent so far. */
function isInOrder(before: DraftRow | undefined, rows: Written[]): boolean {
  const named = new Set(rows.map(({ id }) => id));
  const stayed = (before?.rows ?? []).map(({ id }) => id).filter((id) => named.has(id));
  return stayed.every((id, at) => id === rows[at]?.id);
}

const placesOf = (rows: Written[]): Placement[] => rows.map(({ id }, at) => ({ id, position: at + 1 }));
