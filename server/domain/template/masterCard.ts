import { sql } from 'kysely';
import { badRequest, invalid } from '../../../shared/errors.ts';
import type {
  MasterCardCreate,
  MasterCardDelete,
  MasterCardMove,
  MasterCardPush,
  MasterCardUpdate,
} from '../../../shared/master.ts';
import type { PushPreview } from '../../../shared/templateRun.ts';
import { lockProjects } from '../../database/projectLock.ts';
import { anyOf, type Db, live, mapConstraintErrors, nextPosition, queryOne, rowsById } from '../../database/query.ts';
import { insertRow } from '../../database/rows.ts';
import { VERSION, withVersion } from '../../database/version.ts';
import type { SignedInContext } from '../access/context.ts';
import { CARD_COLUMNS } from '../board/card.ts';
import { changesIn } from '../board/columns.ts';
import { clearGroups, countTaken } from '../board/deletion.ts';
import { deletedBy, NEXT_DELETION, recordDeletions } from '../board/deletionRecord.ts';
import { cleanDescription } from '../board/description.ts';
import { freePlace, restoredAs, undoDeletion } from '../board/restoration.ts';
import { isLiveCard } from '../board/row.ts';
import { NEW_ROW, writeEvents } from '../event/event.ts';
import { groupTemplate } from './masterGroup.ts';
import { changeMaster, deleteMaster, EVEN_DELETED, findMaster, noSuchMaster, placeMasters } from './masterRow.ts';
import { applyTemplate, applyTemplateWithin, previewTemplate } from './template.ts';
import type { Template } from './templateCopies.ts';
import { projectEventParts } from './templateEvent.ts';
import { bringIdentifier } from './templateIdentifiers.ts';
import { templateTransaction } from './templateLock.ts';

/** Creates a master card at the end of its group and, with `push_to_projects`, copies it to projects, in one transaction. */
export async function createMasterCard(context: SignedInContext, { push_to_projects, ...input }: MasterCardCreate) {
  const description = await cleanDescription(context, input);
  const { board_id } = await findMaster(context.db, 'groups', input.group_id, ['board_id']);

  return templateTransaction(context.db, board_id, async (db) => {
    await findMaster(db, 'groups', input.group_id, ['id']);
    // An identifier of a deleted master card can be used again.
    await clearGroups(db, sql`is_master`);
    const position = nextPosition(
      sql`select max(position) from cards where group_id = ${input.group_id} and ${live()}`,
    );
    const row = {
      title: input.title,
      ...changesIn('cards', { ...input, description }),
      ...{ is_master: true, created_by: context.caller.id, position, sort_order: position },
    };
    const card = await mapConstraintErrors(insertRow(db, 'cards', row, [...CARD_COLUMNS, VERSION]), TAKEN);
    const { group_id } = input;
    await writeEvents({ ...context, db }, [
      { type: 'master_card.created', subject_id: card.id, data: { group_id, ...NEW_ROW } },
    ]);
    const applied = push_to_projects
      ? await applyTemplateWithin({ ...context, db }, await cardTemplate(db, card.id))
      : { projects_changed: 0 };
    return { ...withVersion('card', card), projects_updated: applied.projects_changed };
  });
}

/** Changes the sent fields of a master card; a push updates the copies, except for the identifier, which they have at once. */
export async function updateMasterCard(context: SignedInContext, { id, if_version, ...sent }: MasterCardUpdate) {
  const { unique_identifier } = sent;
  const changes = changesIn('cards', { ...sent, description: await cleanDescription(context, sent) });
  const change = (context: SignedInContext) =>
    mapConstraintErrors(changeMaster(context, 'cards', id, changes, CARD_COLUMNS, if_version), TAKEN);
  if (unique_identifier == null) return withVersion('card', await change(context));

  const { board_id } = await cardTemplate(context.db, id);
  return templateTransaction(context.db, board_id, async (db) => {
    await clearGroups(db, sql`is_master`);
    const card = await change({ ...context, db });
    await bringIdentifier({ ...context, db }, { id, board_id }, unique_identifier);
    return withVersion('card', card);
  });
}

const TAKEN = {
  cards_master_identifier: () => invalid({ unique_identifier: 'belongs to another master card' }, 'already_exists'),
};

/** Moves master cards of one board to positions in a group, atomically. */
export async function reorderMasterCards(context: SignedInContext, { group_id, cards }: MasterCardMove) {
  const { board_id } = await findMaster(context.db, 'groups', group_id, ['board_id']);

  await templateTransaction(context.db, board_id, async (db) => {
    await findMaster(db, 'groups', group_id, ['id']);
    const ids = cards.map(({ id }) => id);
    const found = await db
      .selectFrom(rowsById('cards', ids).as('c'))
      .innerJoin('groups as g', 'g.id', 'c.group_id')
      .select(['c.id', 'c.position', 'c.group_id', 'g.board_id'])
      .where('c.is_master', 'is', true)
      .where(live('c'))
      .where(live('g'))
      .execute();
    if (found.length < cards.length) throw noSuchMaster('cards');
    if (found.some((card) => card.board_id !== board_id))
      throw badRequest('The cards belong to several boards.', 'several_parents');
    await db
      .updateTable('cards')
      .set({ group_id })
      .where('id', '=', anyOf(ids))
      .where('group_id', '<>', group_id)
      .execute();
    const before = found.filter((card) => card.group_id === group_id);
    await placeMasters({ ...context, db }, 'cards', cards, before, sql`t.group_id = ${group_id}`);
  });
}

/** Adds missing copies of a master card to every active project with access, and updates existing ones. */
export async function pushMasterCard(context: SignedInContext, { card_id }: MasterCardPush) {
  const { projects_changed } = await applyTemplate(context, await cardTemplate(context.db, card_id));
  return { projects_updated: projects_changed };
}

/** What a push would do to each project. */
export async function previewPush(context: SignedInContext, { card_id, ...page }: PushPreview) {
  return previewTemplate(context, await cardTemplate(context.db, card_id), page);
}

/** Deletes a master card and, with `delete_from_projects`, its copies. */
export async function deleteMasterCard(
  context: SignedInContext,
  { id, delete_from_projects = false, if_version }: MasterCardDelete,
) {
  const { board_id } = await cardTemplate(context.db, id);

  await templateTransaction(context.db, board_id, async (db) => {
    const deletion_id = await deleteMaster({ ...context, db }, 'cards', id, if_version);
    if (!delete_from_projects) return;
    const copies = db.selectFrom('cards').select('project_id').where('master_card_id', '=', id);
    await lockProjects(db, sql`id in ${copies}`);
    const removed = db
      .updateTable('cards')
      .set(deletedBy(NEXT_DELETION))
      .where('master_card_id', '=', id)
      .where(isLiveCard('cards'))
      .returning(['id', 'project_id', 'platform_id', 'deletion_id']);
    const rows = sql`select *, 1 as count from removed`;
    const note = projectEventParts(context, { type: 'template.removed', board_id, card_id: id }, rows);
    const record = recordDeletions(context, 'card', rows, deletion_id);
    const counted = sql<{ count: number }>`
      with removed as (${removed}), ${note}, ${record} select count(*)::int as count from removed`;
    await countTaken(db, deletion_id, (await queryOne(db, counted)).count);
  });
}

/** Restores a master card, and the copies that its deletion deleted from projects. */
export async function restoreMasterCard(context: SignedInContext, { id }: { id: number }) {
  const { group_id } = await findMaster(context.db, 'cards', id, ['group_id'], EVEN_DELETED);
  if (group_id === null) throw noSuchMaster('groups');
  const { board_id } = await findMaster(context.db, 'groups', group_id, ['board_id'], EVEN_DELETED);

  return templateTransaction(context.db, board_id, async (db) => {
    const restored = await undoDeletion({ ...context, db }, 'cards', id, CARD_COLUMNS);
    const { undone_id, restored_count } = restored;
    const copies = undone_id === null ? 0 : await restoreCopies({ ...context, db }, { id, board_id }, undone_id);
    return restoredAs('card', { ...restored, restored_count: restored_count + copies });
  });
}

/** Where its group is deleted, or another copy has its identifier by now, a copy stays in the trash of its project. */
async function restoreCopies(
  context: SignedInContext,
  { id, board_id }: { id: number; board_id: number },
  deletion_id: number,
): Promise<number> {
  const { db } = context;
  await lockProjects(
    db,
    sql`id in (select project_id from cards where master_card_id = ${id} and deletion_id is not null)`,
  );
  const position = freePlace('cards', 'position', sql`s.group_id = t.group_id and ${live('s')}`);
  const note = projectEventParts(
    context,
    { type: 'template.applied', board_id, card_id: id },
    sql`select *, 1 as count from restored`,
  );
  const restored = await queryOne(
    db,
    sql<{ count: number }>`
      with restored as (
        update cards t set deleted_at = null, deletion_id = null, updated_at = now(), position = ${position} from deletions d
        where t.master_card_id = ${id} and d.id = t.deletion_id and d.cause_id = ${deletion_id}
          and (t.group_id is null or exists (select from groups g where g.id = t.group_id and ${live('g')}))
          and not exists (
            select from cards o where o.project_id = t.project_id and o.unique_identifier = t.unique_identifier
              and o.master_card_id is not null and ${live('o')})
        returning t.project_id, t.platform_id, d.id as undone_id
      ), forgotten as (delete from deletions where id in (select undone_id from restored)), ${note}
      select count(*)::int as count from restored`,
  );
  return restored.count;
}

async function cardTemplate(db: Db, id: number): Promise<Template> {
  const { group_id } = await findMaster(db, 'cards', id, ['group_id']);
  if (group_id === null) throw noSuchMaster('groups');
  return { ...(await groupTemplate(db, group_id)), kind: 'push', card_id: id };
}
