import { z } from 'zod';
import { count, id, ifVersion, PLAIN_TEXT, text, timestamp } from './fields.ts';
import { nextCursor, Page, pageOf } from './paging.ts';
import { requestExamples } from './requestExample.ts';

export const Comment = z
  .object({
    id,
    project_id: id.meta({ description: 'The project of its card.' }),
    card_id: id.meta({ description: 'Its card.' }),
    user_id: id.meta({ description: 'The user who wrote it.' }),
    parent_comment_id: id.nullable().meta({ description: 'The comment that it replies to.', example: null }),
    comment: z.string().meta({ description: `Its text; ${PLAIN_TEXT}.`, example: 'A first draft is ready.' }),
    is_read: z.boolean().meta({ description: 'Whether it was marked as read.' }),
    read_at: timestamp.nullable().meta({ description: 'When it was marked as read.', example: null }),
    created_at: timestamp.meta({ description: 'When it was written.' }),
    updated_at: timestamp.meta({ description: 'When it was last changed.' }),
    deleted_at: timestamp.nullable().meta({ description: 'When it was deleted.', example: null }),
  })
  .meta({ id: 'Comment', description: 'A comment on a card.' });

export const CommentThread = Comment.extend({
  replies: z
    .array(Comment)
    .meta({ description: 'The first 100 replies at any depth, oldest first; fewer if they are long.' }),
  replies_count: count.meta({ description: 'Total number of replies.' }),
  replies_next_cursor: nextCursor.meta({
    description: '`cursor` for comments.listReplies to get the others; null if there are none.',
  }),
}).meta({ id: 'CommentThread', description: 'A comment with its replies.' });

/** Deeper threads are hard to follow. */
export const DEEPEST_REPLY = 100;

export const CommentCreate = z.object({
  card_id: id.meta({ description: 'The card to comment on.', example: 16 }),
  comment: text().meta({ description: `The text; ${PLAIN_TEXT}.`, example: 'A first draft is ready.' }),
  parent_comment_id: id.nullish().meta({
    description: `The comment of the same card to reply to; a new thread if not sent. Replies nest at most ${DEEPEST_REPLY} levels deep.`,
    example: null,
  }),
});
export type CommentCreate = z.output<typeof CommentCreate>;

export const CommentList = Page.extend({ card_id: id.meta({ description: 'The card.', example: 16 }) });
CommentList.register(requestExamples, { example: { card_id: 16, limit: 20 } });
export type CommentList = z.output<typeof CommentList>;

export const CommentPage = pageOf('threads', CommentThread);

export const ReplyList = Page.extend({ id: id.meta({ description: 'The comment.' }) });
ReplyList.register(requestExamples, { example: { id: 1, limit: 20 } });
export type ReplyList = z.output<typeof ReplyList>;

export const ReplyPage = pageOf('replies', Comment);

export const CommentMarkRead = z.object({ id });
export const CommentDelete = z.object({ id, if_version: ifVersion });
export type CommentDelete = z.output<typeof CommentDelete>;
