import { sql } from 'kysely';
import { badRequest } from '../../../shared/errors.ts';
import { MOST_SIBLINGS } from '../../../shared/fields.ts';
import {
  Group,
  type GroupConfigure,
  GroupCreate,
  type GroupDelete,
  type GroupList,
  type GroupReorder,
  type GroupUpdate,
} from '../../../shared/group.ts';
import { readCursor, toPage } from '../../database/page.ts';
import { lockProject } from '../../database/projectLock.ts';
import { type Db, live, query } from '../../database/query.ts';
import { type Selected, selectionOf } from '../../database/selection.ts';
import { VERSION, type Versioned, withVersion } from '../../database/version.ts';
import type { ProjectContext } from '../access/context.ts';
import { bound, isEnough, permitOf, roleIn } from '../access/permission.ts';
import { changesIn, columnsOf, namesOf, newValues } from './columns.ts';
import { deleteWithContents } from './deletion.ts';
import { changeAndPlace, insertAt, placeRows, positionAmongSiblings, siblingsIn } from './position.ts';
import { bytesOf, cutToResponseSize } from './responseSize.ts';
import { restoredAs, restoreRow } from './restoration.ts';
import { type CallerRole, changeRow, findRow, mustBeFound } from './row.ts';

/** The columns of a group in responses. */
export const GROUP_COLUMNS = Group.keyof().options;
export type GroupRow = Selected<'groups', typeof GROUP_COLUMNS>;

/** Creates a group on a board, after the others unless a position was sent. */
export async function createGroup(context: ProjectContext, input: GroupCreate) {
  const { board_id, position } = input;
  const lock = async (db: Db) => {
    const { project } = await findRow({ ...context, db }, 'boards', board_id);
    await lockProject(db, project.id);
  };
  const event = { type: 'group.created', data: { board_id }, position } as const;
  const siblings = { table: 'groups', isSibling: sql<boolean>`t.board_id = ${board_id}`, lock } as const;
  const group = await insertAt(context, event, siblings, (db) => insertGroup({ ...context, db }, input));
  return withVersion('group', group);
}

/** The columns that are sent with a new group. */
const CREATED = columnsOf('groups', GroupCreate);

/** One statement: `board` locks the board against deletion, `created` checks the role and the cap of groups. */
async function insertGroup(
  { db, caller }: ProjectContext,
  { board_id, ...input }: GroupCreate,
): Promise<Versioned<GroupRow>> {
  const permit = bound(permitOf(caller));
  const [group] = await query(
    db,
    sql<(Versioned<GroupRow> | { id: null }) & CallerRole>`
      with board as (
        select id as board_id, project_id, platform_id as board_platform_id, ${roleIn('boards.project_id', permit)} as caller_role
        from boards where id = ${board_id} and project_id is not null and ${live()} for share
      ), created as (
        insert into groups (project_id, platform_id, board_id, ${namesOf(CREATED)}, created_by, position)
        select board.project_id, board.board_platform_id, board.board_id,
          ${newValues('groups', CREATED, (column) => sql`${input[column as keyof typeof input] ?? null}`)}, ${caller.id}::int,
          ${positionAmongSiblings(input.position)}
        from board cross join lateral ${siblingsIn('groups', sql`t.board_id = board.board_id`)}
        where ${isEnough(sql`board.caller_role`, permit)} and siblings.count < ${MOST_SIBLINGS}
        returning ${selectionOf([...GROUP_COLUMNS, VERSION])}
      )
      select ${selectionOf(GROUP_COLUMNS)}, version, caller_role from board left join created using (board_id, project_id)`,
  );
  const found = mustBeFound(caller, 'boards', group);
  if (found.id === null) throw badRequest(`A board has at most ${MOST_SIBLINGS} groups.`, 'place_full');
  return found;
}

/** The groups of a board in order. */
export async function listGroups(context: ProjectContext, { board_id, cursor, limit }: GroupList) {
  await findRow(context, 'boards', board_id);

  const [position, id] = readCursor(cursor, 2);
  const found = await query(
    context.db,
    cutToResponseSize(
      'groups',
      sql<GroupRow>`
        select ${selectionOf(GROUP_COLUMNS, 'g')}, ${bytesOf('groups', 'g')} as bytes from groups g
        where g.board_id = ${board_id} and ${live('g')}
          ${id === undefined ? sql`` : sql`and (g.position, g.id) > (${position}, ${id})`}
        order by g.position, g.id limit ${limit + 1}`,
      GROUP_COLUMNS,
      ['position', 'id'],
    ),
  );
  return toPage('groups', found, limit, ['position', 'id']);
}

/** Changes the sent fields of a group. */
export async function updateGroup(context: ProjectContext, sent: GroupUpdate) {
  return withVersion('group', await changeAndPlace(context, 'groups', sent, GROUP_COLUMNS));
}

/** Switches a group on or off. */
export async function configureGroup(context: ProjectContext, { id, if_version, ...sent }: GroupConfigure) {
  const changes = changesIn('groups', sent);
  return withVersion('group', await changeRow(context, 'groups', id, changes, GROUP_COLUMNS, { if_version }));
}

/** Puts groups of one board at their positions, atomically. */
export async function reorderGroups(context: ProjectContext, { groups }: GroupReorder) {
  await placeRows(context, 'groups', groups);
}

/** Deletes a group with its cards. */
export async function deleteGroup(context: ProjectContext, group: GroupDelete) {
  await deleteWithContents(context, 'groups', group);
}

/** Restores a group with the cards that were deleted with it. */
export async function restoreGroup(context: ProjectContext, { id }: { id: number }) {
  return restoredAs('group', await restoreRow(context, 'groups', id, GROUP_COLUMNS));
}
