import { sql } from 'kysely';
import type { z } from 'zod';
import {
  Comment,
  type CommentCreate,
  type CommentDelete,
  type CommentList,
  type CommentThread,
  DEEPEST_REPLY,
  type ReplyList,
} from '../../../shared/comment.ts';
import { badRequest, forbidden, invalid } from '../../../shared/errors.ts';
import { isAllowed } from '../../../shared/user.ts';
import { jsonOf } from '../../database/jsonRow.ts';
import { readCursor, toCursor, toPage } from '../../database/page.ts';
import { lockProject } from '../../database/projectLock.ts';
import { anyOf, type Db, live, query, transact } from '../../database/query.ts';
import { type Selected, selectionOf } from '../../database/selection.ts';
import type { Row, RowChanges } from '../../database/tables.ts';
import { VERSION, withVersion } from '../../database/version.ts';
import { asJsonText, type DateFields } from '../../runtime/jsonText.ts';
import { accountOf } from '../access/access.ts';
import { type Confirmed, confirming } from '../access/confirmation.ts';
import type { ProjectContext } from '../access/context.ts';
import { isEnough, type Permit, permitOf, roleIn } from '../access/permission.ts';
import { type Actor, actorOf, eventParts } from '../event/event.ts';
import { countTaken } from './deletion.ts';
import { deletedBy } from './deletionRecord.ts';
import { bytesOf, cutToResponseSize } from './responseSize.ts';
import { IN_PROJECT, restoredAs, restoreRow } from './restoration.ts';
import { type CallerRole, changeRow, deleteRow, findRow, isLiveCard, mustBeFound, type NamedProject } from './row.ts';

/** The columns of a comment in responses. */
const COMMENT_COLUMNS = Comment.keyof().options;
type CommentRow = Selected<'comments', typeof COMMENT_COLUMNS>;

/** Adds a comment to a card, or a reply to one of its comments. */
export async function createComment(
  context: ProjectContext,
  { card_id, comment, parent_comment_id = null }: CommentCreate,
) {
  const { caller } = context;
  accountOf(caller);
  const insert = caller.superadmin ? insertAuditedComment : insertComment;
  const sent = { card_id, comment, parent_comment_id };
  const [found] = await insert(context, { ...sent, ...permitOf(caller), ...actorOf(context) });
  const { created, version, depth } = mustBeFound(caller, 'cards', found);
  if (created === null || version === null) {
    if (depth === null) throw invalid({ parent_comment_id: 'is not a comment of this card' }, 'unknown_reference');
    throw badRequest(
      `Replies nest at most ${DEEPEST_REPLY} levels deep. Reply to an earlier comment of the thread.`,
      'thread_too_deep',
    );
  }

  return { comment: asJsonText<z.output<typeof Comment>>(created, DATES), version };
}

/** The dates of a new comment. */
const DATES: DateFields = { own: ['created_at', 'updated_at'] };

/**
 * One statement that also checks card and parent. If nothing was inserted, it returns only the project of the card, and the depth
 * that the reply would have; null without a parent.
 *
 * - `card`, `parent`: lock both against deletion; the parent must be on the same card. With `card_id =` the planner would read
 *   all comments of the card.
 * - `created`: the comment as JSON, only if the role is high enough and the reply is not too deep.
 * - `noted`: its event.
 */
const insertion = ({ hasAudit }: { hasAudit: boolean }) =>
  confirming<
    Permit & Actor & Pick<Row<'comments'>, 'card_id' | 'comment' | 'parent_comment_id'>,
    CallerRole & Confirmed & { created: string | null; version: string | null; depth: number | null }
  >(
    (value, { first, isConfirmed }) => sql`
    with ${first}card as (
      select id as card_id, project_id, platform_id, ${roleIn('cards.project_id', value)} as caller_role from cards
      where id = ${value('card_id')} and project_id is not null and ${isLiveCard('cards')} and ${isConfirmed} for share
    ), parent as (
      select coalesce(root_comment_id, id) as root_comment_id, depth + 1 as depth from comments
      where id = ${value('parent_comment_id')}::int and card_id is not distinct from ${value('card_id')} and ${live()}
        and ${isConfirmed} for share
    ), created as (
      insert into comments (project_id, card_id, user_id, parent_comment_id, comment, root_comment_id, depth)
      select project_id, card_id, ${value('user_id')}, ${value('parent_comment_id')}::int, ${value('comment')}, root_comment_id, coalesce(depth, 0)
      from card left join parent on true
      where ${isConfirmed} and ${isEnough(sql`caller_role`, value)}
        and (${value('parent_comment_id')}::int is null or depth <= ${sql.lit(DEEPEST_REPLY)})
      returning ${jsonOf('comments', Comment)} as json, ${VERSION}, id, project_id, card_id, parent_comment_id
    ), ${eventParts(CREATED, value, hasAudit)}
    select card.project_id, caller_role, created.json as created, created.version, (select depth from parent) as depth,
      ${isConfirmed} as is_confirmed
    from card left join created on true`,
  );

const CREATED = sql`
  select 'comment.created' as type, (select platform_id from card) as platform_id, project_id, id as subject_id,
    null::int as by_user_id, jsonb_build_object('card_id', card_id, 'parent_comment_id', parent_comment_id, 'version', 1) as data
  from created`;

const insertComment = insertion({ hasAudit: false });
const insertAuditedComment = insertion({ hasAudit: true });

/** How many replies a thread includes. */
const FIRST_REPLIES = 100;

type Numbered = { root_id: number; id: number; place: number; replies_count: number };

/** The comments of the threads with their sizes. */
const NUMBERED = sql<Numbered>`
  select n.*, c.comment, ${bytesOf('comments', 'c')} as bytes
  from numbered n join comments c on c.id = n.id where n.place <= ${sql.lit(FIRST_REPLIES)}`;

/**
 * The threads of a card, oldest first, each with its first replies.
 *
 * - `root`: the first comments of the page's threads.
 * - `thread`, `numbered`: all live comments of these threads, numbered within each.
 * - `fitting`: as many of them as fit into one response.
 * - `replies`: these, as JSON by thread.
 */
export async function listComments(context: ProjectContext, { card_id, cursor, limit }: CommentList) {
  await findRow(context, 'cards', card_id);

  const [after = 0] = readCursor(cursor, 1);
  const found = await query(
    context.db,
    sql<Omit<z.input<typeof CommentThread>, 'replies_next_cursor'> & { found: number }>`
      with root as (
        select id from comments
        where card_id = ${card_id} and parent_comment_id is null and ${live()} and id > ${after}
        order by id limit ${limit + 1}
      ), thread (root_id, id) as (
        select id, id from root
        union all
        select root_comment_id, id from comments where root_comment_id in (select id from root) and ${live()}
      ), numbered as (
        select root_id, id, row_number() over (partition by root_id order by id <> root_id, id) - 1 as place,
          count(*) over (partition by root_id) - 1 as replies_count
        from thread
      ), fitting as (${cutToResponseSize('comments', NUMBERED, ['root_id', 'id', 'place', 'replies_count'], ['root_id', 'place'])}
      ), replies as (
        select a.root_id, json_agg(reply order by reply.id) as replies
        from fitting a join (select ${selectionOf(COMMENT_COLUMNS)} from comments) as reply on reply.id = a.id where a.place > 0 group by a.root_id
      )
      select ${selectionOf(COMMENT_COLUMNS, 'c')}, a.replies_count::int, coalesce(r.replies, '[]') as replies, (select count(*)::int from root) as found
      from fitting a join comments c on c.id = a.id left join replies r on r.root_id = a.id
      where a.place = 0 order by c.id`,
  );
  const { threads, next_cursor } = toPage('threads', found, limit);
  return {
    threads: threads.map((thread) => ({ ...thread, replies_next_cursor: cursorForReplies(thread) })),
    next_cursor,
  };
}

function cursorForReplies({ replies, replies_count }: { replies: { id: number }[]; replies_count: number }) {
  return replies.length < replies_count ? toCursor([replies.at(-1)?.id ?? 0]) : null;
}

/** The replies to a comment at any depth, oldest first. */
export async function listReplies(context: ProjectContext, { id, cursor, limit }: ReplyList) {
  const { row } = await findRow(context, 'comments', id, ['id', 'root_comment_id']);

  const [after = 0] = readCursor(cursor, 1);
  const isBelow =
    row.root_comment_id === null
      ? sql`c.root_comment_id = ${id}`
      : sql`c.id = any(${await repliesTo(context.db, row)}::int[])`;
  const found = await query(
    context.db,
    cutToResponseSize(
      'comments',
      sql<CommentRow>`
        select ${selectionOf(COMMENT_COLUMNS, 'c')}, ${bytesOf('comments', 'c')} as bytes from comments c
        where ${isBelow} and ${live('c')} and c.id > ${after} order by c.id limit ${limit + 1}`,
      COMMENT_COLUMNS,
      ['id'],
    ),
  );
  return toPage('replies', found, limit);
}

/** The ids of all replies below a comment. Reads its thread once: recursion in SQL may take a scan for each level. */
export async function repliesTo(
  db: Db,
  { id, root_comment_id }: Thread,
  { withDeleted = false } = {},
): Promise<number[]> {
  const thread = await db
    .selectFrom('comments')
    .select(['id', 'parent_comment_id'])
    .where('root_comment_id', '=', root_comment_id ?? id)
    .$if(!withDeleted, (replies) => replies.where(live()))
    .orderBy('id')
    .execute();
  // In the order of ids: a reply has a larger id than its parent.
  const below = new Set<number | null>([id]);
  const replies = thread.filter((reply) => below.has(reply.parent_comment_id) && below.add(reply.id));
  return replies.map((reply) => reply.id);
}
type Thread = Pick<Row<'comments'>, 'id' | 'root_comment_id'>;

/** Marks a comment as read; keeps the first `read_at`. */
export async function markCommentRead(context: ProjectContext, { id }: { id: number }) {
  const { row } = await findRow(context, 'comments', id, ['is_read']);
  const changes: RowChanges<'comments'> = row.is_read ? {} : { is_read: true, read_at: new Date() };
  const event = { type: 'comment.read' } as const;
  return withVersion('comment', await changeRow(context, 'comments', id, changes, COMMENT_COLUMNS, { event }));
}

/** Deletes a comment with all its replies; only for its author or an owner of the project. */
export async function deleteComment(context: ProjectContext, { id, if_version }: CommentDelete) {
  const { row, project } = await findRow(context, 'comments', id, ['id', 'card_id', 'root_comment_id', 'user_id']);
  mustBeAuthor(context, row, project, 'delete');

  await transact(context.db, async (db) => {
    await lockProject(db, project.id);
    const { card_id } = row;
    const deletion_id = await deleteRow({ ...context, db }, 'comments', id, { if_version, data: { card_id } });
    // Again until there are none, for replies that were created while it waited for their parents.
    let count = 0;
    for (let deleted = -1; deleted !== 0; count += deleted) deleted = await deleteReplies(db, row, deletion_id);
    await countTaken(db, deletion_id, count);
  });
}

async function deleteReplies(db: Db, comment: Thread, deletion_id: number): Promise<number> {
  // Deleted ones, too: replies may have been added below them meanwhile.
  const ids = await repliesTo(db, comment, { withDeleted: true });
  const deleted = db.updateTable('comments').set(deletedBy(deletion_id)).where('id', '=', anyOf(ids)).where(live());
  return (await deleted.returning('id').execute()).length;
}

/** Restores a comment with the replies that were deleted with it; only for its author or an owner of the project. */
export async function restoreComment(context: ProjectContext, { id }: { id: number }) {
  const { row, project } = await findRow(context, 'comments', id, ['user_id'], IN_PROJECT);
  mustBeAuthor(context, row, project, 'restore');
  return restoredAs('comment', await restoreRow(context, 'comments', id, COMMENT_COLUMNS));
}

function mustBeAuthor(
  { caller }: ProjectContext,
  { user_id }: { user_id: number },
  { role }: NamedProject,
  verb: string,
): void {
  if (user_id !== caller.id && !isAllowed(role, 'manage'))
    throw forbidden(`Only its author or an owner may ${verb} a comment.`, 'not_the_author');
}
