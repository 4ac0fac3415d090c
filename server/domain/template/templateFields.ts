import { type RawBuilder, sql } from 'kysely';
import { LARGEST_INTEGER } from '../../../shared/limits.ts';
import type { RunKind } from '../../../shared/templateRun.ts';
import { live } from '../../database/query.ts';
import { copiedColumns, namesOf } from '../board/columns.ts';

/** Which fields a sync or push copies to existing copies, and the SQL for it; `templateCopies.ts` defines the tables it names. */

/** The fields that a push of a card keeps equal in all copies; the others belong to the project after the copy. */
const CARD_FIELDS = copiedColumns('cards', 'always');

/** The fields that a sync, and pushes of boards and groups, bring to copies, except those that the project changed. */
const FIELDS = {
  boards: copiedColumns('boards', 'always'),
  groups: [...copiedColumns('groups', 'always'), 'position'],
};

type Copied = keyof typeof FIELDS;

/** The values of these fields as JSON: what the column `brought` stores. */
export const valuesOf = (table: Copied, alias: string) =>
  sql`jsonb_build_object(${sql.join(FIELDS[table].map((field) => sql`${sql.lit(field)}, ${sql.ref(`${alias}.${field}`)}`))})`;

/** Limits rows to the range of project ids, which is one index range per template. */
export const AMONG_TARGETS = sql`project_id between (select min(project_id) from target) and (select max(project_id) from target)`;

/**
 * The groups of the master boards with distinct positions; ties break by id. Copies that are added at different times would
 * otherwise be ordered by their own ids.
 */
export const orderedGroups = sql`
  select id, board_id, board_position, ${namesOf(copiedColumns('groups', 'once'))},
    least(place + max(position - place) over (partition by board_id order by place), ${sql.lit(LARGEST_INTEGER)})::int as position
  from (
    select g.*, b.position as board_position, row_number() over (partition by b.id order by g.position, g.id) as place
    from master_board b cross join lateral (select * from groups g where g.board_id = b.id and ${live('g')} offset 0) as g
  ) as g`;

/** Copies of a card whose template fields differ from the template. */
export const staleCards = (id: number) => sql`
  select c.id, c.project_id, m.id as template_id
  from (select * from cards c where c.master_card_id = ${id} and c.${AMONG_TARGETS} offset 0) as c
  join target t on t.project_id = c.project_id cross join master_card m
  where t.has_access and ${live('c')} and (${namesOf(CARD_FIELDS, 'c')}) is distinct from (${namesOf(CARD_FIELDS, 'm')})`;

/** A push brings the fields of its card; a sync only changes the template of an adopted card. */
export function updateCards(kind: RunKind): RawBuilder<unknown> {
  const fields = kind === 'push' ? CARD_FIELDS : [];
  const values = fields.map((field) => sql`${sql.ref(field)} = ${sql.ref(`m.${field}`)}`);
  return sql`
    update cards c set ${sql.join([sql`master_card_id = m.id`, ...values, sql`updated_at = now()`])}
    from stale_card s join master_card m on m.id = s.template_id
    where c.id = any(array(select id from stale_card)) and c.id = s.id
    returning c.project_id`;
}

/**
 * Copies of a master board or groups to update; those without `is_changed` only get new synced values. The first condition is
 * for speed: it excludes copies that equal their template, which most do.
 */
export function staleCopies(table: Copied): RawBuilder<unknown> {
  const { templates, template_id } = NAMES[table];
  const followed = sql.join(FIELDS[table].map((field) => followedValue(table, field)));
  const current = namesOf(FIELDS[table], 'c');
  return sql`
    select c.id, c.project_id, m.id as template_id, (${followed}) is distinct from (${current}) as is_changed
    from (select * from ${sql.table(table)} c where c.${template_id} = any(array(select id from ${templates})) and c.${AMONG_TARGETS} offset 0) as c
    join ${templates} m on m.id = c.${template_id} join target t on t.project_id = c.project_id and t.master_board_id = m.board_id
    where t.has_access and ${live('c')} and (${current}, c.brought) is distinct from (${namesOf(FIELDS[table], 'm')}, m.content)
      and (${followed}, ${followedValues(table)}) is distinct from (${current}, c.brought)`;
}

/** Reads the current values from the row that it updates: a concurrent edit by the project is not overwritten. */
export function updateCopies(table: Copied): RawBuilder<unknown> {
  const { templates, stale } = NAMES[table];
  const values = FIELDS[table].map((field) => sql`${sql.ref(field)} = ${followedValue(table, field)}`);
  return sql`
    update ${sql.table(table)} c set ${sql.join(values)}, brought = ${followedValues(table)},
      updated_at = case when s.is_changed then now() else c.updated_at end
    from ${stale} s join ${templates} m on m.id = s.template_id
    where c.id = any(array(select id from ${stale})) and c.id = s.id
    returning c.project_id, s.is_changed`;
}

const NAMES = {
  boards: {
    templates: sql.table('master_board'),
    template_id: sql.ref('master_board_id'),
    stale: sql.table('stale_board'),
  },
  groups: {
    templates: sql.table('master_group'),
    template_id: sql.ref('master_group_id'),
    stale: sql.table('stale_group'),
  },
};

/** The values of the last sync or push. If null: own values when never edited, else the template's. */
const syncedValues = (table: Copied) =>
  sql`coalesce(c.brought, case when c.updated_at = c.created_at then ${valuesOf(table, 'c')} else m.content end)`;

/** A copy `c` follows its template `m` in a field until the project edits it. */
const follows = (table: Copied, field: string) =>
  sql`(${sql.ref(`c.${field}`)}::text is not distinct from ${syncedValues(table)}->>${sql.lit(field)} or ${sql.ref(`c.${field}`)} is not distinct from ${sql.ref(`m.${field}`)})`;

const followedValue = (table: Copied, field: string) =>
  sql`case when ${follows(table, field)} then ${sql.ref(`m.${field}`)} else ${sql.ref(`c.${field}`)} end`;

/** The synced values after this update. */
const followedValues = (table: Copied) =>
  sql`jsonb_build_object(${sql.join(
    FIELDS[table].map(
      (field) =>
        sql`${sql.lit(field)}, case when ${follows(table, field)} then m.content else ${syncedValues(table)} end->${sql.lit(field)}`,
    ),
  )})`;
