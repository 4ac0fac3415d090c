import { type RawBuilder, sql } from 'kysely';
import { LARGEST_INTEGER } from '../../../shared/limits.ts';
import type { RunKind } from '../../../shared/templateRun.ts';
import { live } from '../../database/query.ts';
import { copiedColumns, namesOf } from '../board/columns.ts';

/** Where the templates of a statement come from: the draft, which is the master rows as they are now, or releases. */
export type Source = { boards: number[] } | { releases: number[] };

/** Which rows of master boards are copied. */
export type Part = {
  /** A rollout also brings the fields of cards, except those that a project has edited. */
  kind: RunKind | 'rollout';
  /** Fields that a rollout brings even where a project has edited them. */
  overwrite?: readonly string[];
  /** Only this group, or the group of the card. */
  group_id?: number;
  /** Only this card. */
  card_id?: number;
};

export type Copied = 'boards' | 'groups' | 'cards';

/** A live copy has the identifier of its master card at once, so releases don't have it. */
export const IDENTIFIER = 'unique_identifier';

/**
 * What a release stores of a row: all that a new copy gets. The place of a card is beside it, so that a moved card is no new content;
 * that of a group is a field that copies follow.
 */
export const RELEASED: Record<Copied, string[]> = {
  boards: copiedColumns('boards', 'once'),
  groups: [...copiedColumns('groups', 'once'), 'position'],
  cards: copiedColumns('cards', 'once').filter((column) => column !== IDENTIFIER),
};

/** The fields that existing copies can get. */
export const FIELDS: Record<Copied, string[]> = {
  boards: copiedColumns('boards', 'always'),
  groups: [...copiedColumns('groups', 'always'), 'position'],
  cards: copiedColumns('cards', 'always').filter((column) => column !== IDENTIFIER),
};

export const NOUNS = { boards: 'board', groups: 'group', cards: 'card' } as const;

/** The values of these columns of a row, as JSON. */
export const valuesOf = (columns: readonly string[], alias: string) =>
  sql`jsonb_build_object(${sql.join(columns.map((column) => sql`${sql.lit(column)}, ${sql.ref(`${alias}.${column}`)}`))})`;

/** What a release would store of this row of the draft. */
const releasedOf = (table: Copied, alias: string) => valuesOf(RELEASED[table], alias);

/** The stored content that equals this row of the draft; null if it was never published. */
const rowOf = (table: Copied, alias: string) => sql`(
  select r.id from template_rows r
  where r.${sql.ref(`${NOUNS[table]}_id`)} = ${sql.ref(`${alias}.id`)} and r.digest = md5((${releasedOf(table, alias)})::text))`;

/**
 * The common table expressions `master_board`, `master_group` and `master_card` with the live templates. Besides the columns of
 * their tables: the content in `template_rows` that they equal (`row_id`), and the values that existing copies get (`content`).
 * Groups have distinct positions, cards are numbered in order. `groups` and `cards` limit which are among them.
 */
export function templatesOf(
  source: Source,
  { groups = sql`true`, cards = sql`true`, isAddable = sql`true` }: Record<string, RawBuilder<unknown>>,
): RawBuilder<unknown> {
  const isDraft = 'boards' in source;
  return sql`
    ${isDraft ? sql`` : releasedRows(source.releases)}
    master_board as materialized (
      select b.*, b.id as board_id, ${valuesOf(FIELDS.boards, 'b')} as content from (${isDraft ? draftBoards(source.boards) : RELEASED_BOARDS}) as b
    ), master_group as materialized (
      select g.*, ${valuesOf(FIELDS.groups, 'g')} as content from (${isDraft ? DRAFT_GROUPS : RELEASED_GROUPS}) as g where ${groups}
    ), master_card as materialized (
      select c.*, g.board_id, ${valuesOf(FIELDS.cards, 'c')} as content, ${isAddable} as is_addable,
        row_number() over (partition by g.id order by c.position, c.id) as place_in_group,
        row_number() over (order by g.board_position, g.board_id, g.position, g.id, c.position, c.id) as place_on_boards
      from master_group g ${isDraft ? DRAFT_CARDS : RELEASED_CARDS} where ${cards}
    )`;
}

const draftBoards = (ids: number[]) => sql`
  select b.*, ${rowOf('boards', 'b')} as row_id from boards b where b.id = any(${ids}::int[]) and b.is_master and ${live('b')}`;

/** Ties break by id: copies that are added at different times would otherwise be ordered by their own ids. */
const ORDERED_GROUPS = sql`
  select id, board_id, board_position, ${namesOf(copiedColumns('groups', 'once'))},
    least(place + max(position - place) over (partition by board_id order by place), ${sql.lit(LARGEST_INTEGER)})::int as position
  from (
    select g.*, b.position as board_position, row_number() over (partition by b.id order by g.position, g.id) as place
    from master_board b cross join lateral (select * from groups g where g.board_id = b.id and ${live('g')} offset 0) as g
  ) as g`;

const DRAFT_GROUPS = sql`
  select g.*, ${rowOf('groups', 'g')} as row_id from (${ORDERED_GROUPS}) as g`;

const DRAFT_CARDS = sql`
  cross join lateral (
    select c.*, ${rowOf('cards', 'c')} as row_id from cards c where c.group_id = g.id and ${live('c')} offset 0) as c`;

/** Rows whose master row was deleted since are left out. The fields of a release take the place of those of the draft. */
const releasedRows = (releases: number[]) => sql`
  released as materialized (
    select r.*, p.parent_id, p.position from release_rows p join template_rows r on r.id = p.row_id
    where p.release_id = any(${releases}::int[])
  ),`;

/** The master row of a released one, by its id, whatever the planner believes. */
const masterRow = (table: Copied) => sql`
  cross join lateral (select m from ${sql.table(table)} m where m.id = r.${sql.ref(`${NOUNS[table]}_id`)} and ${live('m')} offset 0) as found`;

const RELEASED_BOARDS = sql`
  select b.*, r.id as row_id from released r ${masterRow('boards')} cross join lateral jsonb_populate_record(found.m, r.content) as b`;

const RELEASED_GROUPS = sql`
  select g.id, g.board_id, b.position as board_position, ${namesOf(RELEASED.groups, 'g')}, r.id as row_id
  from released r ${masterRow('groups')}
  cross join lateral jsonb_populate_record(found.m, r.content) as g
  join master_board b on b.id = g.board_id`;

const RELEASED_CARDS = sql`
  join released r on r.parent_id = g.id and r.card_id is not null ${masterRow('cards')}
  cross join lateral (
    select c.*, r.id as row_id
    from jsonb_populate_record(found.m, r.content || jsonb_build_object('position', r.position, 'group_id', r.parent_id)) as c) as c`;
