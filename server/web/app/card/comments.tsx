import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { DeckhandError } from '../../../../client/client.ts';
import { account } from '../account.ts';
import { draftOf, hasDraft, ofCard } from '../draft.ts';
import { Initials } from '../frame.tsx';
import { keep, readKept } from '../kept.ts';
import { Hint, set, TextButton } from '../parts/button.tsx';
import { Form } from '../parts/form.tsx';
import { useLoaded, Waiting } from '../parts/loaded.tsx';
import { say, sayFailure } from '../parts/message.tsx';
import { canChange, canManage, onProjectEvent } from '../project.ts';
import { client } from '../service.ts';
import { Ago, nameOf } from './person.tsx';

type Page = Awaited<ReturnType<typeof client.comments.list.query>>;
type Thread = Page['threads'][number];
type Comment = Thread['replies'][number];
/** How many threads are shown, and of which all replies. */
type Wanted = { threads: number; whole: Set<number> };

const PAGE = 200;

/** The threads of a card, oldest first. */
export function Comments({ cardId }: { cardId: number }) {
  const wanted = useRef<Wanted>({ threads: PAGE, whole: new Set() });
  const loaded = useLoaded(() => readThreads(cardId, wanted.current), [cardId]);
  const { reload } = loaded;
  const { threads = [], hasMore = false } = loaded.data.value ?? {};
  const all = threads.flatMap((thread): Comment[] => [thread, ...thread.replies]);
  const ids = useRef(new Set<number>());
  ids.current = new Set(all.map(({ id }) => id));
  const follow = () =>
    onProjectEvent((event, isOwn) => {
      const isHere = event?.data.card_id === cardId || ids.current.has(event?.subject_id ?? 0);
      if (!event || (event.type.startsWith('comment.') && isHere && !isOwn)) reload();
    });
  useEffect(follow, [cardId]);
  const readMore = (thread?: Thread) => {
    if (thread) wanted.current.whole.add(thread.id);
    else wanted.current.threads += PAGE;
    return reload();
  };
  const looked = useRef(readKept<string>(ofCard(cardId, 'looked')));
  useEffect(() => {
    if (!loaded.data.value) return;
    looked.current ??= latestOf(all);
    if (!document.hidden) keep(ofCard(cardId, 'looked'), latestOf(all));
  }, [loaded.data.value]);
  const isNew = (comment: Comment) =>
    comment.created_at.toISOString() > (looked.current ?? '~') && comment.user_id !== account.value?.id;
  const newCount = all.filter(isNew).length;
  const count = threads.reduce((sum, { replies_count }) => sum + 1 + replies_count, 0);
  return (
    <section class="comments" aria-labelledby="comments">
      <h3 id="comments">
        Comments <span class="count">{loaded.data.value && `${count}${hasMore ? '+' : ''}`}</span>
      </h3>
      {newCount > 0 && <Hint>{newCount} new since you looked</Hint>}
      <Waiting loaded={loaded}>
        {count === 0 && <Hint>No comments yet.</Hint>}
        <ul aria-busy={loaded.isLoading}>
          {threads.map((thread) => (
            <CommentView key={thread.id} comment={thread} reload={reload} thread={thread} isNew={isNew}>
              {thread.replies.map((reply) => (
                <CommentView key={reply.id} comment={reply} reload={reload} thread={thread} isNew={isNew} />
              ))}
              {thread.replies.length < thread.replies_count && (
                <li>
                  <TextButton text={`Show all ${thread.replies_count} replies`} onClick={() => readMore(thread)} />
                </li>
              )}
            </CommentView>
          ))}
        </ul>
        {hasMore && <TextButton text={`The first ${threads.length} threads. Show more`} onClick={() => readMore()} />}
      </Waiting>
      {canChange.value && <Write cardId={cardId} onDone={reload} />}
    </section>
  );
}

async function readThreads(card_id: number, { threads: most, whole }: Wanted) {
  const threads: Thread[] = [];
  let next: string | null = null;
  do {
    const page: Page = await client.comments.list.query({ card_id, cursor: next, limit: PAGE });
    threads.push(...page.threads);
    next = page.next_cursor;
  } while (next !== null && threads.length < most);
  for (const thread of threads.filter(({ id }) => whole.has(id)))
    thread.replies = await Array.fromAsync(client.comments.listReplies.each({ id: thread.id, limit: PAGE }));
  return { threads, hasMore: next !== null };
}

/** When the newest comment was written: by the clock of the service, as those that it is compared with. */
const latestOf = (comments: Comment[]) =>
  comments.map(({ created_at }) => created_at.toISOString()).reduce((one, other) => (other > one ? other : one), '');

async function act(send: () => Promise<unknown>, reload: () => Promise<void>): Promise<void> {
  await send().catch((error) => sayFailure(error));
  await reload();
}

type CommentProps = {
  comment: Comment;
  thread: Thread;
  reload: () => Promise<void>;
  /** Whether it was written since the user looked at the card in this browser; never at the first look. */
  isNew: (comment: Comment) => boolean;
  children?: ComponentChildren;
};

function CommentView({ comment, reload, thread, isNew, children }: CommentProps) {
  const { id, card_id, user_id, parent_comment_id, created_at } = comment;
  const isReplying = useSignal(hasDraft(replyDraft(card_id, id)));
  const name = nameOf(user_id);
  const parent = thread.replies.find((reply) => reply.id === parent_comment_id);
  const remove = async () => {
    await client.comments.delete.mutate({ id });
    const undo = () => act(() => client.comments.restore.mutate({ id }), reload);
    say('Deleted the comment, with its replies.', { label: 'Undo', run: undo });
  };
  return (
    <li class={isNew(comment) ? 'comment new' : 'comment'}>
      <Initials name={name} /> <strong dir="auto">{name}</strong> {parent && `to ${nameOf(parent.user_id)} `}
      <Ago at={created_at} /> {isNew(comment) && <span class="chip">new</span>}
      <p dir="auto">{comment.comment}</p>
      {canChange.value && (
        <TextButton text="Reply" of={name} aria-expanded={isReplying} onClick={set(isReplying, true)} />
      )}
      {canChange.value && (user_id === account.value?.id || canManage.value) && (
        <TextButton text="Delete" onClick={() => act(remove, reload)} />
      )}
      {isReplying.value && <Write cardId={card_id} parent={comment} onDone={reload} onClose={set(isReplying, false)} />}
      {children && <ul>{children}</ul>}
    </li>
  );
}

const replyDraft = (cardId: number, parent: number) => ofCard(cardId, `reply.${parent}`);

type WriteProps = { cardId: number; parent?: Comment; onDone: () => Promise<void>; onClose?: () => void };

/** `failed` is a try without a response, and its key: the same text sent again is never a second comment. */
type Draft = { text: string; failed?: { text: string; key: string | undefined } };

/** What is typed is kept until it is sent. */
function Write({ cardId, parent, onDone, onClose }: WriteProps) {
  const [draft, keepDraft] = draftOf<Draft>(parent ? replyDraft(cardId, parent.id) : ofCard(cardId, 'comment'));
  const label = parent ? `Reply to ${nameOf(parent.user_id)}` : 'Write a comment';
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (parent && draft.peek() === undefined) area.current?.focus();
  }, []);
  const close = () => {
    keepDraft(undefined);
    onClose?.();
  };
  const send = async () => {
    const { text = '', failed } = draft.peek() ?? {};
    const comment = { card_id: cardId, comment: text, parent_comment_id: parent?.id };
    const idempotencyKey = failed?.text === text ? failed.key : undefined;
    await client.comments.create.mutate(comment, { idempotencyKey }).catch((error: DeckhandError) => {
      keepDraft({ ...(draft.peek() ?? { text }), failed: { text, key: error.idempotencyKey } });
      // Only the response may be lost.
      onDone();
      throw error;
    });
    const rest = draft.peek()?.text.replace(text, '').trimStart();
    if (rest) keepDraft({ text: rest });
    else close();
    await onDone();
  };
  const type = (text: string) => keepDraft(text ? { ...draft.peek(), text } : undefined);
  return (
    <Form action={parent ? 'Send the reply' : 'Comment'} onSubmit={send} onCancel={onClose && close}>
      <textarea
        class="input"
        rows={2}
        required
        dir="auto"
        ref={area}
        aria-label={label}
        placeholder={label}
        value={draft.value?.text ?? ''}
        onInput={({ currentTarget }) => type(currentTarget.value)}
      />
    </Form>
  );
}
