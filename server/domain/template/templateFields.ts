import { type RawBuilder, sql } from 'kysely';
import { live } from '../../database/query.ts';
import { namesOf } from '../board/columns.ts';
import { type Copied, FIELDS, IDENTIFIER, NOUNS, type Part, valuesOf } from './templateSource.ts';

/**
 * Which fields existing copies get, and the SQL for it; `templateCopies.ts` defines the tables it names. In all of it, `c` is a
 * copy, `m` its template, and `b.base` the values that the copy once got: a field that differs from them was edited by the project.
 * A board or group has them itself (`brought`), a card names the content (`base_id`), except for single fields (`base_values`).
 */

/**
 * Limits rows to the projects of the step. A sync takes projects with adjacent ids, which are one index range for each template. The
 * projects of a rollout may be far apart.
 */
export const amongTargets = ({ kind }: Part) =>
  kind === 'rollout'
    ? sql`project_id = any(array(select project_id from target))`
    : sql`project_id between (select min(project_id) from target) and (select max(project_id) from target)`;

/** The content of the template `m` was not rolled back in the project of this row. `not in` uses a hash table, mostly empty. */
export const isNotPinned = (alias: string) =>
  sql`(${sql.ref(`${alias}.project_id`)}, coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned)`;

/** A push makes the fields of its card equal in all copies. A sync changes none of a card. */
export const fieldsOf = (table: Copied, { kind }: Part): string[] => {
  if (table !== 'cards') return FIELDS[table];
  return kind === 'sync' ? [] : kind === 'push' ? [...FIELDS.cards, IDENTIFIER] : FIELDS.cards;
};

const masterOf = (table: Copied) => sql.ref(`c.master_${NOUNS[table]}_id`);
const templates = (table: Copied) => sql.table(`master_${NOUNS[table]}`);
const stale = (table: Copied) => sql.table(`stale_${NOUNS[table]}`);

/** Without any record of it: the copy's own values if it was never edited, else the template's. */
export const baseOf = (table: Copied) => sql`
  select coalesce(${table === 'cards' ? sql`(select r.content || coalesce(c.base_values, '{}') from template_rows r where r.id = c.base_id)` : sql`c.brought`},
    case when c.updated_at = c.created_at then ${valuesOf(FIELDS[table], 'c')} else m.content end) as base offset 0`;

const current = (field: string) => sql.ref(`c.${field}`);
const template = (field: string) => sql.ref(`m.${field}`);

/** The field is as the project got it. */
export const isUntouched = (field: string) =>
  sql`${current(field)}::text is not distinct from b.base->>${sql.lit(field)}`;

const isOverwritten = ({ kind, overwrite = [] }: Part, field: string) => kind === 'push' || overwrite.includes(field);

/** A copy follows its template in a field until the project edits it. */
const follows = (part: Part, field: string) =>
  isOverwritten(part, field)
    ? sql`true`
    : sql`(${isUntouched(field)} or ${current(field)} is not distinct from ${template(field)})`;

const followedValue = (part: Part, field: string) =>
  isOverwritten(part, field)
    ? template(field)
    : sql`case when ${follows(part, field)} then ${template(field)} else ${current(field)} end`;

/** The base after this update: `brought`, or the fields of a card that keep another one. */
function followedBase(table: Copied, part: Part): RawBuilder<unknown> {
  if (table !== 'cards') {
    const values = FIELDS[table].map(
      (field) =>
        sql`${sql.lit(field)}, case when ${follows(part, field)} then m.content else b.base end->${sql.lit(field)}`,
    );
    return sql`jsonb_build_object(${sql.join(values)})`;
  }
  const kept = FIELDS.cards.map(
    (field) => sql`case when not ${follows(part, field)} and b.base->${sql.lit(field)} <> m.content->${sql.lit(field)}
      then jsonb_build_object(${sql.lit(field)}, b.base->${sql.lit(field)}) else '{}' end`,
  );
  return sql`nullif(${sql.join(kept, sql` || `)}, '{}')`;
}

/** Live copies with their templates and bases, in projects that are reached. */
const copiesOf = (table: Copied, part: Part) => sql`
  (select * from ${sql.table(table)} c where ${masterOf(table)} = any(array(select id from ${templates(table)})) and c.${amongTargets(part)} offset 0) as c
  join ${templates(table)} m on m.id = ${masterOf(table)} join target t on t.project_id = c.project_id and t.master_board_id = m.board_id
  cross join lateral (${baseOf(table)}) as b
  where t.is_reached and ${live('c')} and ${isNotPinned('c')}`;

/**
 * How copies differ from their templates, for a preview: the fields that would change, those that stay since the project edited
 * them, and those of these that the template has changed, too.
 */
export function comparedCopies(table: Copied, part: Part): RawBuilder<unknown> {
  const fields = fieldsOf(table, part);
  const differs = (field: string) => sql`${current(field)} is distinct from ${template(field)}`;
  const named = (condition: (field: string) => RawBuilder<unknown>) =>
    sql`array_remove(array[${sql.join(fields.map((field) => sql`case when ${differs(field)} and ${condition(field)} then ${sql.lit(field)} end`))}]::text[], null)`;
  const isKept = (field: string) => sql`not ${follows(part, field)}`;
  const isConflict = (field: string) =>
    sql`${isKept(field)} and b.base->>${sql.lit(field)} is distinct from m.content->>${sql.lit(field)}`;
  return sql`
    select c.project_id, ${sql.lit(NOUNS[table])} as noun, c.id, m.id as master_id, m.row_id, m.title,
      ${named((field) => follows(part, field))} as changed, ${named(isKept)} as kept, ${named(isConflict)} as conflicts,
      ${valuesOf(fields, 'c')} as own, m.content
    from ${copiesOf(table, part)} and (${namesOf(fields, 'c')}) is distinct from (${namesOf(fields, 'm')})`;
}

/**
 * Copies to update; those without `is_changed` only get another base. The first condition on the values is for speed: it excludes
 * copies that equal their template, which most do.
 */
export function staleCopies(table: Copied, part: Part): RawBuilder<unknown> {
  const fields = fieldsOf(table, part);
  const followed = sql.join(fields.map((field) => followedValue(part, field)));
  const own = namesOf(fields, 'c');
  const isCard = table === 'cards';
  const differs = isCard
    ? sql`((${own}) is distinct from (${namesOf(fields, 'm')}) or c.base_id is distinct from m.row_id or c.base_values is not null)`
    : sql`(${own}, c.brought) is distinct from (${namesOf(fields, 'm')}, m.content)`;
  const bases = isCard
    ? sql`(m.row_id, ${followedBase(table, part)}) is distinct from (c.base_id, c.base_values)`
    : sql`${followedBase(table, part)} is distinct from c.brought`;
  return sql`
    select c.id, c.project_id, m.id as template_id, (${followed}) is distinct from (${own}) as is_changed
    from ${copiesOf(table, part)} and ${differs}
      and ((${followed}) is distinct from (${own}) or ${bases})`;
}

/**
 * The parts that update what is stale. The rows are locked and read again first (`locked_…`): an edit of the project that was saved
 * meanwhile is not overwritten, and `before` is what the update replaces.
 */
export function updateCopies(table: Copied, part: Part): RawBuilder<unknown> {
  const fields = fieldsOf(table, part);
  const name = (prefix: string) => sql.table(`${prefix}_${NOUNS[table]}`);
  const isCard = table === 'cards';
  if (isCard && fields.length === 0) return sql`${name('updated')} as (${adoptCards})`;

  const values = fields.map((field) => sql`${followedValue(part, field)} as ${sql.ref(`new_${field}`)}`);
  const ofReplaced = (value: (field: string) => RawBuilder<unknown>) =>
    sql.join(
      fields.map(
        (field) => sql`case when ${followedValue(part, field)} is distinct from ${current(field)}
          then jsonb_build_object(${sql.lit(field)}, ${value(field)}) else '{}' end`,
      ),
      sql` || `,
    );
  const isChanged = sql`(l.before <> '{}'${isCard ? sql` or l.is_adopted` : sql``})`;
  const sets = fields.map((field) => sql`${sql.ref(field)} = ${sql.ref(`l.new_${field}`)}`);
  return sql`
    ${name('locked')} as materialized (
      select c.id, m.id as template_id, m.row_id, ${sql.join(values)}, ${followedBase(table, part)} as new_base,
        ${ofReplaced((field) => sql`b.base->${sql.lit(field)}`)} as base, ${ofReplaced(current)} as before${isCard ? sql`, c.master_card_id <> m.id as is_adopted` : sql``}
      from ${stale(table)} s join ${sql.table(table)} c on c.id = s.id and c.id = any(array(select id from ${stale(table)}))
      join ${templates(table)} m on m.id = s.template_id cross join lateral (${baseOf(table)}) as b
      for no key update of c
    ), ${name('updated')} as (
      update ${sql.table(table)} c set ${sql.join(sets)},
        ${isCard ? sql`master_card_id = l.template_id, base_id = l.row_id, base_values = l.new_base` : sql`brought = l.new_base`},
        updated_at = case when ${isChanged} then now() else c.updated_at end
      from ${name('locked')} l where c.id = l.id
      returning c.id, c.project_id, l.template_id, l.row_id, l.before, l.base, ${isChanged} as is_changed
    )`;
}

/** A sync only changes the template of an adopted card. */
const adoptCards = sql`
  update cards c set master_card_id = s.template_id, updated_at = now() from stale_card s
  where c.id = any(array(select id from stale_card)) and c.id = s.id
  returning c.project_id, true as is_changed`;
