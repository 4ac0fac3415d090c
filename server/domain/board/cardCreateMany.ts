import { sql } from 'kysely';
import type { CardCreateMany, SavedCard } from '../../../shared/card.ts';
import { useIndexes } from '../../database/bulk.ts';
import { anyOf, nextPosition, query, transact } from '../../database/query.ts';
import type { ProjectContext } from '../access/context.ts';
import { eventPartsOf } from '../event/event.ts';
import { CREATED, CREATED_COLUMNS, type CreatedColumns, lastOrder, lastPosition, sentDueDate } from './card.ts';
import { findReferences, mustReferToProject, type References } from './cardReference.ts';
import { namesOf, newValues, typedColumns } from './columns.ts';
import { lockPermitted, makeRowList, rememberProjects, saveInSteps } from './manyRows.ts';

/** Creates cards, each by the rules of `createCard`, in the order in which they were sent. */
export function createCards(context: ProjectContext, input: CardCreateMany) {
  return transact(context.db, async (db) => {
    const own = { ...context, db };
    await useIndexes(db);
    const list = makeRowList('cards', input.cards, input.mode);
    await lockPlaces(
      own,
      list.valid.map(({ row }) => row),
    );

    const found = await findReferences(
      own,
      list.valid.map(({ at, row: { group_id, tag_id, owner_id } }) => ({ row: at, group_id, tag_id, owner_id })),
    );
    const asCaller = rememberProjects('cards', context.caller);
    const checked = list.check(list.valid, ({ at, row }) => {
      const { acting_id: project_id, acting_role, platform_id, ...referenced } = found(at);
      asCaller(at, (caller) => mustReferToProject(caller, { id: project_id, role: acting_role }, row, referenced));
      return { at, ...row, ...sentDueDate(row), project_id, platform_id };
    });
    list.mustAllBeValid();

    const created = await saveInSteps(own, checked, (cards) => insertCards(own, cards));
    return list.resultsWith('card', new Map(checked.map(({ at }, place) => [at, created[place]])));
  });
}

type NewCard = Partial<CreatedColumns> & { project_id: number | null; platform_id: number | null };

/** Inserts cards behind the last ones of their groups and projects. They get ids in this order. */
async function insertCards(context: ProjectContext, cards: NewCard[]): Promise<SavedCard[]> {
  const rows = JSON.stringify(cards.map((card, row) => ({ ...card, row })));
  return query(
    context.db,
    sql<SavedCard>`
      with sent as materialized (
        select *, coalesce(group_id, 0) as place from jsonb_to_recordset(${rows}::jsonb) as sent (row int,
          project_id int, platform_id int, ${typedColumns('cards', CREATED_COLUMNS)})
      ), last_in_group as materialized (
        select project_id, place, ${lastPosition(sql`p.group_id`, sql`p.project_id`)} as position
        from (select distinct project_id, group_id, place from sent) as p
      ), last_in_project as materialized (
        select project_id, (${lastOrder(sql`p.project_id`)}) as sort_order from (select distinct project_id from sent) as p
      ), created as (
        insert into cards (project_id, platform_id, ${namesOf(CREATED_COLUMNS)}, created_by, position, sort_order)
        select project_id, platform_id, ${newValues('cards', CREATED_COLUMNS, sql.ref)}, ${context.caller.id}::int,
          ${nextPosition(sql`last_in_group.position`, sql`row_number() over (partition by project_id, place order by row)`)},
          ${nextPosition(sql`last_in_project.sort_order`, sql`row_number() over (partition by project_id order by row)`)}
        from sent join last_in_group using (project_id, place) join last_in_project using (project_id) order by row
        returning id, project_id, platform_id, group_id, position, sort_order
      ), ${eventPartsOf(context, CREATED, 'card.created')}
      select id, project_id, group_id, position, sort_order from created order by id`,
  );
}

/** Locks the projects of new cards. */
function lockPlaces(context: ProjectContext, cards: References[]) {
  const idsOf = (field: keyof References) => anyOf([...new Set(cards.flatMap((card) => card[field] ?? []))]);
  const isElsewhere = cards.every(({ group_id, tag_id }) => group_id != null || tag_id != null);
  const known = isElsewhere ? null : (context.caller.project?.id ?? null);
  return lockPermitted(
    context,
    sql`id = any(array(select project_id from groups where id = ${idsOf('group_id')}
      union select project_id from tags where id = ${idsOf('tag_id')} union select ${known}::int))`,
  );
}
