import { setImmediate } from 'node:timers/promises';
import { sql } from 'kysely';
import type { CardUpdateMany, SavedCard } from '../../../shared/card.ts';
import { invalid } from '../../../shared/errors.ts';
import { useIndexes } from '../../database/bulk.ts';
import { anyOf, type Db, query, transact } from '../../database/query.ts';
import type { RowChanges } from '../../database/tables.ts';
import type { Context, ProjectContext } from '../access/context.ts';
import { preparation } from '../access/preparation.ts';
import {
  checkRows,
  lockPermitted,
  mustAllBeValid,
  noteOnce,
  type Placed,
  resultsOf,
  saveInSteps,
  validRows,
} from '../rows/many.ts';
import { isVisible, mustBeFound, noSuchRow, noteChange } from '../rows/row.ts';
import { isOneOf, rowChanged, versionOf } from '../rows/version.ts';
import { changesOf } from './card.ts';
import { findReferences, mustReferToProject } from './cardReference.ts';
import { descriptionOf, type Sanitised, sanitiseDescription } from './description.ts';

/** Changes cards, each by the rules of `updateCard`. */
export async function updateCards(context: ProjectContext, input: CardUpdateMany) {
  const cleaned = await sanitiseCopies(context, input);
  return transact(context.db, async (db) => {
    const own = { ...context, db };
    await useIndexes(db);
    const { valid, errors } = validRows(input.cards);
    const named = checkRows(valid, errors, refuseRepeats());
    const projects = await projectsOf(
      db,
      named.map(({ row }) => row.id),
    );
    await lockPermitted(own, sql`id = any(${[...new Set(projects.values())]}::int[])`);

    const known = checkRows(named, errors, ({ at, row }) => {
      const project_id = projects.get(row.id);
      if (project_id === undefined) throw noSuchRow('cards');
      return { at, row, project_id };
    });
    const found = await findReferences(
      own,
      known.map(({ at, project_id, row: { tag_id, owner_id } }) => ({ row: at, project_id, tag_id, owner_id })),
    );
    const noted = noteOnce('cards', context.caller);
    const checked = checkRows(known, errors, ({ at, project_id, row }) => {
      const { acting_role: role, ...referenced } = found(at);
      const description = noted(at, (caller) => {
        mustBeFound(caller, 'cards', { project_id, caller_role: role });
        const { tag_id, owner_id } = row;
        const cleanText = descriptionOf(cleaned.get(at) ?? { html: row.description });
        mustReferToProject(caller, { id: project_id, role }, { tag_id, owner_id }, referenced);
        return cleanText;
      });
      return { at, id: row.id, if_version: row.if_version, changes: changesOf({ ...row, description }) };
    });
    mustAllBeValid('cards', input.mode, errors);

    const saved = await saveInSteps(own, checked, (cards) => changeCards(own, cards));
    const changed = new Map(saved.map(({ is_required, ...card }) => [card.id, is_required ? card : undefined]));
    checkRows(checked, errors, ({ id }) => {
      // Deleted since it was found.
      if (!changed.has(id)) throw noSuchRow('cards');
      if (!changed.get(id)) throw rowChanged();
    });
    mustAllBeValid('cards', input.mode, errors);
    return resultsOf('card', input.cards, errors, new Map(checked.map(({ at, id }) => [at, changed.get(id)])));
  });
}

/** Every column that `changesOf` may change. */
const CHANGED = [
  ...(['title', 'description', 'short_description', 'status', 'priority', 'is_active', 'sort_order'] as const),
  ...(['owner_id', 'tag_id', 'due_date', 'is_due_at_midnight'] as const),
] satisfies (keyof RowChanges<'cards'>)[];

/** If `is_required` is false, the card has another version than required: all fields except `id` are null. */
type ChangedCard = SavedCard & { is_required: boolean };

/**
 * Changes cards, which it locks in the order of their ids, like `changeRow`. `updated` are the rows with the sent values in place
 * of their own. It reads `locked`, the rows after waiting for their locks: beside `for update`, it would be made of the rows
 * before that, and undo what was just changed.
 */
async function changeCards(
  context: ProjectContext,
  changes: { id: number; if_version: string | undefined; changes: RowChanges<'cards'> }[],
): Promise<ChangedCard[]> {
  const fields = CHANGED.map((column) => {
    const field = sql.lit(column === 'is_due_at_midnight' ? 'due_date' : column);
    return sql`case when (locked.card).${sql.ref(column)} is distinct from updated.${sql.ref(column)} then ${field} end`;
  });
  const values = CHANGED.map((column) => sql`${sql.ref(column)} = found.${sql.ref(column)}`);
  return query(
    context.db,
    sql<ChangedCard>`
      with sent as materialized (
        select * from jsonb_to_recordset(${JSON.stringify(changes)}::jsonb) as sent (id int, if_version text, changes jsonb)
      ), locked as materialized (
        select t as card, ${versionOf('t')} as version from cards t
        where t.id = any(array(select id from sent)) and ${isVisible('cards')} order by t.id for update of t
      ), found as (
        select updated.*, array_remove(array[${sql.join(fields)}]::text[], null) as changed_fields,
          sent.if_version is null or ${isOneOf(sql`locked.version`, sql`sent.if_version`)} as is_required
        from locked join sent on sent.id = (locked.card).id
          cross join lateral jsonb_populate_record(locked.card, sent.changes) as updated
      ), changed as (
        update cards set ${sql.join(values)}, updated_at = now() from found where cards.id = found.id and found.is_required
        returning cards.id, cards.project_id, cards.group_id, cards.position, cards.sort_order
      ), ${noteChange(context, 'card.updated')}
      select * from (select id, is_required from found) as found left join changed using (id)`,
  );
}

/** The sanitised descriptions of those rows that are copies of templates, by their places: other descriptions are plain text. */
export const sanitiseCopies = preparation(async ({ db }: Pick<Context, 'db'>, { cards }: CardUpdateMany) => {
  const cleaned = new Map<number, Sanitised>();
  const described = validRows(cards).valid.filter(({ row }) => row.description != null);
  if (described.length === 0) return cleaned;
  const copies = await db
    .selectFrom('cards')
    .select('id')
    .where('id', '=', anyOf(described.map(({ row }) => row.id)))
    .where('master_card_id', 'is not', null)
    .execute();
  const ids = new Set(copies.map(({ id }) => id));
  for (const { at, row } of described) {
    if (!ids.has(row.id)) continue;
    cleaned.set(at, await sanitiseDescription({}, row));
    // Lets other calls run in between.
    await setImmediate();
  }
  return cleaned;
});

/** Passes each card once. */
function refuseRepeats() {
  const seen = new Set<number>();
  return <Row extends Placed<{ id: number }>>(placed: Row): Row => {
    if (seen.has(placed.row.id)) throw invalid({ id: 'is a duplicate' });
    seen.add(placed.row.id);
    return placed;
  };
}

/** The projects of those cards that exist. */
async function projectsOf(db: Db, ids: number[]): Promise<Map<number, number>> {
  const found = await query(
    db,
    sql<{ id: number; project_id: number }>`
      select t.id, t.project_id from cards t where t.id = ${anyOf(ids)} and ${isVisible('cards')}`,
  );
  return new Map(found.map(({ id, project_id }) => [id, project_id]));
}
