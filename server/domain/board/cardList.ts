import { type RawBuilder, sql } from 'kysely';
import { type CardList, ListedCard } from '../../../shared/card.ts';
import { readCursor, toCursor, toPage } from '../../database/page.ts';
import { allOf, anyOf, inOneSnapshot, live, plannedEachTime, query } from '../../database/query.ts';
import { selectionOf } from '../../database/selection.ts';
import type { Row } from '../../database/tables.ts';
import { actingProject } from '../access/access.ts';
import type { ProjectContext } from '../access/context.ts';
import { bound, isEnough, permitOf, roleIn } from '../access/permission.ts';
import { CARD_COLUMNS, type CardRow, IS_OVERDUE } from './card.ts';
import { bytesOf, cutToResponseSize } from './responseSize.ts';
import { isLiveCard } from './row.ts';
import { dismissedCards, isDismissed } from './tour.ts';

type ListedCardRow = CardRow & { is_dismissed: boolean };

/**
 * The cards of the project that match all filters, in order. An index finds the cards of a project, group, tag or owner in
 * order; the other filters are checked on a limited number of them. A page may thus be short and still have a `next_cursor`.
 *
 * A text search scans the next cards first, which fill the page if the text is common; for rare texts it then uses the search
 * index. Without an index (short texts, and the embedded database) it only scans the next cards.
 */
export function listCards(context: ProjectContext, list: CardList) {
  const isChecked = [...CHECKED, 'is_grouped', 'is_overdue', 'due_before', 'text'].some(
    (name) => list[name as keyof CardList] != null,
  );
  if (!isChecked) return readPage(context, list);
  // The page and the place where it continues come from two statements.
  return inOneSnapshot(context.db, (db) => readPage({ ...context, db }, list));
}

async function readPage(context: ProjectContext, list: CardList) {
  const { cursor, limit, include_dismissed, ...wanted } = list;
  const search = await searchFor(context, list);
  if (wanted.text != null) return pageWithText(context, search, wanted.text);
  const isAnyWanted = Object.values(wanted).some((value) => value != null);
  if (!isAnyWanted) return readCards(context, search, nextCards(search), { isPrepared: true });
  return pageByKeys(context, search);
}

/** The cards to look through, in order (`place`), and the filters that are checked on each of them (`checks`; `filters` are all). */
type Search = Record<'place' | 'filters' | 'columns', RawBuilder<unknown>> & {
  checks: RawBuilder<unknown>[];
  limit: number;
};

async function searchFor(
  context: ProjectContext,
  { cursor, limit, include_dismissed, ...wanted }: CardList,
): Promise<Search> {
  const [sort_order, id] = readCursor(cursor, 2);
  const userId = sql`${context.caller.id}`;
  const isEqual = (column: (typeof EQUAL)[number]) =>
    wanted[column] != null && sql`${sql.ref(`c.${column}`)} = ${wanted[column]}`;
  const place = allOf([
    await isInProject(context, wanted),
    live('c'),
    include_dismissed !== true && sql`c.id not in (${dismissedCards(userId)})`,
    id !== undefined && sql`(c.sort_order, c.id) > (${sort_order}, ${id})`,
    ...INDEXED.map(isEqual),
    wanted.is_grouped === false && sql`c.group_id is null`,
  ]);
  const checks = [
    ...CHECKED.map(isEqual),
    wanted.is_grouped === true && sql`c.group_id is not null`,
    wanted.is_overdue != null && sql`${IS_OVERDUE} = ${wanted.is_overdue}`,
    wanted.due_before != null && sql`c.due_date < ${wanted.due_before}`,
  ].filter((condition) => condition !== false);
  const columns = sql`${COLUMNS}, ${isDismissed('c', userId)} as is_dismissed`;
  return { place, checks, filters: allOf([isLiveCard('c'), ...checks]), columns, limit };
}

/** The next cards that match all filters, and these further conditions. */
const nextCards = ({ columns, place, filters, limit }: Search, ...further: RawBuilder<unknown>[]) => sql<ListedCardRow>`
  select ${columns} from cards c where ${allOf([place, filters, ...further])} ${IN_ORDER} limit ${limit + 1}`;

/** Without a text: reads only keys until the page is full, and then its cards. */
async function pageByKeys(context: ProjectContext, search: Search) {
  const { place, checks, filters, columns, limit } = search;
  const keys = (condition: RawBuilder<unknown>) =>
    sql`select c.sort_order, c.id from cards c where ${condition} ${IN_ORDER}`;
  const cardsOf = (some: RawBuilder<unknown>) => sql<ListedCardRow>`
    select ${columns} from (${some}) as k (place, card_id)
    cross join lateral (select * from cards c where c.id = k.card_id offset 0) as c
    where ${filters} order by k.place, k.card_id limit ${limit + 1}`;
  if (checks.length === 0)
    return readCards(context, search, cardsOf(sql`${keys(allOf([place, isLiveCard('c')]))} limit ${limit + 1}`));

  const page = await readCards(context, search, cardsOf(sql`${keys(place)} limit ${sql.lit(CHECKED_CARDS)}`));
  const isMore = sql`select from (${keys(place)} offset ${sql.lit(CHECKED_CARDS)} limit 1) as more`;
  return orContinue(
    context,
    page,
    sql`select * from (${keys(place)} offset ${sql.lit(CHECKED_CARDS - 1)} limit 1) as last where exists (${isMore})`,
  );
}

/**
 * - `scanned`: the next cards in order, capped by number and bytes.
 * - `last`: the last of them, where the next page continues.
 * - `texts`: those with the text. The index is used only if they are few.
 * - `near`: those that match all filters.
 */
async function pageWithText(context: ProjectContext, search: Search, text: string) {
  const { place, filters, columns, limit } = search;
  const isIndexed = context.services.hasSearchIndex && IS_INDEXED.test(text);
  const scanned = sql`
    scanned as materialized (
      select c.id, c.sort_order from (
        select c.id, c.sort_order, c.bytes, sum(c.bytes) over (${IN_ORDER}) as sum from (
          select c.id, c.sort_order, ${bytesOf('cards', 'c')} as bytes from cards c where ${place} ${IN_ORDER}
          limit ${sql.lit(isIndexed ? SCANNED_BEFORE_INDEX : SCANNED_WITHOUT_INDEX)}) as c
      ) as c where c.sum - c.bytes < ${sql.lit(SCANNED_BYTES)}
    ), last as (select c.sort_order, c.id from scanned c order by c.sort_order desc, c.id desc limit 1
    ), texts as materialized (
      select c.id from cards c where c.id in (select id from scanned) and ${hasText(text)}
    )`;
  const near = sql<ListedCardRow>`
    select ${columns} from cards c where c.id in (select id from texts) and ${filters} ${IN_ORDER} limit ${limit + 1}`;
  const isAfterScanned = sql`(c.sort_order, c.id) > (select sort_order, id from last)`;
  const isCommon = sql`(select count(*) from texts) > ${limit}`;
  const found = isIndexed
    ? sql<ListedCardRow>`
        with ${scanned}, near as materialized (${near})
        select * from near union all (${nextCards(search, hasText(text), isAfterScanned, sql`not ${isCommon}`)})
        order by sort_order, id limit ${limit + 1}`
    : sql<ListedCardRow>`with ${scanned} ${near}`;
  const lastScanned = sql<CardKey>`
    with ${scanned} select sort_order, id from last
    where ${isIndexed ? isCommon : sql`true`} and exists (select from cards c where ${place} and ${isAfterScanned})`;
  return orContinue(context, await readCards(context, search, found), lastScanned);
}

async function readCards(
  { db, caller }: ProjectContext,
  { limit }: Search,
  cards: RawBuilder<ListedCardRow>,
  { isPrepared = false } = {},
) {
  const page = cutToResponseSize('cards', cards, ListedCard.keyof().options, ['sort_order', 'id']);
  const found = await query(db, isPrepared ? page : plannedEachTime(page));
  const project_id = found[0]?.project_id;
  if (project_id != null) caller.actedIn?.push({ project_id });
  return toPage('cards', found, limit, ['sort_order', 'id']);
}

/** A page that was not filled continues where the scan ended. */
async function orContinue(
  { db }: ProjectContext,
  page: Awaited<ReturnType<typeof readCards>>,
  lastScanned: RawBuilder<CardKey>,
) {
  if (page.next_cursor !== null) return page;
  const [last] = await query(db, plannedEachTime(lastScanned));
  return { ...page, next_cursor: last ? toCursor([last.sort_order, last.id]) : null };
}

/** Where a page ends, in the order of cards. */
type CardKey = Pick<CardRow, 'sort_order' | 'id'>;

/**
 * Cards of the project of the board, group or tag that a filter names, unless X-Project-Id selects one; without such a filter, of
 * the default one. A board, group or tag where the caller has no access finds no cards, like an unknown one. Its project is checked
 * on itself and not on each card, so that its own index finds the cards.
 */
async function isInProject(
  { db, caller }: ProjectContext,
  { board_id, group_id, tag_id }: Partial<CardList>,
): Promise<RawBuilder<unknown>> {
  const permit = bound(permitOf(caller));
  const isOf = (table: 'boards' | 'groups' | 'tags', id: number) => sql`(
    select t.id from ${sql.table(table)} t where t.id = ${id} and ${
      caller.isProjectChosen
        ? sql`t.project_id = ${actingProject(caller).id}`
        : isEnough(roleIn('t.project_id', permit), permit)
    })`;
  if (board_id != null) {
    const groups = sql<{
      id: number;
    }>`select id from groups where board_id = ${isOf('boards', board_id)} and ${live()}`;
    // Read first: the planner then knows how many cards these groups have.
    const ids = (await query(db, groups)).map(({ id }) => id);
    return ids.length === 0 ? sql`false` : sql`c.group_id = ${anyOf(ids)}`;
  }
  if (group_id != null) return sql`c.group_id = ${isOf('groups', group_id)}`;
  if (tag_id != null) return sql`c.tag_id = ${isOf('tags', tag_id)}`;
  return sql`c.project_id = ${actingProject(caller).id}`;
}

/** The columns that are filtered by equality: those with an index, and those that are checked on each card. */
const INDEXED = ['group_id', 'owner_id', 'tag_id'] as const satisfies (keyof Row<'cards'>)[];
const CHECKED = ['status', 'priority'] as const satisfies (keyof Row<'cards'>)[];
const EQUAL = [...INDEXED, ...CHECKED] as const;

/** On how many cards per page the other filters are checked; a thousand take about five milliseconds. */
const CHECKED_CARDS = 5000;

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
