import { setImmediate } from 'node:timers/promises';
import { sql } from 'kysely';
import { CardUpdate, type CardUpdateMany, type SavedCard } from '../../../shared/card.ts';
import { invalid } from '../../../shared/errors.ts';
import type { InvalidRow } from '../../../shared/rows.ts';
import { useIndexes } from '../../database/bulk.ts';
import { anyOf, type Db, query, transact } from '../../database/query.ts';
import type { RowChanges } from '../../database/tables.ts';
import { fittingVersions, isOneOf, rowChanged } from '../../database/version.ts';
import type { Context, ProjectContext } from '../access/context.ts';
import { preparation } from '../access/preparation.ts';
import { cardChanges } from './card.ts';
import { findReferences, mustReferToProject } from './cardReference.ts';
import { columnsOf, fieldOf } from './columns.ts';
import { descriptionOf, type Sanitised, sanitiseDescription } from './description.ts';
import {
  lockPermitted,
  makeRowList,
  type Placed,
  type RowList,
  rememberProjects,
  saveInSteps,
  validRows,
} from './manyRows.ts';
import { changeEventParts, isVisible, mustBeFound, noSuchRow } from './row.ts';

/** Changes cards, each by the rules of `updateCard`. */
export async function updateCards(context: ProjectContext, input: CardUpdateMany) {
  const cleaned = await sanitiseCopies(context, input);
  return transact(context.db, async (db) => {
    const own = { ...context, db };
    await useIndexes(db);
    const list = makeRowList('cards', input.cards, input.mode);
    const checked = await checkChanges(own, list, await lockCards(own, list), cleaned);
    list.mustAllBeValid();

    const saved = await saveInSteps(own, checked, (cards) => changeCards(own, cards));
    const changed = new Map(
      saved.map(({ is_required, version_number, ...card }) => [card.id, is_required ? card : undefined]),
    );
    list.check(checked, ({ id }) => {
      // Deleted since it was found.
      if (!changed.has(id)) throw noSuchRow('cards');
      if (!changed.get(id)) throw rowChanged();
    });
    list.mustAllBeValid();
    return list.resultsWith('card', new Map(checked.map(({ at, id }) => [at, changed.get(id)])));
  });
}

type Change = Exclude<CardUpdateMany['cards'][number], InvalidRow>;
type FoundCard = Placed<Change> & { project_id: number };

/** Finds the cards and locks their projects. Refuses those that don't exist or are named twice. */
async function lockCards(context: ProjectContext, list: RowList<Change>): Promise<FoundCard[]> {
  const named = list.check(list.valid, refuseRepeats());
  const projects = await projectsOf(
    context.db,
    named.map(({ row }) => row.id),
  );
  await lockPermitted(context, sql`id = any(${[...new Set(projects.values())]}::int[])`);
  return list.check(named, ({ at, row }) => {
    const project_id = projects.get(row.id);
    if (project_id === undefined) throw noSuchRow('cards');
    return { at, row, project_id };
  });
}

/** Checks the caller's role, the references and the descriptions. Returns what changes. */
async function checkChanges(
  context: ProjectContext,
  list: RowList<Change>,
  cards: FoundCard[],
  cleaned: Map<number, Sanitised>,
) {
  const found = await findReferences(
    context,
    cards.map(({ at, project_id, row: { tag_id, owner_id } }) => ({ row: at, project_id, tag_id, owner_id })),
  );
  const asCaller = rememberProjects('cards', context.caller);
  return list.check(cards, ({ at, project_id, row }) => {
    const { acting_role: role, ...referenced } = found(at);
    const description = asCaller(at, (caller) => {
      mustBeFound(caller, 'cards', { project_id, caller_role: role });
      const { tag_id, owner_id } = row;
      const cleanText = descriptionOf(cleaned.get(at) ?? { html: row.description });
      mustReferToProject(caller, { id: project_id, role }, { tag_id, owner_id }, referenced);
      return cleanText;
    });
    return { at, id: row.id, if_version: row.if_version, changes: cardChanges({ ...row, description }) };
  });
}

/** Every column that an update may change. */
const CHANGED = columnsOf('cards', CardUpdate);

/** If `is_required` is false, the card has another version than required: all fields except `id` are null. */
type ChangedCard = SavedCard & { is_required: boolean; version_number: number };

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
    const field = sql.lit(fieldOf('cards', column));
    return sql`case when (locked.card).${sql.ref(column)} is distinct from updated.${sql.ref(column)} then ${field} end`;
  });
  const values = CHANGED.map((column) => sql`${sql.ref(column)} = found.${sql.ref(column)}`);
  return query(
    context.db,
    sql<ChangedCard>`
      with sent as materialized (
        select * from jsonb_to_recordset(${JSON.stringify(changes)}::jsonb) as sent (id int, if_version text, changes jsonb)
      ), locked as materialized (
        select t as card, ${fittingVersions('t')} as fitting from cards t
        where t.id = any(array(select id from sent)) and ${isVisible('cards')} order by t.id for update of t
      ), found as (
        select updated.*, array_remove(array[${sql.join(fields)}]::text[], null) as changed_fields,
          sent.if_version is null or ${isOneOf(sql`locked.fitting`, sql`sent.if_version`)} as is_required
        from locked join sent on sent.id = (locked.card).id
          cross join lateral jsonb_populate_record(locked.card, sent.changes) as updated
      ), changed as (
        update cards set ${sql.join(values)}, updated_at = now() from found where cards.id = found.id and found.is_required
        returning cards.id, cards.project_id, cards.group_id, cards.position, cards.sort_order, cards.version as version_number
      ), ${changeEventParts(context, 'card.updated')}
      select * from (select id, is_required from found) as found left join changed using (id)`,
  );
}

/** The sanitised descriptions of those rows that are copies of templates, by their places: other descriptions are plain text. */
export const sanitiseCopies = preparation(async ({ db }: Pick<Context, 'db'>, { cards }: CardUpdateMany) => {
  const cleaned = new Map<number, Sanitised>();
  const described = validRows(cards).filter(({ row }) => row.description != null);
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
