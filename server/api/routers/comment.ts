import { z } from 'zod';
import {
  Comment,
  CommentCreate,
  CommentDelete,
  CommentList,
  CommentMarkRead,
  CommentPage,
  ReplyList,
  ReplyPage,
} from '../../../shared/comment.ts';
import { rowVersion } from '../../../shared/fields.ts';
import { restoredOf, restoreOf } from '../../../shared/trash.ts';
import {
  createComment,
  deleteComment,
  listComments,
  listReplies,
  markCommentRead,
  restoreComment,
} from '../../domain/board/comment.ts';
import { rest, specified } from '../restOperation.ts';
import { restoring } from '../restoreOperation.ts';
import { memberProcedure, router, viewerProcedure } from '../trpc.ts';

const oneComment = z.object({ comment: Comment, version: rowVersion });

export const commentRouter = router({
  create: specified(memberProcedure, '/services/operations/v1/operations/comments/create', {
    status: 201,
    message: 'Comment created.',
    summary: 'Comment on a card',
    description: 'Adds a comment to a card, or a reply to one of its comments.',
  })
    .meta({
      events: ['comment.created'],
      tool: true,
      confirms: true,
      reasons: ['unknown_reference', 'thread_too_deep'],
    })
    .input(CommentCreate)
    .output(oneComment)
    .mutation(({ ctx, input }) => createComment(ctx, input)),

  list: rest(viewerProcedure, '/services/operations/v1/operations/comments/list', {
    message: 'Comments of the card.',
    summary: 'List comments',
    description: 'The comment threads of a card, oldest first, each with its first replies.',
  })
    .meta({ tool: true })
    .input(CommentList)
    .output(CommentPage)
    .query(({ ctx, input }) => listComments(ctx, input)),

  listReplies: rest(viewerProcedure, '/services/operations/v1/operations/comments/list-replies', {
    message: 'Replies to the comment.',
    summary: 'List replies',
    description: 'The replies to a comment at any depth, oldest first.',
  })
    .input(ReplyList)
    .output(ReplyPage)
    .query(({ ctx, input }) => listReplies(ctx, input)),

  markRead: rest(memberProcedure, '/services/operations/v1/operations/comments/mark-read', {
    message: 'Comment marked as read.',
    summary: 'Mark a comment as read',
    description: 'Marks a comment as read; the first time stays.',
  })
    .meta({ events: ['comment.read'] })
    .input(CommentMarkRead)
    .output(oneComment)
    .mutation(({ ctx, input }) => markCommentRead(ctx, input)),

  delete: rest(memberProcedure, '/services/operations/v1/operations/comments/delete', {
    message: 'Comment deleted.',
    summary: 'Delete a comment',
    description: 'Deletes a comment with all its replies; only for its author or an owner.',
  })
    .meta({ isDestructive: true, events: ['comment.deleted'], reasons: ['not_the_author'] })
    .input(CommentDelete)
    .output(z.void())
    .mutation(({ ctx, input }) => deleteComment(ctx, input)),

  restore: restoring(memberProcedure, '/services/operations/v1/operations/comments/restore', 'comment', {
    events: ['comment.restored'],
    with: 'the replies',
  })
    .meta({ reasons: ['not_the_author', 'parent_deleted'] })
    .input(restoreOf(1))
    .output(restoredOf('comment', Comment))
    .mutation(({ ctx, input }) => restoreComment(ctx, input)),
});
