import { type RawBuilder, sql } from 'kysely';
import { type CardList, ListedCard } from '../../../shared/card.ts';
import { plannedEachTime, query } from '../../database/query.ts';
import type { Row } from '../../database/tables.ts';
import { actingProject } from '../access/access.ts';
import type { ProjectCaller, ProjectContext } from '../access/context.ts';
import { bound, isEnough, permitOf, roleIn } from '../access/permission.ts';
import { readCursor, toCursor, toPage } from '../rows/page.ts';
import { bytesOf, cutToResponseSize } from '../rows/responseSize.ts';
import { isLiveCard, selectionOf } from '../rows/row.ts';
import { CARD_COLUMNS, type CardRow, IS_OVERDUE } from './card.ts';
import { isDismissed, isShown } from './tour.ts';

type ListedCardRow = CardRow & { is_dismissed: boolean };

/**
 * The cards of the project that match all filters, in order. A text search scans the next cards first, which fill the page if
 * the text is common; for rare texts it then uses the search index. Without an index (short texts, and the embedded database) it
 * only scans the next cards: such a page may be short and still have a `next_cursor`.
 *
 * - `scanned`: the next cards in order, capped by number and bytes.
 * - `last`: the last of them, where the next page continues.
 * - `near`: the matches among them; the index is used only if they do not fill the page.
 */
export async function listCards(
  { db, hasSearchIndex, caller }: ProjectContext,
  { cursor, limit, include_dismissed, ...wanted }: CardList,
) {
  const [sort_order, id] = readCursor(cursor, 2);
  const userId = sql`${caller.id}`;
  const columns = sql`${COLUMNS}, ${isDismissed('c', userId)} as is_dismissed`;
  const conditions = [
    sql`c.project_id = ${projectOf(caller, wanted)}`,
    isLiveCard('c'),
    include_dismissed !== true && isShown('c', userId),
    id !== undefined && sql`(c.sort_order, c.id) > (${sort_order}, ${id})`,
    ...EQUAL.map((column) => wanted[column] != null && sql`${sql.ref(`c.${column}`)} = ${wanted[column]}`),
    wanted.is_grouped != null && sql`(c.group_id is not null) = ${wanted.is_grouped}`,
    wanted.is_overdue != null && sql`${IS_OVERDUE} = ${wanted.is_overdue}`,
  ].filter((condition) => condition !== false);
  const { text } = wanted;
  const isFiltered = Object.values(wanted).some((value) => value != null);
  const where = (more: RawBuilder<unknown>[] = []) => sql`where ${sql.join([...conditions, ...more], sql` and `)}`;
  const next = (more: RawBuilder<unknown>[] = []) =>
    sql<ListedCardRow>`select ${columns} from cards c ${where(more)} ${IN_ORDER} limit ${limit + 1}`;
  const readCards = async (cards: RawBuilder<ListedCardRow>) => {
    const page = cutToResponseSize('cards', cards, ListedCard.keyof().options, ['sort_order', 'id']);
    const found = await query(db, isFiltered ? plannedEachTime(page) : page);
    const project_id = found[0]?.project_id;
    if (project_id != null) caller.actedIn?.push({ project_id });
    return toPage('cards', found, limit, ['sort_order', 'id']);
  };

  if (text == null) return readCards(next());
  const isIndexed = hasSearchIndex && IS_INDEXED.test(text);
  const scanned = sql`
    scanned as materialized (
      select c.id, c.sort_order from (
        select c.id, c.sort_order, c.bytes, sum(c.bytes) over (${IN_ORDER}) as sum from (
          select c.id, c.sort_order, ${bytesOf('cards', 'c')} as bytes from cards c ${where()} ${IN_ORDER}
          limit ${sql.lit(isIndexed ? SCANNED_BEFORE_INDEX : SCANNED_WITHOUT_INDEX)}) as c
      ) as c where c.sum - c.bytes < ${sql.lit(SCANNED_BYTES)}
    ), last as (select c.sort_order, c.id from scanned c order by c.sort_order desc, c.id desc limit 1)`;
  const near = sql`
    select ${columns} from cards c where c.id in (select id from scanned) and ${hasText(text)} ${IN_ORDER} limit ${limit + 1}`;
  const isAfterScanned = sql`(c.sort_order, c.id) > (select sort_order, id from last)`;

  if (isIndexed) {
    const isNeeded = sql`(select count(*) from near) <= ${limit}`;
    return readCards(sql`
      with ${scanned}, near as materialized (${near})
      select * from near union all (${next([hasText(text), isAfterScanned, isNeeded])})
      order by sort_order, id limit ${limit + 1}`);
  }

  const page = await readCards(sql`with ${scanned} ${near}`);
  if (page.next_cursor !== null) return page;
  const [last] = await query(
    db,
    plannedEachTime(sql<Pick<CardRow, 'sort_order' | 'id'>>`
      with ${scanned} select sort_order, id from last where exists (select from cards c ${where([isAfterScanned])})`),
  );
  return { ...page, next_cursor: last ? toCursor([last.sort_order, last.id]) : null };
}

/**
 * The project of the group or tag that a filter names, unless X-Project-Id selects one; without such a filter, the default
 * one. A group or tag where the caller has no access finds no cards, like an unknown one.
 */
function projectOf(caller: ProjectCaller, { group_id, tag_id }: Partial<CardList>): RawBuilder<unknown> {
  const [table, id] = group_id == null ? (['tags', tag_id] as const) : (['groups', group_id] as const);
  if (caller.isProjectChosen || id == null) return sql`${actingProject(caller).id}`;
  const permit = bound(permitOf(caller));
  return sql`(
    select t.project_id from ${sql.table(table)} t where t.id = ${id} and ${isEnough(roleIn('t.project_id', permit), permit)})`;
}

/** The columns that are filtered by equality. */
const EQUAL = ['group_id', 'owner_id', 'tag_id', 'status', 'priority'] as const satisfies (keyof Row<'cards'>)[];

const COLUMNS = sql`${selectionOf(CARD_COLUMNS)}, ${bytesOf('cards', 'c')} as bytes`;
const IN_ORDER = sql`order by c.sort_order, c.id`;

/** The search index has trigrams: it needs three letters or digits in a row. */
const IS_INDEXED = /[\p{L}\p{N}]{3}/u;

/** How many cards a search scans before it uses the index; a hundred take about a millisecond. */
const SCANNED_BEFORE_INDEX = 1000;

/** How many cards a search without the index scans per page. */
const SCANNED_WITHOUT_INDEX = 5000;

/** The cap of scanned bytes, since a card can have a megabyte. */
const SCANNED_BYTES = 8 * 1024 * 1024;

/**
 * Own cards use the search index; copies of master cards are not in it and are scanned. The same text is spelled in two ways,
 * since PostgreSQL would merge two equal conditions and then use neither index.
 */
function hasText(text: string): RawBuilder<unknown> {
  const pattern = containing(text);
  return sql`(
    c.master_card_id is null and c.title || coalesce(' ' || c.short_description, '') || coalesce(' ' || c.description, '') ilike ${pattern}
    or c.master_card_id is not null and concat_ws(' ', c.title, c.short_description, c.description) ilike ${pattern})`;
}

/** A `like` pattern with the text escaped. */
const containing = (text: string) => `%${text.replace(/[\\%_]/g, '\\$&')}%`;
