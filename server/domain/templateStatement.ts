import { type RawBuilder, sql } from 'kysely';
import type { z } from 'zod';
import { LARGEST_INTEGER } from '../../shared/limits.ts';
import type { ProjectOutcome } from '../../shared/master.ts';
import { live, nextPosition, plannedEachTime } from '../database/query.ts';

/** What is copied to projects: a whole master board, or one of its cards. */
export type Template = {
  board_id: number;
  tool_key: string | null;
  cardCount: number;
  card?: { id: number; group_id: number };
};

/** Previews the outcomes for the next projects after an id, without changes. */
export function previewStatement(
  template: Template,
  after: number,
  most: number,
): RawBuilder<z.input<typeof ProjectOutcome>> {
  return plannedEachTime(sql`
    with ${missingCopies(template, sql`select id, platform_id from projects where is_active and id > ${after} order by id limit ${most}`)},
    missing_card as (
      select g.project_id from incomplete_group g join master_card m on ${IS_MISSING}
    )
    select outcome.*, p.name as project_name from (${outcomes('missing', template)}) as outcome
    join projects p on p.id = outcome.project_id order by outcome.project_id`);
}

/**
 * Adds missing copies, updates stale ones, and records the outcome of each project in one statement. Rows are written project
 * by project, so that those of one are adjacent in tables and indexes.
 */
export function copyStatement(template: Template, run: number, projects: number[]): RawBuilder<unknown> {
  return plannedEachTime(sql`
    with ${missingCopies(template, sql`select id, platform_id from projects where id = any(${projects}::int[])`)}, added_board as (
      insert into boards (project_id, platform_id, master_board_id, title, description, tool_key, is_active, created_by, position)
      select l.project_id, l.platform_id, m.id, m.title, m.description, m.tool_key, m.is_active, m.created_by,
        ${nextPosition(sql`select max(position) from boards b where b.project_id = l.project_id and ${live('b')}`)}
      from missing_board l cross join master_board m
      order by l.project_id
      returning id, project_id
    ), added_group as (
      insert into groups (project_id, platform_id, master_group_id, board_id, title, description, type, color, icon, is_active, is_collapsed, created_by, position)
      select l.project_id, l.platform_id, m.id, coalesce(l.board_id, b.id), m.title, m.description, m.type, m.color, m.icon, m.is_active,
        m.is_collapsed, m.created_by, m.position
      from missing_group l join master_group m on m.id = l.master_group_id left join added_board b on b.project_id = l.project_id
      order by l.project_id, m.position, m.id
      returning id, project_id, master_group_id
    ), last_in_project as (
      select project_id, (
        select coalesce(max(c.sort_order), 0)::bigint from cards c where c.project_id = g.project_id and ${live('c')}) as sort_order
      from incomplete_group g group by project_id
    ), filled_group as materialized (
      select g.project_id, g.platform_id, g.master_group_id, coalesce(g.id, a.id) as id, l.sort_order as last_sort_order, (
        select coalesce(max(c.position), 0)::bigint from cards c where c.group_id = g.id and ${live('c')}) as last_position
      from incomplete_group g join last_in_project l on l.project_id = g.project_id
      left join added_group a on a.project_id = g.project_id and a.master_group_id = g.master_group_id
    ), added_card as (
      insert into cards (project_id, platform_id, master_card_id, group_id, title, short_description, description, evaluation_check,
        tour_key, unique_identifier, is_active, status, priority, created_by, position, sort_order)
      select g.project_id, g.platform_id, m.id, g.id, m.title, m.short_description, m.description, m.evaluation_check,
        m.tour_key, m.unique_identifier, m.is_active, m.status, m.priority, m.created_by,
        least(g.last_position + m.place_in_group, ${LARGEST}), least(g.last_sort_order + m.place_on_board, ${LARGEST})
      from filled_group g join master_card m on ${IS_MISSING}
      order by g.project_id, m.place_on_board
      returning project_id
    ), updated_card as (
      update cards c set ${sql.join(TEMPLATE_FIELDS.map((field) => sql`${sql.ref(field)} = ${sql.ref(`m.${field}`)}`))}, updated_at = now()
      from master_card m
      where c.id = any(array(select id from stale_card))
      returning c.project_id
    )
    insert into template_outcomes (run_id, project_id, outcome, reason, boards_added, groups_added, cards_added, cards_updated)
    select ${run}, project_id, outcome, reason, boards_added, groups_added, cards_added, cards_updated from (${outcomes('added', template)}) as outcome`);
}

const LARGEST = sql.lit(LARGEST_INTEGER);

/** A master card `m` of which a group `g` in a project has no copy. */
const IS_MISSING = sql`m.group_id = g.master_group_id
  and not exists (select from card_copy c where c.project_id = g.project_id and c.master_card_id = m.id)`;

/** Limits rows to the range of project ids, which is one index range per template. */
const AMONG_TARGETS = sql`project_id between (select min(project_id) from target) and (select max(project_id) from target)`;

/**
 * The common table expressions that find the missing copies of a template. Nothing is added to a copy that a project deleted.
 * A live board or group without an id is one that is about to be added.
 * `not exists` instead of `on conflict`, which would use up an id for each existing row. `offset 0` forces the right index,
 * since outdated statistics would choose another.
 */
function missingCopies({ board_id, tool_key, card }: Template, projects: RawBuilder<unknown>): RawBuilder<unknown> {
  const onlyGroup = card ? sql`and id = ${card.group_id}` : sql``;
  const onlyCard = card ? sql`and c.id = ${card.id}` : sql``;
  return sql`
    target as materialized (
      select p.id as project_id, p.platform_id, (${tool_key}::text is null or exists (
        select from project_tools t where t.project_id = p.id and t.tool_key = ${tool_key})) as has_access
      from (${projects}) as p
    ), master_board as (
      select * from boards where id = ${board_id}
    ), master_group as materialized (
      select * from groups where board_id = ${board_id} and ${live()} ${onlyGroup}
    ), master_card as materialized (
      select c.*, row_number() over (partition by g.id order by c.position, c.id) as place_in_group,
        row_number() over (order by g.position, g.id, c.position, c.id) as place_on_board
      from master_group g cross join lateral (
        select * from cards c where c.group_id = g.id and ${live('c')} ${onlyCard} offset 0) as c
    ), board_copy as materialized (
      select b.project_id, b.id, b.deleted_at from boards b where b.master_board_id = ${board_id} and b.${AMONG_TARGETS}
    ), group_copy as materialized (
      select g.project_id, g.id, g.master_group_id, g.deleted_at from groups g
      where g.master_group_id = any(array(select id from master_group)) and g.${AMONG_TARGETS}
    ), card_copy as materialized (
      select c.project_id, c.master_card_id from cards c
      where c.master_card_id = any(array(select id from master_card)) and c.${AMONG_TARGETS}
    ), complete_project as materialized (
      select project_id from card_copy group by project_id having count(*) = (select count(*) from master_card)
    ), missing_board as materialized (
      select t.project_id, t.platform_id from target t
      where t.has_access and not exists (select from board_copy b where b.project_id = t.project_id)
    ), live_board as materialized (
      select t.project_id, t.platform_id, b.id from target t join board_copy b on b.project_id = t.project_id
      where t.has_access and ${live('b')}
      union all
      select project_id, platform_id, null from missing_board
    ), missing_group as materialized (
      select b.project_id, b.platform_id, b.id as board_id, m.id as master_group_id from live_board b cross join master_group m
      where not exists (select from group_copy g where g.project_id = b.project_id and g.master_group_id = m.id)
    ), live_group as (
      select b.project_id, b.platform_id, g.id, g.master_group_id from live_board b join group_copy g on g.project_id = b.project_id
      where ${live('g')}
      union all
      select project_id, platform_id, null, master_group_id from missing_group
    ), incomplete_group as materialized (
      select * from live_group g where not exists (select from complete_project c where c.project_id = g.project_id)
    ), stale_card as materialized (
      ${card ? staleCards(card.id) : sql`select null::int as id, null::int as project_id where false`}
    )`;
}

/** Copies of a card whose template fields differ from the template. */
const staleCards = (id: number) => sql`
  select c.id, c.project_id
  from (select * from cards c where c.master_card_id = ${id} and c.${AMONG_TARGETS} offset 0) as c
  join target t on t.project_id = c.project_id cross join master_card m
  where t.has_access and ${live('c')} and (${templateFields('c')}) is distinct from (${templateFields('m')})`;

/** The fields that a push keeps equal in all copies; the others belong to the project after the copy. */
const TEMPLATE_FIELDS = [
  'title',
  'short_description',
  'description',
  'evaluation_check',
  'tour_key',
  'unique_identifier',
  'is_active',
];
const templateFields = (table: string) => sql.join(TEMPLATE_FIELDS.map((field) => sql.ref(`${table}.${field}`)));

/** The outcome of each project, counted from missing rows (preview) or added rows (run). */
function outcomes(counted: 'missing' | 'added', { card }: Template): RawBuilder<unknown> {
  const count = (noun: string) =>
    sql`left join (select project_id, count(*)::int as count from ${sql.table(`${counted}_${noun}`)} group by project_id) as ${sql.ref(noun)} using (project_id)`;
  const updated = sql.table(counted === 'added' ? 'updated_card' : 'stale_card');
  const deletedCard = card
    ? sql`exists (select from cards c where c.project_id = t.project_id and c.master_card_id = ${card.id} and c.deleted_at is not null)`
    : sql`false`;
  return sql`
    select project_id, boards_added, groups_added, cards_added, cards_updated, outcome,
      case when outcome <> 'skipped' then null when has_access then 'deleted_by_project' else 'no_access' end as reason
    from (
      select *, case when not has_access then 'skipped' when boards_added + groups_added + cards_added > 0 then 'added'
        when cards_updated > 0 then 'updated' when is_deleted then 'skipped' else 'unchanged' end as outcome
      from (
      select t.project_id, t.has_access, o.project_id is null or ${deletedCard} as is_deleted,
        coalesce(board.count, 0) as boards_added, coalesce("group".count, 0) as groups_added,
        coalesce(card.count, 0) as cards_added, coalesce(updated.count, 0) as cards_updated
      from target t left join live_board o using (project_id)
      ${count('board')} ${count('group')} ${count('card')}
      left join (select project_id, count(*)::int as count from ${updated} group by project_id) as updated using (project_id)
      ) as counted
    ) as judged`;
}
