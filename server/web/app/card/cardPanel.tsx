import './card.css';
import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { DeckhandError } from '../../../../client/client.ts';
import { go, projectAddress, withCard } from '../address.ts';
import { board, deleteCard } from '../board/boardState.ts';
import { Button, set, TextButton } from '../parts/button.tsx';
import { useLoaded, Waiting } from '../parts/loaded.tsx';
import { canChange, onProjectEvent, project } from '../project.ts';
import { client } from '../service.ts';
import { Comments } from './comments.tsx';
import type { Card, ShownCard } from './editing.tsx';
import * as fields from './fields.tsx';
import { History } from './history.tsx';
import { MoveDialog } from './moveDialog.tsx';

const close = () => go(withCard(undefined));

/** A card beside the board. */
export function CardPanel({ id }: { id: number }) {
  const loaded = useLoaded(() => readNewest(), [id]);
  /** What was saved while it was read is newer. */
  const readNewest = async (): ReturnType<typeof readCard> => {
    const before = loaded.data.peek();
    const read = await readCard(id);
    return loaded.data.peek() === before ? read : readNewest();
  };
  const panel = useFocus(id);
  const { card } = loaded.data.value ?? {};
  const follow = () =>
    onProjectEvent((event, isOwn) => {
      const isThis = event?.type.startsWith('card.') && event.subject_id === id;
      if (!event || (isThis && !(isOwn && event.type === 'card.updated'))) loaded.reload();
    });
  useEffect(follow, [id]);
  const title = loaded.data.value && [card?.title ?? 'No such card', project.value?.name, 'Deckhand'].join(' · ');
  useEffect(() => {
    if (title) document.title = title;
  }, [title]);
  const press = ({ key, target }: KeyboardEvent) => {
    if (key === 'Escape' && !(target as Element).closest('dialog')) close();
  };
  return (
    <aside class="panel" aria-label={`Card ${card?.title ?? ''}`} tabIndex={-1} ref={panel} onKeyDown={press}>
      <Button as="icon" aria-label="Close the card" onClick={close}>
        ×
      </Button>
      <Waiting loaded={loaded}>
        {card ? <Content shown={{ state: loaded.data as ShownCard['state'], reload: loaded.reload }} /> : <Gone />}
      </Waiting>
    </aside>
  );
}

async function readCard(id: number): Promise<{ card: Card; version: string } | { card: undefined }> {
  try {
    return await client.cards.get.query({ id });
  } catch (error) {
    if (!/^(not_found|other_project)$/.test((error as DeckhandError).reason ?? '')) throw error;
    return { card: undefined };
  }
}

const Gone = () => (
  <>
    <h2>This card is not here</h2>
    <p>It was deleted, or the project never had a card with this number.</p>
    {canChange.value && <a href={projectAddress(project.value?.id ?? 0, 'trash')}>Look into the trash</a>}{' '}
    <TextButton text="Close" onClick={close} />
  </>
);

function Content({ shown }: { shown: ShownCard }) {
  const isMoving = useSignal(false);
  const { card } = shown.state.value;
  const group = board.value?.groups.find(({ cards }) => cards.some(({ id }) => id === card.id));
  return (
    <>
      <h2 class="unseen">{card.title}</h2>
      <p class="hint" dir="auto">
        {group?.title ?? (card.group_id === null ? 'In no group' : 'In a group of another board')}{' '}
        {canChange.value && <TextButton text="Move to…" onClick={set(isMoving, true)} />}
        {canChange.value && <TextButton text="Delete" onClick={() => deleteCard(card)} />}
      </p>
      <fields.TitleField shown={shown} />
      <div class="fields">
        <fields.OwnerField shown={shown} />
        <fields.TagField shown={shown} />
        <fields.StatusField shown={shown} />
        <fields.PriorityField shown={shown} />
        <fields.DueField shown={shown} />
        <fields.SnoozeField shown={shown} />
      </div>
      {card.short_description && <p dir="auto">{card.short_description}</p>}
      <fields.DescriptionField shown={shown} />
      <Comments cardId={card.id} />
      <History card={card} />
      {isMoving.value && <MoveDialog card={card} onClose={set(isMoving, false)} />}
    </>
  );
}

/** Into the panel when a person opens it, and back to the card on the board when it closes. */
function useFocus(id: number) {
  const panel = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const element = panel.current;
    if (document.activeElement !== document.body) element?.focus();
    return () => {
      if (!element?.contains(document.activeElement)) return;
      const tile = document.querySelector<HTMLElement>(`#card-${id} .title`);
      (tile ?? document.getElementById('content'))?.focus();
    };
  }, [id]);
  return panel;
}
