import { sql } from 'kysely';
import type { BoardReorder } from '../../../shared/board.ts';
import { MOST_SIBLINGS, type Placement } from '../../../shared/fields.ts';
import type {
  MasterBoardCreate,
  MasterBoardDelete,
  MasterBoardPush,
  MasterBoardSync,
  MasterBoardUpdate,
} from '../../../shared/master.ts';
import type { BoardPushPreview, SyncPreview } from '../../../shared/templateRun.ts';
import { type Db, live, query, transact } from '../../database/query.ts';
import { withVersion } from '../../database/version.ts';
import type { SignedInContext } from '../access/context.ts';
import { BOARD_COLUMNS, insertBoard, listedBoards } from '../board/board.ts';
import { changesIn } from '../board/columns.ts';
import { deleteContents } from '../board/deletion.ts';
import { mustFitResponse } from '../board/responseSize.ts';
import { restoredAs, undoDeletion } from '../board/restoration.ts';
import { mustHaveVersion } from '../board/row.ts';
import { changeMaster, deleteMaster, EVEN_DELETED, findMaster, placeMasters } from './masterRow.ts';
import { abortOpenRollout } from './rolloutEnd.ts';
import { applyTemplate, previewTemplate } from './template.ts';
import type { Template } from './templateCopies.ts';
import { templateTransaction } from './templateLock.ts';

/** The master boards in order, with their counts. */
export async function listMasterBoards({ db }: SignedInContext) {
  const found = await query(db, listedBoards(sql`b.is_master`));
  mustFitResponse(found[0], 'The master boards are too large for one answer. Shorten their descriptions.');
  return { boards: found.map(({ is_too_large, ...board }) => board) };
}

/** Creates a master board, after the others unless a position was sent. */
export const createMasterBoard = (context: SignedInContext, input: MasterBoardCreate) =>
  insertBoard(context, input, {
    owner: { project_id: null, platform_id: null, is_master: true },
    isSibling: sql`t.is_master`,
    lock: lockMasterBoards,
    full: `There are at most ${MOST_SIBLINGS} master boards.`,
  });

/** Changes the sent fields of a master board; a sync or push brings them to the copies. */
export async function updateMasterBoard(context: SignedInContext, sent: MasterBoardUpdate) {
  const { id, position, if_version } = sent;
  return transact(context.db, async (db) => {
    const within = { ...context, db };
    const change = (if_version?: string) =>
      changeMaster(within, 'boards', id, changesIn('boards', sent), BOARD_COLUMNS, if_version);
    if (position == null) return withVersion('board', await change(if_version));

    const before = await lockMasterBoards(db);
    // Once placed, it has a new version.
    if (before.some((board) => board.id === id)) await mustHaveVersion(db, 'boards', id, if_version);
    await placeMasterBoards(within, [{ id, position }], before);
    return withVersion('board', await change());
  });
}

/** Puts master boards at their positions, atomically. */
export async function reorderMasterBoards(context: SignedInContext, { boards }: BoardReorder) {
  await transact(context.db, async (db) => placeMasterBoards({ ...context, db }, boards, await lockMasterBoards(db)));
}

const placeMasterBoards = (context: SignedInContext, placements: Placement[], before: Placement[]) =>
  placeMasters(context, 'boards', placements, before, sql`t.is_master`);

/** As a literal: with a bound value, the partial index of master boards is not used. */
const TRUE = sql.lit(true);

/** Locks the rows of all master boards, so that their positions change one call at a time. Returns where they are. */
function lockMasterBoards(db: Db): Promise<Placement[]> {
  const masters = db.selectFrom('boards').select(['id', 'position']).where('is_master', '=', TRUE).where(live());
  return masters.orderBy('id').forNoKeyUpdate().execute();
}

/**
 * Adds the missing copies of a master board, its groups and cards to every active project with access, and brings what changed
 * on the board and the groups to the copies.
 */
export async function syncMasterBoard(context: SignedInContext, { board_id }: MasterBoardSync) {
  const applied = await applyTemplate(context, await boardTemplate(context.db, 'sync', board_id));
  return { synced_count: applied.projects_with_access, skipped_no_access: applied.projects_skipped };
}

/** What a sync would do to each project. */
export async function previewSync(context: SignedInContext, { board_id, ...page }: SyncPreview) {
  return previewTemplate(context, await boardTemplate(context.db, 'sync', board_id), page);
}

/** Like a sync, but without cards. */
export async function pushMasterBoard(context: SignedInContext, { board_id }: MasterBoardPush) {
  const { projects_changed } = await applyTemplate(context, await boardTemplate(context.db, 'push_board', board_id));
  return { projects_updated: projects_changed };
}

/** What a push of a board would do to each project. */
export async function previewBoardPush(context: SignedInContext, { board_id, ...page }: BoardPushPreview) {
  return previewTemplate(context, await boardTemplate(context.db, 'push_board', board_id), page);
}

/** Deletes a master board with its groups and cards; the copies in projects stay. */
export async function deleteMasterBoard(context: SignedInContext, { id, if_version }: MasterBoardDelete) {
  await templateTransaction(context.db, id, async (db) => {
    const deletion_id = await deleteMaster({ ...context, db }, 'boards', id, if_version);
    await deleteContents.boards(db, { id, deletion_id });
    await abortOpenRollout({ ...context, db }, id);
  });
}

/** The template of a sync or board push, with an estimate of the rows per project; only a sync copies cards. */
async function boardTemplate(db: Db, kind: 'sync' | 'push_board', id: number): Promise<Template> {
  await findMaster(db, 'boards', id, ['id']);
  const { groups, cards } = await db
    .selectFrom('groups as g')
    .leftJoin('cards as c', (join) => join.onRef('c.group_id', '=', 'g.id').on(live('c')))
    .select([sql<number>`count(distinct g.id)::int`.as('groups'), sql<number>`count(c.id)::int`.as('cards')])
    .where('g.board_id', '=', id)
    .where(live('g'))
    .executeTakeFirstOrThrow();
  return { kind, board_id: id, rowCount: kind === 'sync' ? Math.max(1 + groups, cards) : 1 + groups };
}

/** Restores a master board with the groups and cards that were deleted with it. */
export async function restoreMasterBoard(context: SignedInContext, { id }: { id: number }) {
  await findMaster(context.db, 'boards', id, ['id'], EVEN_DELETED);

  return templateTransaction(context.db, id, async (db) => {
    await lockMasterBoards(db);
    return restoredAs('board', await undoDeletion({ ...context, db }, 'boards', id, BOARD_COLUMNS));
  });
}
