import { sql } from 'kysely';
import type { z } from 'zod';
import type { Comment, CommentCreate, CommentList, CommentThread } from '../../shared/comment.ts';
import { query, transact } from '../database/query.ts';
import { forbidden, invalid } from '../errors.ts';
import type { ProjectContext } from '../trpc.ts';
import { readCursor, toPage } from './page.ts';
import { changeRow, findRow, lockProject, mustBeFound } from './row.ts';

type CommentRow = z.input<typeof Comment>;

/** Comments on a card, or replies to a comment of that card. One statement: card and parent are checked on the way. */
export async function createComment(
  { em, caller }: ProjectContext,
  { card_id, comment, parent_comment_id = null }: CommentCreate,
) {
  const { project } = caller;
  const [found] = await query(
    em,
    sql<CommentRow & { found_in: number; has_parent: boolean }>`
      with card as (
        select id, project_id from cards where id = ${card_id} and project_id is not null and deleted_at is null for share
      ), parent as (
        select id from comments where id = ${parent_comment_id}::int and card_id = ${card_id} and deleted_at is null for share
      ), created as (
        insert into comments (project_id, card_id, user_id, parent_comment_id, comment)
        select card.project_id, card.id, ${caller.id}, ${parent_comment_id}::int, ${comment} from card
        where card.project_id = ${project.id} and (${parent_comment_id}::int is null or exists (select from parent))
        returning *
      )
      select created.*, card.project_id as found_in, exists (select from parent) as has_parent
      from card left join created on true`,
  );
  mustBeFound(project, 'cards', found && { project_id: found.found_in });
  if (parent_comment_id !== null && !found!.has_parent)
    throw invalid({ parent_comment_id: 'names no comment of this card' });

  return { comment: found! };
}

/** The comments of a card as threads, oldest first: each with all that was replied below it. */
export async function listComments(context: ProjectContext, { card_id, cursor, limit }: CommentList) {
  await findRow(context, 'cards', card_id);

  const [after] = readCursor(cursor, 1) ?? [0];
  const found = await query(
    context.em,
    sql<z.input<typeof CommentThread>>`
      with recursive root as (
        select * from comments
        where card_id = ${card_id} and parent_comment_id is null and deleted_at is null and id > ${after}
        order by id limit ${limit + 1}
      ), thread (root_id, id) as (
        select id, id from root
        union all
        select thread.root_id, reply.id from comments reply join thread on reply.parent_comment_id = thread.id
        where reply.deleted_at is null
      )
      select root.*, coalesce((
        select json_agg(reply order by reply.id) from thread join comments reply on reply.id = thread.id
        where thread.root_id = root.id and thread.id <> root.id), '[]') as replies
      from root order by root.id`,
  );
  const { rows: threads, next_cursor } = toPage(found, limit, ({ id }) => [id]);
  return { threads, next_cursor };
}

/** Marks a comment as read; the first time counts. */
export async function markCommentRead(context: ProjectContext, { id }: { id: number }) {
  const { is_read } = await findRow<CommentRow>(context, 'comments', id);
  const changes = is_read ? {} : { is_read: true, read_at: new Date() };
  return { comment: await changeRow<CommentRow>(context, 'comments', id, changes) };
}

/** Deletes a comment with all that was replied below it: its author may, and an owner of the project. */
export async function deleteComment(context: ProjectContext, { id }: { id: number }) {
  const { caller } = context;
  const { user_id } = await findRow<CommentRow>(context, 'comments', id);
  if (user_id !== caller.id && caller.project.role !== 'owner')
    throw forbidden('Only its author or an owner may delete a comment.');

  await transact(context.em, async (em) => {
    await lockProject(em, caller.project);
    const deleted = await query(
      em,
      sql<{ id: number; project_id: number }>`
        with recursive thread (id) as (
          select ${id}::int
          union all
          select reply.id from comments reply join thread on reply.parent_comment_id = thread.id
        )
        update comments set deleted_at = now(), updated_at = now()
        where id in (select id from thread) and deleted_at is null
        returning id, project_id`,
    );
    mustBeFound(
      caller.project,
      'comments',
      deleted.find((comment) => comment.id === id),
    );
  });
}
