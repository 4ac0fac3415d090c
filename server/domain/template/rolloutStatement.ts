import { type RawBuilder, sql } from 'kysely';
import type { Stage } from '../../../shared/rollout.ts';
import { plannedEachTime } from '../../database/query.ts';
import type { EventContext } from '../event/event.ts';
import { LONGEST_SHOWN } from './release.ts';
import { findCopies } from './templateCopies.ts';
import { projectEventParts } from './templateEvent.ts';
import { comparedCopies } from './templateFields.ts';
import { IS_ADDED } from './templateIdentifiers.ts';
import type { Part } from './templateSource.ts';
import { placeRelease, writeCopies } from './templateStatement.ts';

/** What the statements of a rollout need to know about it. */
export type Rolled = {
  id: number;
  board_id: number;
  release_id: number;
  overwrite: string[];
  user_id: number | null;
};

const partOf = ({ overwrite }: Pick<Rolled, 'overwrite'>): Part => ({ kind: 'rollout', overwrite });

/** What a rollout would do to these projects: `added` rows, `compared` ones with their fields, and `left_out` ones. */
const comparison = (rollout: Rolled, projects: RawBuilder<unknown>) => sql`
  ${findCopies(partOf(rollout), { releases: [rollout.release_id] }, projects)}, added as materialized (
    select l.project_id, 'board' as noun, m.id as master_id, m.row_id, m.title from missing_board l join master_board m on m.id = l.master_board_id
    union all
    select l.project_id, 'group', m.id, m.row_id, m.title from missing_group l join master_group m on m.id = l.master_group_id
    union all
    select g.project_id, 'card', m.id, m.row_id, m.title from incomplete_group g join master_card m on ${IS_ADDED}
  ), compared as materialized (
    ${comparedCopies('boards', partOf(rollout))} union all ${comparedCopies('groups', partOf(rollout))} union all ${comparedCopies('cards', partOf(rollout))}
  ), left_out as materialized (
    select p.project_id, m.* from pinned p join (
      select 'board' as noun, id as master_id, row_id, title from master_board union all
      select 'group', id, row_id, title from master_group union all select 'card', id, row_id, title from master_card
    ) as m on m.row_id = p.row_id
  )`;

/** The plan of a project. With another digest, the project or the rollout does something else. */
export type Planned = {
  project_id: number;
  has_access: boolean;
  is_held: boolean;
  digest: string;
  rows_added: number;
  fields_changed: number;
  fields_kept: number;
  fields_in_conflict: number;
  rows_pinned: number;
};

const SUMMARY = sql`
  select t.project_id, t.has_access, t.is_held, coalesce(a.count, 0)::int as rows_added, coalesce(c.changed, 0)::int as fields_changed,
    coalesce(c.kept, 0)::int as fields_kept, coalesce(c.conflicts, 0)::int as fields_in_conflict, coalesce(l.count, 0)::int as rows_pinned,
    md5(concat_ws('|', a.lines, c.lines, l.count)) as digest
  from target t
  left join (
    select project_id, count(*) as count, string_agg(noun || master_id || ':' || row_id, ',' order by noun, master_id) as lines
    from added group by project_id
  ) as a using (project_id)
  left join (
    select project_id, sum(cardinality(changed)) as changed, sum(cardinality(kept)) as kept, sum(cardinality(conflicts)) as conflicts,
      string_agg(concat_ws(':', noun, id, row_id, changed, kept, conflicts, md5(own::text)), ',' order by noun, id) as lines
    from compared group by project_id
  ) as c using (project_id)
  left join (select project_id, count(*) as count from left_out group by project_id) as l using (project_id)`;

/**
 * Gives each project the first stage that it belongs to, and leaves out those that belong to none. The order of a percentage is that
 * of a hash of the ids, so that it is always the same; a percentage above 0 is at least one project.
 */
export function assignStages(rollout_id: number, stages: readonly Stage[]): RawBuilder<unknown> {
  const cases = stages.map(({ percent, projects }, at) =>
    projects
      ? sql`when project_id = any(${projects}::int[]) then ${sql.lit(at + 1)}`
      : sql`when number <= ceil(total * ${sql.lit(percent ?? 0)} / 100.0) then ${sql.lit(at + 1)}`,
  );
  return sql`
    with numbered as materialized (
      select project_id, row_number() over (order by hashint4(project_id), project_id) as number, count(*) over () as total
      from rollout_targets where rollout_id = ${rollout_id}
    ), staged as materialized (
      select project_id, case ${sql.join(cases, sql` `)} end as stage from numbered
    ), left_out as (
      delete from rollout_targets t using staged s where t.rollout_id = ${rollout_id} and t.project_id = s.project_id and s.stage is null
    )
    update rollout_targets t set stage = s.stage from staged s
    where t.rollout_id = ${rollout_id} and t.project_id = s.project_id and s.stage <> t.stage`;
}

const activeOf = (projects: number[]) =>
  sql`select id, platform_id from projects where is_active and id = any(${projects}::int[])`;

/** Plans the rollout for those of these projects that have access, in this stage. */
export const planStatement = (rollout: Rolled, stage: number, projects: number[]): RawBuilder<unknown> =>
  plannedEachTime(sql`
    with ${comparison(rollout, activeOf(projects))}
    insert into rollout_targets (rollout_id, project_id, stage, state, is_held, digest, rows_added, fields_changed, fields_kept, fields_in_conflict, rows_pinned)
    select ${rollout.id}, project_id, ${stage}::int, 'planned', is_held, digest, rows_added, fields_changed, fields_kept,
      fields_in_conflict, rows_pinned
    from (${SUMMARY}) as summary where has_access
    on conflict do nothing returning project_id`);

/** What the rollout would do to these projects now. */
export const replanStatement = (rollout: Rolled, projects: number[]): RawBuilder<Planned> =>
  plannedEachTime(sql<Planned>`with ${comparison(rollout, activeOf(projects))} ${SUMMARY}`);

/** The most lines of a preview. */
export const MOST_LINES = 1000;

/** A value of a preview; long texts are cut. */
export const shown = (name: string, value: RawBuilder<unknown> = sql.ref(name)) =>
  sql`case when length(${value} #>> '{}') > ${sql.lit(LONGEST_SHOWN)} then to_jsonb(left(${value} #>> '{}', ${sql.lit(LONGEST_SHOWN)}) || '…') else ${value} end as ${sql.ref(name)}`;

/** A line of a preview. */
export type Line = {
  noun: string;
  master_id: number;
  id: number | null;
  title: string;
  what: string;
  field: string | null;
  before: unknown;
  after: unknown;
};

/** What the rollout would do to one project, row by row and field by field. */
export const previewRollout = (rollout: Rolled, project: number): RawBuilder<Line> =>
  plannedEachTime(sql<Line>`
    with ${comparison(rollout, activeOf([project]))}, lines as (
      select noun, master_id, null::int as id, title, 'added' as what, null as field, null::jsonb as before, null::jsonb as after from added
      union all
      select noun, master_id, id, title,
        case when field = any(conflicts) then 'conflict' when field = any(kept) then 'kept' else 'changed' end, field, own->field, content->field
      from compared cross join lateral unnest(changed || kept) as field
      union all
      select noun, master_id, null, title, 'pinned', null, null, null from left_out
      union all
      select 'board', m.id, null, m.title, 'held', null, null, null from target t join master_board m on m.id = t.master_board_id where t.is_held
    )
    select noun, master_id, id, title, what, field, ${shown('before')}, ${shown('after')} from lines
    order by noun, master_id, field nulls first limit ${sql.lit(MOST_LINES)}`);

/** Brings the release to these projects, which are locked, and records what it changed, in one statement. */
export const applyStatement = (context: EventContext, rollout: Rolled, projects: number[]): RawBuilder<unknown> => {
  const { id: rollout_id, board_id, user_id: by_user_id } = rollout;
  const changes = (['board', 'group', 'card'] as const).map(
    (noun) => sql`
      select ${sql.lit(noun)} as noun, a.project_id, a.id, m.row_id, null::jsonb as before, null::jsonb as base
      from ${sql.table(`added_${noun}`)} a join ${sql.table(`master_${noun}`)} m on m.id = a.template_id
      union all
      select ${sql.lit(noun)}, project_id, id, row_id, before, base from ${sql.table(`updated_${noun}`)} where is_changed`,
  );
  const changed = sql`
    select c.project_id, t.platform_id, c.rows as count from counted c join target t using (project_id)`;
  return plannedEachTime(sql`
    with ${writeCopies(partOf(rollout), { releases: [rollout.release_id] }, projects)}, ${placeRelease(sql`${rollout.release_id}::int`)},
    touched as materialized (${sql.join(changes, sql` union all `)}
    ), remembered as (
      insert into rollout_changes (rollout_id, project_id, noun, copy_id, row_id, before, base)
      select ${rollout_id}, project_id, noun, id, row_id, before, base from touched
    ), counted as materialized (
      select project_id, count(*)::int as rows, count(*) filter (where before is null)::int as added,
        coalesce(sum((select count(*) from jsonb_object_keys(before))), 0)::int as fields
      from touched group by project_id
    ), recorded as (
      update rollout_targets r set attempts = r.attempts + 1, error = null, updated_at = now(), previous_release_id = t.release_id,
        rows_added = coalesce(c.added, 0), fields_changed = coalesce(c.fields, 0),
        state = case when not t.has_access then 'skipped' when t.is_held then 'held' when c.rows > 0 then 'done' else 'unchanged' end
      from target t left join counted c using (project_id)
      where r.rollout_id = ${rollout_id} and r.project_id = any(${projects}::int[]) and r.project_id = t.project_id
    ), ${projectEventParts(context, { type: 'template.rolled_out', board_id, rollout_id, by_user_id }, changed)}
    select`);
};
