import { type RawBuilder, sql } from 'kysely';
import type { z } from 'zod';
import { LARGEST_INTEGER } from '../../../shared/limits.ts';
import type { ProjectOutcome } from '../../../shared/templateRun.ts';
import { live, plannedEachTime } from '../../database/query.ts';
import type { SignedInContext } from '../access/context.ts';
import { copiedColumns, namesOf } from '../board/columns.ts';
import type { Published } from './release.ts';
import { findCopies, type Template } from './templateCopies.ts';
import { projectEventParts } from './templateEvent.ts';
import { updateCopies } from './templateFields.ts';
import { IS_ADDED } from './templateIdentifiers.ts';
import type { Part, Source } from './templateSource.ts';

/** Previews the outcomes for the next projects after an id, without changes. */
export function previewStatement(
  template: Template,
  after: number,
  most: number,
): RawBuilder<z.input<typeof ProjectOutcome>> {
  return plannedEachTime(sql`
    with ${findCopies(template, { boards: [template.board_id] }, sql`select id, platform_id from projects where is_active and id > ${after} order by id limit ${most}`)},
    missing_card as (
      select g.project_id from incomplete_group g join master_card m on ${IS_ADDED}
    )
    select outcome.*, p.name as project_name from (${outcomes('preview', template)}) as outcome
    join projects p on p.id = outcome.project_id order by outcome.project_id`);
}

/** Adds missing copies, updates stale ones, and records the outcome of each project, with its event, in one statement. */
export function copyStatement(
  context: SignedInContext,
  template: Template & { release: Published },
  run_id: number,
  projects: number[],
): RawBuilder<unknown> {
  const { board_id, release } = template;
  const changed = sql`
    select project_id, target.platform_id, ${SUM} as count from recorded join target using (project_id)
    where outcome in ('added', 'updated')`;
  return plannedEachTime(sql`
    with ${writeCopies(template, { boards: [board_id] }, projects)}, ${placeRelease(sql`${release.id}::int`, template.kind === 'sync' ? sql`true` : sql`t.release_id = ${release.previous_id}`)}, recorded as (
      insert into template_outcomes (run_id, project_id, outcome, reason, ${COUNTS})
      select ${run_id}, project_id, outcome, reason, ${COUNTS} from (${outcomes('run', template)}) as outcome
      returning project_id, outcome, ${COUNTS}
    ), ${projectEventParts(context, { type: 'template.applied', board_id, run_id }, changed)}
    select`);
}

/** Does in one project what syncs of these boards, or of these releases, would do. Returns how many rows it changed. */
export const fillStatement = (source: Source, project: number): RawBuilder<{ count: number }> => {
  const counts = COUNTED.map(({ run, which = sql`` }) => sql`(select count(*) from ${sql.table(run)} ${which})`);
  const release = 'boards' in source ? UNCHANGED_RELEASE : releaseAmong(source.releases);
  return plannedEachTime(
    sql`
      with ${writeCopies({ kind: 'sync' }, source, [project])}, ${placeRelease(release)}
      select (${sql.join(counts, sql` + `)})::int as count`,
  );
};

/**
 * Records which release the projects have from now on, if one is known. A project where all that is new was rolled back keeps the one
 * before.
 */
export const placeRelease = (release: RawBuilder<unknown>, condition = sql`true`) => sql`
  placed as (
    insert into project_templates (project_id, board_id, release_id)
    select project_id, master_board_id, new_id from (
      select t.*, ${release} as new_id from target t
      where t.is_reached and ${condition} and (not (${IS_PINNED}) or t.project_id in (${WRITTEN})) offset 0
    ) as t where new_id is distinct from release_id and new_id is not null
      and (project_id, master_board_id) in (select project_id, master_board_id from live_board)
    on conflict (project_id, board_id) do update set release_id = excluded.release_id
  )`;

/** All templates of a statement. */
const MASTERS = sql`(
  select board_id, row_id from master_board union all select board_id, row_id from master_group
  union all select board_id, row_id from master_card)`;

/** Something was left out, since it was rolled back there. */
const IS_PINNED = sql`t.project_id in (select project_id from pinned where row_id in (select row_id from ${MASTERS} as m where row_id is not null))`;

const releaseAmong = (ids: number[]) =>
  sql`(select r.id from releases r where r.id = any(${ids}::int[]) and r.board_id = t.master_board_id)`;

/** The last release, if the draft has not changed since. */
const UNCHANGED_RELEASE = sql`(
  select r.id from releases r
  where r.board_id = t.master_board_id and r.number = (select max(number) from releases l where l.board_id = t.master_board_id)
    and not exists (
      select from ${MASTERS} as m where m.board_id = t.master_board_id
        and not exists (select from release_rows p where p.release_id = r.id and p.row_id = m.row_id)))`;

/**
 * Writes what `findCopies` found, project by project, so that the rows of one are adjacent in tables and indexes. Copies have no
 * `created_by`: the run knows who made them, and each reference takes time to check.
 *
 * - `added_board`, `added_group`, `added_card`: new copies after the project's own rows, capped at the int4 maximum.
 * - `last_in_project`, `filled_group`: the last positions that new cards follow; a group added above gets its id here.
 * - `updated_board`, `updated_group`, `updated_card`: stale copies, without the fields that the project edited.
 */
export function writeCopies(part: Part, source: Source, projects: number[]): RawBuilder<unknown> {
  return sql`
    ${findCopies(part, source, sql`select id, platform_id from projects where id = any(${projects}::int[])`)}, added_board as (
      insert into boards (project_id, platform_id, master_board_id, ${namesOf(COPIED.boards)}, brought, position)
      select l.project_id, l.platform_id, m.id, ${namesOf(COPIED.boards, 'm')}, m.content,
        least(row_number() over (partition by l.project_id order by m.position, m.id) + (
          select coalesce(max(position), 0) from boards b where b.project_id = l.project_id and ${live('b')}), ${LARGEST})
      from missing_board l join master_board m on m.id = l.master_board_id
      order by l.project_id, m.position, m.id
      returning id, project_id, master_board_id as template_id, master_board_id
    ), added_group as (
      insert into groups (project_id, platform_id, master_group_id, board_id, ${namesOf(COPIED.groups)}, brought, position)
      select l.project_id, l.platform_id, m.id, coalesce(l.board_id, b.id), ${namesOf(COPIED.groups, 'm')}, m.content, m.position
      from missing_group l join master_group m on m.id = l.master_group_id
      left join added_board b on b.project_id = l.project_id and b.master_board_id = m.board_id
      order by l.project_id, m.board_position, m.board_id, m.position
      returning id, project_id, master_group_id as template_id, master_group_id
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
      insert into cards (project_id, platform_id, master_card_id, base_id, group_id, ${namesOf(COPIED.cards)}, position, sort_order)
      select g.project_id, g.platform_id, m.id, m.row_id, g.id, ${namesOf(COPIED.cards, 'm')},
        least(g.last_position + m.place_in_group, ${LARGEST}), least(g.last_sort_order + m.place_on_boards, ${LARGEST})
      from filled_group g join master_card m on ${IS_ADDED}
      order by g.project_id, m.place_on_boards
      returning id, project_id, master_card_id as template_id
    ), ${updateCopies('boards', part)}, ${updateCopies('groups', part)}, ${updateCopies('cards', part)}`;
}

/** What a new copy gets from its template. */
const COPIED = {
  boards: copiedColumns('boards', 'once'),
  groups: copiedColumns('groups', 'once'),
  cards: copiedColumns('cards', 'once'),
};

const LARGEST = sql.lit(LARGEST_INTEGER);

/** What is counted for each project: rows that a preview has found, or that a run has written. */
const COUNTED = [
  { count: 'boards_added', preview: 'missing_board', run: 'added_board' },
  { count: 'groups_added', preview: 'missing_group', run: 'added_group' },
  { count: 'cards_added', preview: 'missing_card', run: 'added_card' },
  { count: 'boards_updated', preview: 'stale_board', run: 'updated_board', which: sql`where is_changed` },
  { count: 'groups_updated', preview: 'stale_group', run: 'updated_group', which: sql`where is_changed` },
  { count: 'cards_updated', preview: 'stale_card', run: 'updated_card', which: sql`where is_changed` },
];
/** The projects that a run has changed. */
const WRITTEN = sql.join(
  COUNTED.map(({ run, which = sql`` }) => sql`select project_id from ${sql.table(run)} ${which}`),
  sql` union all `,
);
const COUNTS = sql.join(COUNTED.map(({ count }) => sql.ref(count)));
const SUM = sql.join(
  COUNTED.map(({ count }) => sql.ref(count)),
  sql` + `,
);

/** The outcome of each project. */
function outcomes(of: 'preview' | 'run', { group_id, card_id }: Part): RawBuilder<unknown> {
  const counts = COUNTED.map(({ count }) => sql`coalesce(${sql.ref(`${count}.count`)}, 0) as ${sql.ref(count)}`);
  const counting = COUNTED.map(
    ({ count, which = sql``, ...rows }) =>
      sql`left join (select project_id, count(*)::int as count from ${sql.table(rows[of])} ${which} group by project_id) as ${sql.ref(count)} using (project_id)`,
  );
  const isGroupDeleted = group_id
    ? sql`exists (select from group_copy g where g.project_id = t.project_id and g.deleted_at is not null)`
    : sql`false`;
  const isCardDeleted = card_id
    ? sql`exists (select from cards c where c.project_id = t.project_id and c.master_card_id = ${card_id} and c.deleted_at is not null)`
    : sql`false`;
  return sql`
    select project_id, ${COUNTS}, outcome,
      case when outcome <> 'skipped' then null when not has_access then 'no_access'
        when is_held then 'held' when is_deleted then 'deleted_by_project' when is_pinned then 'pinned' else 'inactive' end as reason
    from (
      select *, case when not is_reached then 'skipped' when boards_added + groups_added + cards_added > 0 then 'added'
        when boards_updated + groups_updated + cards_updated > 0 then 'updated'
        when is_deleted or is_pinned or not is_active then 'skipped' else 'unchanged' end as outcome
      from (
        select t.project_id, t.has_access, t.is_held, t.is_reached, t.is_active, ${IS_PINNED} as is_pinned,
          b.deleted_at is not null or ${isGroupDeleted} or ${isCardDeleted} as is_deleted, ${sql.join(counts)}
        from target t left join board_copy b using (project_id, master_board_id) ${sql.join(counting, sql` `)}
      ) as counted
    ) as judged`;
}
