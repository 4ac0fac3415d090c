import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { board } from '../board/boardState.ts';
import type { ChangeEvent } from '../feed.ts';
import { Hint, set, TextButton } from '../parts/button.tsx';
import { useLoaded, Waiting } from '../parts/loaded.tsx';
import { Time } from '../parts/time.tsx';
import { inProject, onProjectEvent } from '../project.ts';
import type { Card } from './editing.tsx';
import { Ago, nameOf } from './person.tsx';

const SHOWN_AT_ONCE = 30;

/** What happened to a card, newest first; read when it is opened. */
export function History({ card }: { card: Card }) {
  const isOpen = useSignal(false);
  return (
    <details class="history" onToggle={({ currentTarget }) => set(isOpen, currentTarget.open)()}>
      <summary>History</summary>
      {isOpen.value && <Events card={card} />}
    </details>
  );
}

function Events({ card }: { card: Card }) {
  const most = useSignal(SHOWN_AT_ONCE);
  const loaded = useLoaded(() => readEvents(card.id), [card.id]);
  const follow = () =>
    onProjectEvent((event) => {
      if (!event || (event.type.startsWith('card.') ? event.subject_id : event.data.card_id) === card.id)
        loaded.reload();
    });
  useEffect(follow, [card.id]);
  const events = loaded.data.value ?? [];
  const older = events.length - most.value;
  const oldest = events.at(-1);
  return (
    <Waiting loaded={loaded}>
      <ul>
        {events.slice(0, most.value).map((event) => (
          <li key={event.id}>
            <strong dir="auto">{event.user_id === null ? 'The service' : nameOf(event.user_id)}</strong>{' '}
            {[whatHappened(event), surfaceOf(event)].filter(Boolean).join(', ')} <Ago at={event.created_at} />
          </li>
        ))}
      </ul>
      {older > 0 && <TextButton text={`Show more (${older} older)`} onClick={set(most, most.value + SHOWN_AT_ONCE)} />}
      {older <= 0 && oldest?.type !== 'card.created' && (
        <Hint>
          Created <Time at={card.created_at} />. What happened before {oldest ? <Time at={oldest.created_at} /> : 'now'}{' '}
          is not kept.
        </Hint>
      )}
    </Waiting>
  );
}

/** All events of a card that are kept, newest first. The service lists them from the oldest on. */
export async function readEvents(card_id: number): Promise<ChangeEvent[]> {
  const events: ChangeEvent[] = [];
  for (let after: string | undefined, hasMore = true; hasMore; ) {
    const page = await inProject().events.list.query({ card_id, after, limit: 500 });
    events.push(...page.events);
    [after, hasMore] = [page.cursor, page.has_more];
  }
  return events.reverse();
}

const WORDS: Record<string, string> = {
  'card.created': 'created it',
  'card.deleted': 'deleted it',
  'card.restored': 'took it out of the trash',
  'comment.created': 'commented',
  'comment.read': 'marked a comment as read',
  'comment.deleted': 'deleted a comment',
  'comment.restored': 'brought a comment back',
};
const FIELD_WORDS: Record<string, string> = { owner_id: 'owner', tag_id: 'tag', snoozed_until: 'snooze' };

function whatHappened({ type, data }: ChangeEvent): string {
  const group = board.value?.groups.find(({ id }) => id === data.group_id);
  if (type === 'card.moved')
    return data.group_id === null ? 'moved it out of its group' : `moved it${group ? ` (“${group.title}”)` : ''}`;
  if (type === 'comment.created' && data.parent_comment_id) return 'replied to a comment';
  const fields = data.fields?.map((field) => FIELD_WORDS[field] ?? field.replaceAll('_', ' '));
  if (type === 'card.updated' && fields?.length) return `changed ${new Intl.ListFormat('en').format(fields)}`;
  return WORDS[type] ?? type.replace('.', ' ');
}

const SURFACES: Record<string, string> = {
  rest: 'over REST',
  mcp: 'by an assistant',
  command_line: 'at the command line',
};

/** Where the change came from, unless it was a page like this one. */
const surfaceOf = ({ surface, key_id }: ChangeEvent) => (key_id === null ? SURFACES[surface] : 'by API key');
