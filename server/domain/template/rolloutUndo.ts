import { type RawBuilder, sql } from 'kysely';
import { useIndexes } from '../../database/bulk.ts';
import { lockProjects } from '../../database/projectLock.ts';
import { anyOf, type Db, live, query } from '../../database/query.ts';
import { BY_THE_SERVICE } from '../event/event.ts';
import type { Rolled } from './rolloutStatement.ts';
import { projectEventParts } from './templateEvent.ts';
import { type Copied, FIELDS, NOUNS } from './templateSource.ts';

/**
 * Takes a rollout back in these projects: restores what it changed and the project did not, removes what it added and the project
 * did not touch, and pins its contents there. What stays is in the report. Rows are removed for good: they were never touched, and
 * a later release can bring them again.
 */
export async function takeBack(db: Db, rollout: Rolled, projects: number[]): Promise<void> {
  await lockProjects(db, sql`id = ${anyOf(projects)}`);
  await useIndexes(db);
  const mine = sql`ch.rollout_id = ${rollout.id} and ch.project_id = ${anyOf(projects)}`;
  for (const table of ['cards', 'groups', 'boards'] as const) {
    await query(db, restoreFields(table, mine));
    await query(db, removeAdded(table, mine));
  }
  await query(db, record(rollout, projects, mine));
}

/** A field is restored if it still has the value that the rollout brought. */
function restoreFields(table: Copied, mine: RawBuilder<unknown>): RawBuilder<unknown> {
  const fields = FIELDS[table];
  const noun = NOUNS[table];
  const isRestored = (field: string) =>
    sql`(ch.before ? ${sql.lit(field)} and ${sql.ref(`c.${field}`)}::text is not distinct from r.content->>${sql.lit(field)})`;
  const restored = fields.map((field) => sql`case when ${isRestored(field)} then ${sql.lit(field)} end`);
  const sets = fields.map(
    (field) =>
      sql`${sql.ref(field)} = case when ${sql.lit(field)} = any(l.restored) then ${sql.ref(`o.${field}`)} else ${sql.ref(`c.${field}`)} end`,
  );
  // A restored field is compared with what it was compared with before the rollout.
  const bases = sql`coalesce((
    select jsonb_object_agg(field, l.base->field) from unnest(l.restored) as field where l.base ? field), '{}')`;
  const base =
    table === 'cards'
      ? sql`base_values = coalesce(c.base_values, '{}') || ${bases}`
      : sql`brought = coalesce(c.brought, '{}') || ${bases}`;
  return sql`
    with locked as materialized (
      select ch.rollout_id, ch.project_id, ch.copy_id, ch.row_id, ch.before, ch.base,
        case when ${live('c')} then array_remove(array[${sql.join(restored)}]::text[], null) else '{}' end as restored
      from rollout_changes ch join template_rows r on r.id = ch.row_id
      join ${sql.table(table)} c on c.id = ch.copy_id
      where ${mine} and ch.noun = ${sql.lit(noun)} and ch.before is not null for no key update of c
    ), updated as (
      update ${sql.table(table)} c set ${sql.join(sets)}, ${base}, updated_at = now()
      from locked l cross join lateral jsonb_populate_record(null::${sql.table(table)}, l.before) as o
      where c.id = l.copy_id and cardinality(l.restored) > 0
    )
    update rollout_changes ch set undone = l.restored from locked l
    where (ch.rollout_id, ch.project_id, ch.copy_id) = (l.rollout_id, l.project_id, l.copy_id) and ch.noun = ${sql.lit(noun)}`;
}

/** Nobody changed, moved, deleted or commented it, or put anything on it. */
const UNTOUCHED: Record<Copied, RawBuilder<unknown>> = {
  cards: sql`not exists (select from comments o where o.card_id = c.id) and not exists (select from tour_dismissals o where o.card_id = c.id)`,
  groups: sql`not exists (select from cards o where o.group_id = c.id)`,
  boards: sql`not exists (select from groups o where o.board_id = c.id)`,
};

const removeAdded = (table: Copied, mine: RawBuilder<unknown>) => sql`
  with added as materialized (
    select ch.rollout_id, ch.project_id, ch.copy_id from rollout_changes ch
    where ${mine} and ch.noun = ${sql.lit(NOUNS[table])} and ch.before is null
  ), removed as (
    delete from ${sql.table(table)} c where id in (select copy_id from added) and ${live('c')} and updated_at = created_at and ${UNTOUCHED[table]}
    returning id
  )
  update rollout_changes ch set undone = case when r.id is null then '{}' else '{row}' end::text[]
  from added a left join removed r on r.id = a.copy_id
  where (ch.rollout_id, ch.project_id, ch.copy_id) = (a.rollout_id, a.project_id, a.copy_id) and ch.noun = ${sql.lit(NOUNS[table])}`;

/** The counts and the event of each project, its pins, and the release that it has again. */
const record = (rollout: Rolled, projects: number[], mine: RawBuilder<unknown>) => {
  const { id: rollout_id, board_id, user_id: by_user_id } = rollout;
  const changed = sql`
    select project_id, p.platform_id, restored + removed as count from counted join projects p on p.id = counted.project_id
    where restored + removed > 0`;
  return sql`
    with counted as materialized (
      select project_id, array_agg(row_id) as contents,
        coalesce(sum(cardinality(undone)) filter (where before is not null), 0)::int as restored,
        count(*) filter (where before is null and undone <> '{}')::int as removed,
        (coalesce(sum((select count(*) from jsonb_object_keys(before)) - cardinality(undone)) filter (where before is not null), 0)
          + count(*) filter (where before is null and undone = '{}'))::int as left_over
      from rollout_changes ch where ${mine} group by project_id
    ), recorded as (
      update rollout_targets t set state = 'rolled_back', updated_at = now(), fields_restored = c.restored, rows_removed = c.removed,
        left_by_rollback = c.left_over
      from unnest(${projects}::int[]) as p (project_id) left join counted using (project_id)
      cross join lateral (
        select coalesce(restored, 0) as restored, coalesce(removed, 0) as removed, coalesce(left_over, 0) as left_over) as c
      where t.rollout_id = ${rollout_id} and t.project_id = p.project_id
      returning t.project_id, t.previous_release_id
    ), pinned as (
      insert into project_templates as pt (project_id, board_id, release_id, pinned)
      select r.project_id, ${board_id}, l.id, coalesce(c.contents, '{}') from recorded r left join counted c using (project_id)
      left join releases l on l.id = r.previous_release_id
      on conflict (project_id, board_id) do update set
        release_id = case when pt.release_id = ${rollout.release_id} then excluded.release_id else pt.release_id end,
        pinned = array(select distinct unnest(pt.pinned || excluded.pinned) order by 1)
    ), ${projectEventParts(BY_THE_SERVICE, { type: 'template.rolled_back', board_id, rollout_id, by_user_id }, changed)}
    select`;
};
