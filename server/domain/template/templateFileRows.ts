import { sql } from 'kysely';
import { badRequest } from '../../../shared/errors.ts';
import { MOST_SIBLINGS } from '../../../shared/fields.ts';
import type { TemplateNoun } from '../../../shared/release.ts';
import { FILE_DEFAULTS } from '../../../shared/templateFile.ts';
import { type Db, live, oneRow, query } from '../../database/query.ts';
import { selectionOf } from '../../database/selection.ts';
import { bytesOf, mustFitResponse } from '../board/responseSize.ts';
import { findMaster } from './masterRow.ts';
import { RELEASED } from './templateSource.ts';

/** A board, group or card of a template file. */
export type FileRow = {
  noun: TemplateNoun;
  key: string;
  content: Content;
  /** The groups of a board, or the cards of a group, in order. */
  rows: FileRow[];
};
type Content = { title: string; [field: string]: string | boolean | null };

/** The same of the draft: the master board that the file is compared with. */
export type DraftRow = Omit<FileRow, 'rows'> & { id: number; rows: DraftRow[] };

/** What releases store, too; the place of a group follows from the order of the file. */
export const FILE_FIELDS = {
  board: RELEASED.boards,
  group: RELEASED.groups.filter((field) => field !== 'position'),
  card: RELEASED.cards,
};

/** A row with all its fields, and defaults for those that are missing or null. */
export function fileRow(noun: TemplateNoun, key: string, fields: object): FileRow {
  const sent = fields as Partial<Content>;
  const content = FILE_FIELDS[noun].map((field) => [field, sent[field] ?? FILE_DEFAULTS[field] ?? null]);
  return { noun, key, content: Object.fromEntries(content), rows: [] };
}

const draftRow = (noun: TemplateNoun, key = '', row: { id: number }): DraftRow => ({
  ...fileRow(noun, key, row),
  id: row.id,
  rows: [],
});

/** The id of the master board with this key; null if there is none. */
export async function findBoardWithKey(db: Db, key: string): Promise<number | null> {
  const [id = null] = [...(await keysOfBoards(db))].find(([, one]) => one === key) ?? [];
  return id;
}

const keysOfBoards = async (db: Db) =>
  keysOf(
    'board',
    await query(db, sql<Keyed>`select id, template_key from boards where is_master and ${live()} order by id`),
  );

type Keyed = { id: number; template_key: string | null };

/** The keys of rows by their ids: those that are stored, and for the others `group-7`, with more dashes if that is stored. */
function keysOf(noun: TemplateNoun, rows: readonly Keyed[]): Map<number, string> {
  const stored = new Set(rows.map(({ template_key }) => template_key));
  return new Map(
    rows.map(({ id, template_key }) => {
      let key = template_key ?? `${noun}-${id}`;
      while (template_key === null && stored.has(key)) key += '-';
      return [id, key];
    }),
  );
}

/** Reads a master board with its groups and cards in order. */
export async function readDraft(db: Db, id: number): Promise<DraftRow> {
  const found = await findMaster(db, 'boards', id, ['id', ...(FILE_FIELDS.board as 'title'[])]);
  await mustFit(db, id);
  const board = draftRow('board', (await keysOfBoards(db)).get(id), found);

  const groups = await query(
    db,
    sql<Keyed>`
      select ${selectionOf(['id', 'template_key', ...FILE_FIELDS.group])} from groups
      where board_id = ${id} and ${live()} order by position, id`,
  );
  const keys = keysOf('group', groups);
  board.rows = groups.map((group) => draftRow('group', keys.get(group.id), group));
  const rows = new Map(board.rows.map((group) => [group.id, group.rows]));
  const cards = await query(
    db,
    sql<{ id: number; group_id: number; unique_identifier: string }>`
      select ${selectionOf(['id', 'group_id', 'unique_identifier', ...FILE_FIELDS.card])} from cards
      where group_id = any(${[...rows.keys()]}::int[]) and ${live()} order by position, id`,
  );
  for (const card of cards) rows.get(card.group_id)?.push(draftRow('card', card.unique_identifier, card));
  return board;
}

/** Checked by lengths, before texts are read. */
async function mustFit(db: Db, id: number): Promise<void> {
  const groups = sql`select id from groups where board_id = ${id} and ${live()}`;
  const size = await query(
    db,
    sql<{ is_too_large: boolean; largest_group: number }>`
      select coalesce(sum(bytes), 0) > ${sql.lit(LARGEST_DRAFT_BYTES)} as is_too_large, coalesce(max(count), 0)::int as largest_group
      from (
        select sum(${bytesOf('groups', 'g')}) as bytes, 0 as count from groups g where g.board_id = ${id} and ${live('g')}
        union all
        select sum(${bytesOf('cards', 'c')}), count(*) from cards c
        where c.group_id = any(array(${groups})) and ${live('c')} group by c.group_id
      ) as parts`,
  );
  mustFitResponse(oneRow(size), 'The master board is too large for a template file. Shorten the descriptions on it.');
  if (oneRow(size).largest_group > MOST_SIBLINGS)
    throw badRequest(`A group in a template file has at most ${MOST_SIBLINGS} cards.`, 'answer_too_large');
}

/** A plan has the texts of the draft and of the file, whose request is smaller: together they fit into a response. */
const LARGEST_DRAFT_BYTES = 4 * 1024 * 1024;

/** The groups and cards of a board by their keys; cards with their group. */
export function rowsByKey<Row extends { key: string; rows: Row[] }>(board: Row | undefined) {
  const groups = new Map(board?.rows.map((group) => [group.key, group]));
  const cards = new Map(board?.rows.flatMap((group) => group.rows.map((card) => [card.key, { card, group }] as const)));
  return { groups, cards };
}
