import { sql } from 'kysely';
import { badRequest, invalid } from '../../../shared/errors.ts';
import { MOST_SIBLINGS } from '../../../shared/fields.ts';
import {
  MasterGroup,
  type MasterGroupConfigure,
  MasterGroupCreate,
  type MasterGroupDelete,
  type MasterGroupList,
  type MasterGroupPush,
  type MasterGroupReorder,
  type MasterGroupUpdate,
} from '../../../shared/master.ts';
import type { GroupPushPreview } from '../../../shared/templateRun.ts';
import { type Db, live, query } from '../../database/query.ts';
import { selectionOf } from '../../database/selection.ts';
import { VERSION, type Versioned, withVersion } from '../../database/version.ts';
import type { SignedInContext } from '../access/context.ts';
import { changesIn, columnsOf, namesOf, newValues } from '../board/columns.ts';
import { deleteContents } from '../board/deletion.ts';
import { GROUP_COLUMNS, type GroupRow } from '../board/group.ts';
import { positionAmongSiblings, siblingsIn } from '../board/position.ts';
import { allOrFirstRow, bytesOf, mustFitResponse } from '../board/responseSize.ts';
import { restoredAs, undoDeletion } from '../board/restoration.ts';
import { NEW_ROW, writeEvents } from '../event/event.ts';
import { changeMaster, deleteMaster, EVEN_DELETED, findMaster, placeMasters } from './masterRow.ts';
import { applyTemplate, previewTemplate } from './template.ts';
import type { Template } from './templateCopies.ts';
import { templateTransaction } from './templateLock.ts';

/** The groups of a master board in order, with the numbers of their cards. */
export async function listMasterGroups({ db }: SignedInContext, { board_id }: MasterGroupList) {
  await findMaster(db, 'boards', board_id, ['id']);

  const found = await query(
    db,
    allOrFirstRow(
      'groups',
      sql<GroupRow & { cards_count: number }>`
        select ${selectionOf(GROUP_COLUMNS, 'g')}, ${bytesOf('groups', 'g')} as bytes,
          (select count(*)::int from cards c where c.group_id = g.id and ${live('c')}) as cards_count
        from groups g where g.board_id = ${board_id} and ${live('g')}`,
      MasterGroup.keyof().options,
      ['position', 'id'],
    ),
  );
  mustFitResponse(found[0], 'The master groups are too large for one answer. Shorten their descriptions.');
  return { groups: found.map(({ is_too_large, ...group }) => group) };
}

/** The columns that are sent with a new master group. */
const CREATED = columnsOf('groups', MasterGroupCreate);

/** Creates a master group, after the others of its board. */
export async function createMasterGroup(context: SignedInContext, { board_id, ...sent }: MasterGroupCreate) {
  return templateTransaction(context.db, board_id, async (db) => {
    await findMaster(db, 'boards', board_id, ['id']);

    const [group] = await query(
      db,
      sql<Versioned<GroupRow>>`
        insert into groups (is_master, board_id, ${namesOf(CREATED)}, created_by, position)
        select true, ${board_id}, ${newValues('groups', CREATED, (column) => sql`${sent[column as keyof typeof sent] ?? null}`)},
          ${context.caller.id}, ${positionAmongSiblings()}
        from ${siblingsIn('groups', sql`t.board_id = ${board_id}`)} where siblings.count < ${MOST_SIBLINGS}
        returning ${selectionOf([...GROUP_COLUMNS, VERSION])}`,
    );
    if (!group) throw badRequest(`A board has at most ${MOST_SIBLINGS} groups.`, 'place_full');
    await writeEvents({ ...context, db }, [
      { type: 'master_group.created', subject_id: group.id, data: { board_id, ...NEW_ROW } },
    ]);
    return withVersion('group', group);
  });
}

/** Changes the sent fields of a master group; a sync or push brings them to the copies. */
export async function updateMasterGroup(context: SignedInContext, { id, if_version, ...sent }: MasterGroupUpdate) {
  const changes = changesIn('groups', sent);
  return withVersion('group', await changeMaster(context, 'groups', id, changes, GROUP_COLUMNS, if_version));
}

/** Changes how a master group looks, and switches it on or off; a sync or push brings it to the copies. */
export const configureMasterGroup = (context: SignedInContext, sent: MasterGroupConfigure) =>
  updateMasterGroup(context, sent);

/** Puts groups of a master board at their positions, atomically. */
export async function reorderMasterGroups(context: SignedInContext, { board_id, groups }: MasterGroupReorder) {
  await templateTransaction(context.db, board_id, async (db) => {
    await db
      .selectFrom('boards')
      .select('id')
      .where('id', '=', board_id)
      .where('is_master', '=', true)
      .where(live())
      .executeTakeFirstOrThrow(() => invalid({ board_id: 'is not a master board' }, 'unknown_reference'));

    const found = await db
      .selectFrom('groups')
      .select(['id', 'position'])
      .where('board_id', '=', board_id)
      .where(live())
      .execute();
    const onBoard = new Set(found.map(({ id }) => id));
    const others = [...groups.entries()].filter(([, { id }]) => !onBoard.has(id));
    if (others.length > 0) {
      throw invalid(
        Object.fromEntries(others.map(([at]) => [`groups.${at}.id`, 'is not a group of this board'])),
        'unknown_reference',
      );
    }

    await placeMasters({ ...context, db }, 'groups', groups, found, sql`t.board_id = ${board_id}`);
  });
}

/** Adds missing copies of a master group to every active project with access, and brings what changed on it to the copies. */
export async function pushMasterGroup(context: SignedInContext, { group_id }: MasterGroupPush) {
  const { projects_changed } = await applyTemplate(context, await groupTemplate(context.db, group_id));
  return { projects_updated: projects_changed };
}

/** What a push of a group would do to each project. */
export async function previewGroupPush(context: SignedInContext, { group_id, ...page }: GroupPushPreview) {
  return previewTemplate(context, await groupTemplate(context.db, group_id), page);
}

/** Deletes a master group with its cards; the copies in projects stay. */
export async function deleteMasterGroup(context: SignedInContext, { id, if_version }: MasterGroupDelete) {
  const { board_id } = await findMaster(context.db, 'groups', id, ['board_id']);

  await templateTransaction(context.db, board_id, async (db) => {
    const deletion_id = await deleteMaster({ ...context, db }, 'groups', id, if_version);
    await deleteContents.groups(db, { id, deletion_id });
  });
}

export async function groupTemplate(db: Db, id: number): Promise<Template> {
  const { board_id } = await findMaster(db, 'groups', id, ['board_id']);
  await findMaster(db, 'boards', board_id, ['id']);
  return { kind: 'push_group', board_id, group_id: id, rowCount: 1 };
}

/** Restores a master group with the cards that were deleted with it. */
export async function restoreMasterGroup(context: SignedInContext, { id }: { id: number }) {
  const { board_id } = await findMaster(context.db, 'groups', id, ['board_id'], EVEN_DELETED);

  return templateTransaction(context.db, board_id, async (db) =>
    restoredAs('group', await undoDeletion({ ...context, db }, 'groups', id, GROUP_COLUMNS)),
  );
}
