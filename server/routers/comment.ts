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
} from '../../shared/comment.ts';
import { createComment, deleteComment, listComments, listReplies, markCommentRead } from '../domain/comment.ts';
import { rest } from '../restOperation.ts';
import { memberProcedure, router, viewerProcedure } from '../trpc.ts';
import { unchecked } from '../unchecked.ts';

const oneComment = unchecked(z.object({ comment: Comment }));

export const commentRouter = router({
  create: memberProcedure
    .meta(
      rest('/services/operations/v1/operations/comments/create', {
        status: 201,
        message: 'Comment created.',
        summary: 'Comment on a card',
        description: 'Adds a comment to a card, or a reply to one of its comments.',
      }),
    )
    .input(CommentCreate)
    .output(oneComment)
    .mutation(({ ctx, input }) => createComment(ctx, input)),

  list: viewerProcedure
    .input(CommentList)
    .output(CommentPage)
    .query(({ ctx, input }) => listComments(ctx, input)),

  listReplies: viewerProcedure
    .input(ReplyList)
    .output(ReplyPage)
    .query(({ ctx, input }) => listReplies(ctx, input)),

  markRead: memberProcedure
    .input(CommentMarkRead)
    .output(oneComment)
    .mutation(({ ctx, input }) => markCommentRead(ctx, input)),

  delete: memberProcedure
    .input(CommentDelete)
    .output(z.void())
    .mutation(({ ctx, input }) => deleteComment(ctx, input)),
});
