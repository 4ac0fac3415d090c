import { type RawBuilder, sql } from 'kysely';
import type { z } from 'zod';
import type { Drift, DriftList } from '../../../shared/projectTemplate.ts';
import { readCursor, toPage } from '../../database/page.ts';
import { allOf, live, plannedEachTime, query } from '../../database/query.ts';
import type { SignedInContext } from '../access/context.ts';
import { findMaster } from './masterRow.ts';
import { baseOf, isUntouched } from './templateFields.ts';
import { type Copied, FIELDS, NOUNS } from './templateSource.ts';

/** The most fields of a project that are named. */
const MOST_NAMED = 100;

/** Which release each project has of a master board, and how its copies differ from it. */
export async function listDrift({ db }: SignedInContext, input: DriftList) {
  const { board_id, project_id, release_number, is_behind, cursor, limit } = input;
  await findMaster(db, 'boards', board_id, ['id']);
  const [after = 0] = readCursor(cursor, 1);
  const conditions = [
    sql`p.is_active and p.id > ${after}`,
    ...(project_id == null ? [] : [sql`p.id = ${project_id}`]),
    ...(release_number == null ? [] : [sql`r.number = ${release_number}`]),
    ...(is_behind == null ? [] : [sql`(r.id is distinct from last.id) = ${is_behind}`]),
  ];
  const found = await query(
    db,
    plannedEachTime(sql<z.input<typeof Drift>>`
      with last as (
        select id from releases where board_id = ${board_id} order by number desc limit 1
      ), project as materialized (
        select p.id as project_id, p.name as project_name, b.id as copy_id, b.deleted_at, r.number as release_number,
          case when t.hold_until > now() then t.hold_until end as hold_until, coalesce(cardinality(t.pinned), 0) as pinned_count,
          coalesce(r.id, last.id) as release_id
        from boards b join projects p on p.id = b.project_id left join last on true
        left join project_templates t on t.project_id = p.id and t.board_id = ${board_id} left join releases r on r.id = t.release_id
        where b.master_board_id = ${board_id} and ${allOf(conditions)}
        order by p.id limit ${limit + 1}
      ), released as materialized (
        select p.project_id, r.* from project p join release_rows l on l.release_id = p.release_id join template_rows r on r.id = l.row_id
      ), differing as materialized (${sql.join(TABLES.map(differingFields), sql` union all `)}
      ), copied as materialized (${sql.join(TABLES.map(copiesOf), sql` union all `)})
      select p.project_id, p.project_name, case when ${live('p')} then p.copy_id end as board_id, p.release_number, p.hold_until, p.pinned_count,
        coalesce(f.fields, '[]') as fields, coalesce(f.count, 0)::int as fields_count,
        (select count(*)::int from groups g where g.board_id = p.copy_id and g.master_group_id is null and ${live('g')}) + (
          select count(*)::int from groups g join cards c on c.group_id = g.id
          where g.board_id = p.copy_id and c.master_card_id is null and ${live('g')} and ${live('c')}) as rows_added,
        coalesce(c.deleted, 0)::int as rows_deleted, coalesce(c.missing, 0)::int as rows_missing
      from project p left join (
        select project_id, count(*) as count, jsonb_agg(jsonb_build_object('noun', noun, 'id', id, 'field', field, 'is_edited', is_edited)
          order by noun, id, field) filter (where number <= ${sql.lit(MOST_NAMED)}) as fields
        from (select *, row_number() over (partition by project_id order by noun, id, field) as number from differing) as d group by project_id
      ) as f using (project_id) left join (
        select project_id, count(*) filter (where is_deleted) as deleted, count(*) filter (where id is null) as missing from copied group by project_id
      ) as c using (project_id)
      order by p.project_id`),
  );
  return toPage('projects', found, limit, ['project_id']);
}

const TABLES = ['boards', 'groups', 'cards'] as const;

const masterOf = (table: Copied) => sql.ref(`c.master_${NOUNS[table]}_id`);
const released = (table: Copied) => sql.ref(`r.${NOUNS[table]}_id`);

/** The fields of live copies that differ from the release of their project. */
function differingFields(table: Copied): RawBuilder<unknown> {
  const fields = FIELDS[table].map(
    (field) =>
      sql`(${sql.lit(field)}, ${sql.ref(`c.${field}`)} is distinct from ${sql.ref(`m.${field}`)}, not (${isUntouched(field)}))`,
  );
  return sql`
    select c.project_id, ${sql.lit(NOUNS[table])} as noun, c.id, f.field, f.is_edited
    from released r join ${sql.table(table)} c on ${masterOf(table)} = ${released(table)} and c.project_id = r.project_id and ${live('c')}
    cross join lateral (
      select m.*, r.content from jsonb_populate_record(null::${sql.table(table)}, r.content) as m) as m
    cross join lateral (${baseOf(table)}) as b
    cross join lateral (values ${sql.join(fields)}) as f (field, differs, is_edited) where f.differs`;
}

/** The rows of the release with their copies, if there are any. */
const copiesOf = (table: Copied) => sql`
  select r.project_id, c.id, c.deleted_at is not null as is_deleted
  from released r left join ${sql.table(table)} c on ${masterOf(table)} = ${released(table)} and c.project_id = r.project_id
  where ${released(table)} is not null and (r.content->>'is_active')::boolean`;
