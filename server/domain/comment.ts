import { sql } from 'kysely';
import type { z } from 'zod';
import {
  Comment,
  type CommentCreate,
  type CommentList,
  type CommentThread,
  type ReplyList,
} from '../../shared/comment.ts';
import { accountOf } from '../access.ts';
import type { ProjectContext } from '../context.ts';
import { prepared } from '../database/prepared.ts';
import { type Db, live, query, transact } from '../database/query.ts';
import type { Row, RowChanges } from '../database/tables.ts';
import { forbidden, invalid } from '../errors.ts';
import { LARGEST_ANSWER_BYTES } from '../limits/answerBudget.ts';
import { bytesOf, cutToAnswerSize } from './answerSize.ts';
import { readCursor, toCursor, toPage } from './page.ts';
import { isEnough, type Permit, permitOf, roleIn } from './permission.ts';
import { type CallerRole, changeRow, findRow, lockProject, mustBeFound, type Selected, selectionOf } from './row.ts';

/** The columns of a comment in answers. */
const COMMENT_COLUMNS = Comment.keyof().options;
type CommentRow = Selected<'comments', typeof COMMENT_COLUMNS>;

/** Adds a comment to a card, or a reply to one of its comments. */
export async function createComment(
  { db, caller }: ProjectContext,
  { card_id, comment, parent_comment_id = null }: CommentCreate,
) {
  accountOf(caller);
  const [found] = await insertComment(db, { card_id, comment, parent_comment_id, ...permitOf(caller) });
  const created = mustBeFound(caller, 'cards', found);
  if (created.id === null) throw invalid({ parent_comment_id: 'is not a comment of this card' }, 'unknown_reference');

  return { comment: created };
}

/** One statement that also checks card and parent. Returns only the project of the card if nothing was inserted. */
const insertComment = prepared<
  Permit & Pick<Row<'comments'>, 'card_id' | 'comment' | 'parent_comment_id'>,
  (CommentRow | { id: null }) & CallerRole
>(
  (value) => sql`
    with card as (
      select id as card_id, project_id, ${roleIn('cards.project_id', value)} as caller_role from cards
      where id = ${value('card_id')} and project_id is not null and ${live()} for share
    ), parent as (
      select id from comments
      where id = ${value('parent_comment_id')}::int and card_id = ${value('card_id')} and ${live()} for share
    ), created as (
      insert into comments (project_id, card_id, user_id, parent_comment_id, comment)
      select project_id, card_id, ${value('user_id')}, ${value('parent_comment_id')}::int, ${value('comment')} from card
      where ${isEnough(sql`caller_role`, value)} and (${value('parent_comment_id')}::int is null or exists (select from parent))
      returning ${selectionOf(COMMENT_COLUMNS)}
    )
    select ${selectionOf(COMMENT_COLUMNS)}, caller_role from card left join created using (card_id, project_id)`,
);

/** How many replies a thread includes. */
const FIRST_REPLIES = 100;

/** The threads of a card, oldest first, each with its first replies. */
export async function listComments(context: ProjectContext, { card_id, cursor, limit }: CommentList) {
  await findRow(context, 'cards', card_id);

  const [after = 0] = readCursor(cursor, 1);
  const found = await query(
    context.db,
    sql<Omit<z.input<typeof CommentThread>, 'replies_next_cursor'> & { found: number }>`
      with recursive root as (
        select id from comments
        where card_id = ${card_id} and parent_comment_id is null and ${live()} and id > ${after}
        order by id limit ${limit + 1}
      ), thread (root_id, id) as (
        select id, id from root
        union all
        select thread.root_id, reply.id from comments reply join thread on reply.parent_comment_id = thread.id
        where ${live('reply')}
      ), numbered as (
        select root_id, id, row_number() over (partition by root_id order by id <> root_id, id) - 1 as place,
          count(*) over (partition by root_id) - 1 as replies_count
        from thread
      ), sized as (
        select n.*, sum(${bytesOf('comments', 'c')}) over (order by n.root_id, n.place) - ${bytesOf('comments', 'c')} as bytes_before
        from numbered n join comments c on c.id = n.id where n.place <= ${FIRST_REPLIES}
      ), answered as (
        select * from sized where bytes_before < ${sql.lit(LARGEST_ANSWER_BYTES)}
      ), replies as (
        select a.root_id, json_agg(reply order by reply.id) as replies
        from answered a join (select ${selectionOf(COMMENT_COLUMNS)} from comments) as reply on reply.id = a.id where a.place > 0 group by a.root_id
      )
      select ${selectionOf(COMMENT_COLUMNS, 'c')}, a.replies_count::int, coalesce(r.replies, '[]') as replies, (select count(*)::int from root) as found
      from answered a join comments c on c.id = a.id left join replies r on r.root_id = a.id
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
  await findRow(context, 'comments', id);

  const [after = 0] = readCursor(cursor, 1);
  const found = await query(
    context.db,
    cutToAnswerSize(
      sql<CommentRow>`
        with recursive thread (id) as (
          select ${id}::int
          union all
          select reply.id from comments reply join thread on reply.parent_comment_id = thread.id where ${live('reply')}
        )
        select ${selectionOf(COMMENT_COLUMNS, 'c')}, ${bytesOf('comments', 'c')} as bytes from thread join comments c on c.id = thread.id
        where c.id <> ${id} and c.id > ${after} order by c.id limit ${limit + 1}`,
      COMMENT_COLUMNS,
      ['id'],
    ),
  );
  return toPage('replies', found, limit);
}

/** Marks a comment as read; keeps the first `read_at`. */
export async function markCommentRead(context: ProjectContext, { id }: { id: number }) {
  const { row } = await findRow(context, 'comments', id, ['is_read']);
  const changes: RowChanges<'comments'> = row.is_read ? {} : { is_read: true, read_at: new Date() };
  return { comment: await changeRow(context, 'comments', id, changes, COMMENT_COLUMNS) };
}

/** Deletes a comment with all its replies; only for its author or an owner of the project. */
export async function deleteComment(context: ProjectContext, { id }: { id: number }) {
  const { caller } = context;
  const { row, project } = await findRow(context, 'comments', id, ['user_id']);
  if (row.user_id !== caller.id && project.role !== 'owner')
    throw forbidden('Only its author or an owner may delete a comment.', 'not_the_author');

  await transact(context.db, async (db) => {
    await lockProject(db, project.id);
    let deleted = await deleteThread(db, id);
    if (!deleted.some((comment) => comment.id === id)) mustBeFound(caller, 'comments', undefined);
    // Again, for replies that were created while it waited for their parents.
    while (deleted.length > 0) deleted = await deleteThread(db, id);
  });
}

const deleteThread = (db: Db, id: number) =>
  query(
    db,
    sql<Pick<Row<'comments'>, 'id'>>`
      with recursive thread (id) as (
        select ${id}::int
        union all
        select reply.id from comments reply join thread on reply.parent_comment_id = thread.id
      )
      update comments set deleted_at = now(), updated_at = now()
      where id in (select id from thread) and ${live()}
      returning id`,
  );
