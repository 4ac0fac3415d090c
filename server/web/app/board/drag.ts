import { scrollAtEdge } from './edgeScroll.ts';
import type { Move } from './places.ts';

const LEAST_PIXELS = 5;

type Drags = { onStart: () => void; onEnd: (move?: Move) => void; signal: AbortSignal };

/**
 * Lets people move the cards of a board: with the mouse, with a finger on the handle of a card, or with Alt and the arrow keys.
 * During a drag, the element of the card is at its new place; before `onEnd`, it is put back, since Preact draws the move.
 */
export function followDrags(board: HTMLElement, { onStart, onEnd, signal }: Drags): void {
  board.addEventListener(
    'pointerdown',
    (event) => {
      const card = cardAt(event.target);
      const isTouch = event.pointerType !== 'mouse';
      if (!card || event.button !== 0 || at(event.target, 'button')) return;
      if (isTouch && !at(event.target, '.handle')) return;
      drag(board, card, event, { onStart, onEnd, signal });
    },
    { signal },
  );
  // A click on the link of the card would open it after the drag.
  board.addEventListener('dragstart', (event) => event.preventDefault(), { signal });
  board.addEventListener(
    'keydown',
    (event) => {
      const card = event.altKey && event.key.startsWith('Arrow') ? cardAt(event.target) : null;
      if (!card) return;
      // Alt and the left arrow would leave the page.
      event.preventDefault();
      const move = moveByKey(event.key, card);
      if (move) onEnd(move);
    },
    { signal },
  );
}

function drag(
  board: HTMLElement,
  card: HTMLElement,
  start: PointerEvent,
  { onStart, onEnd, signal: left }: Drags,
): void {
  const before = { list: card.parentElement, next: card.nextSibling };
  const ended = new AbortController();
  const signal = AbortSignal.any([ended.signal, left]);
  let pointer = start;

  const place = () => {
    const list = listAt(board, pointer.clientX);
    if (!list) return;
    const next = cardsOf(list).find((other) => other !== card && pointer.clientY < middleOf(other));
    if (card.parentElement !== list || (card.nextElementSibling ?? undefined) !== next)
      list.insertBefore(card, next ?? null);
  };
  const scroll = () => {
    if (signal.aborted) return;
    if (scrollAtEdge(board, start, pointer)) place();
    requestAnimationFrame(scroll);
  };

  const follow = (event: PointerEvent) => {
    if (event.pointerId !== start.pointerId) return;
    const isDragged = card.classList.contains('dragged');
    const pixels = Math.hypot(event.clientX - start.clientX, event.clientY - start.clientY);
    if (!isDragged && pixels < LEAST_PIXELS) return;
    event.preventDefault();
    pointer = event;
    if (!isDragged) {
      onStart();
      card.classList.add('dragged');
      // A touch belongs to the element that it began on, which moves.
      board.setPointerCapture(event.pointerId);
      requestAnimationFrame(scroll);
    }
    place();
  };

  const end = (isDropped: boolean) => {
    ended.abort();
    if (!card.classList.contains('dragged')) return;
    card.classList.remove('dragged');
    const isMoved = card.parentElement !== before.list || card.nextSibling !== before.next;
    const move = isDropped && isMoved ? moveOf(card) : undefined;
    before.list?.insertBefore(card, before.next);
    // The pointer is released on the card: that is no click.
    if (isDropped) board.addEventListener('click', stopClick, { capture: true, once: true });
    setTimeout(() => board.removeEventListener('click', stopClick, { capture: true }));
    onEnd(move);
  };

  left.addEventListener('abort', () => end(false), { signal: ended.signal });
  document.addEventListener('pointermove', follow, { signal });
  document.addEventListener('pointerup', ({ pointerId }) => pointerId === start.pointerId && end(true), { signal });
  document.addEventListener('pointercancel', ({ pointerId }) => pointerId === start.pointerId && end(false), {
    signal,
  });
  document.addEventListener('keydown', ({ key }) => key === 'Escape' && end(false), { signal });
}

function stopClick(event: Event): void {
  event.preventDefault();
  event.stopPropagation();
}

function moveByKey(key: string, card: HTMLElement): Move | undefined {
  const { previousElementSibling: above, nextElementSibling: below } = card;
  const list = card.parentElement as HTMLElement;
  if (key === 'ArrowUp') return above ? moveTo(card, list, above) : undefined;
  if (key === 'ArrowDown') return below ? moveTo(card, list, below.nextElementSibling) : undefined;
  const side = key === 'ArrowLeft' ? 'previousElementSibling' : 'nextElementSibling';
  const other = card.closest('.group')?.[side]?.querySelector<HTMLElement>('.cards');
  return other ? moveTo(card, other, null) : undefined;
}

const moveOf = (card: HTMLElement) => moveTo(card, card.parentElement as HTMLElement, card.nextElementSibling);

const moveTo = (card: HTMLElement, list: HTMLElement, next: Element | null): Move => ({
  id: idOf(card),
  group_id: Number(list.dataset.group),
  title: card.querySelector('.title')?.textContent ?? '',
  ...(next && { before: idOf(next as HTMLElement) }),
});

const idOf = ({ dataset }: HTMLElement) => Number(dataset.card);

const at = (target: EventTarget | null, selector: string) =>
  target instanceof Element ? target.closest<HTMLElement>(selector) : null;

const cardAt = (target: EventTarget | null) => at(target, '.card');

/** The list of the column at this place; lists are as high as the board for this purpose. */
const listAt = (board: HTMLElement, x: number) =>
  [...board.querySelectorAll<HTMLElement>('.cards')].find((list) => {
    const { left, right } = list.getBoundingClientRect();
    return x >= left && x <= right;
  });

const cardsOf = (list: HTMLElement) => [...list.children] as HTMLElement[];

function middleOf(card: HTMLElement): number {
  const { top, height } = card.getBoundingClientRect();
  return top + height / 2;
}
