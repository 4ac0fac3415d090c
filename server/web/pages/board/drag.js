import { scrollAtEdge } from './edgeScroll.js';

/**
 * A card at a new place; the first position is 1.
 * @typedef {{ id: number, group_id: number, position: number, title: string }} Move
 */

const LEAST_PIXELS = 5;

/**
 * Lets people move the cards of a board: with the mouse, with a finger on the handle of a card, or with Alt and the arrow keys.
 * @param {HTMLElement} board
 * @param {(move?: Move) => void} onEnd called without a move if the drag was cancelled: the board must be drawn again
 */
export function followDrags(board, onEnd) {
  board.addEventListener('pointerdown', (event) => {
    const card = cardAt(event.target);
    const isTouch = event.pointerType !== 'mouse';
    if (!card || event.button !== 0 || at(event.target, 'button')) return;
    if (isTouch && !at(event.target, '.handle')) return;
    drag(board, card, event, onEnd);
  });
  board.addEventListener('keydown', (event) => {
    const card = event.altKey && event.key.startsWith('Arrow') ? cardAt(event.target) : null;
    if (!card) return;
    // Alt and the left arrow would leave the page.
    event.preventDefault();
    const place = placeBy(event.key, card);
    if (!place) return;
    place(card);
    card.focus();
    onEnd(moveOf(card));
  });
}

/**
 * @param {HTMLElement} board
 * @param {HTMLElement} card
 * @param {PointerEvent} start
 * @param {(move?: Move) => void} onEnd
 */
function drag(board, card, start, onEnd) {
  const before = { list: card.parentElement, next: card.nextElementSibling };
  const ended = new AbortController();
  const { signal } = ended;
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

  /** @param {PointerEvent} event */
  const follow = (event) => {
    if (event.pointerId !== start.pointerId) return;
    const isDragged = card.classList.contains('dragged');
    const pixels = Math.hypot(event.clientX - start.clientX, event.clientY - start.clientY);
    if (!isDragged && pixels < LEAST_PIXELS) return;
    event.preventDefault();
    pointer = event;
    if (!isDragged) {
      card.classList.add('dragged');
      // A touch belongs to the element that it began on, which moves.
      board.setPointerCapture(event.pointerId);
      requestAnimationFrame(scroll);
    }
    place();
  };

  /** @param {boolean} isDropped */
  const end = (isDropped) => {
    ended.abort();
    if (!card.classList.contains('dragged')) return;
    card.classList.remove('dragged');
    const isMoved = card.parentElement !== before.list || card.nextElementSibling !== before.next;
    onEnd(isDropped && isMoved ? moveOf(card) : undefined);
  };

  document.addEventListener('pointermove', follow, { signal });
  document.addEventListener('pointerup', ({ pointerId }) => pointerId === start.pointerId && end(true), { signal });
  document.addEventListener('pointercancel', ({ pointerId }) => pointerId === start.pointerId && end(false), {
    signal,
  });
  document.addEventListener('keydown', ({ key }) => key === 'Escape' && end(false), { signal });
}

/**
 * How a key moves a card; undefined if it does not.
 * @param {string} key
 * @param {HTMLElement} card
 * @returns {((card: HTMLElement) => void) | undefined}
 */
function placeBy(key, card) {
  const { previousElementSibling: above, nextElementSibling: below } = card;
  if (key === 'ArrowUp' && above) return () => above.before(card);
  if (key === 'ArrowDown' && below) return () => below.after(card);
  const side = key === 'ArrowLeft' ? 'previousElementSibling' : key === 'ArrowRight' ? 'nextElementSibling' : undefined;
  const list = side && card.closest('.group')?.[side]?.querySelector('.cards');
  return list ? () => list.append(card) : undefined;
}

/**
 * @param {HTMLElement} card
 * @returns {Move}
 */
function moveOf(card) {
  const list = /** @type {HTMLElement} */ (card.parentElement);
  return {
    id: Number(card.dataset.card),
    group_id: Number(list.dataset.group),
    position: cardsOf(list).indexOf(card) + 1,
    title: card.querySelector('.title')?.textContent ?? '',
  };
}

/**
 * @param {EventTarget | null} target
 * @param {string} selector
 */
const at = (target, selector) =>
  /** @type {HTMLElement | null} */ (target instanceof Element ? target.closest(selector) : null);

/** @param {EventTarget | null} target */
const cardAt = (target) => at(target, '.card');

/**
 * The list of the column at this place; lists are as high as the board for this purpose.
 * @param {HTMLElement} board
 * @param {number} x
 */
function listAt(board, x) {
  const lists = /** @type {HTMLElement[]} */ ([...board.querySelectorAll('.cards')]);
  return lists.find((list) => {
    const { left, right } = list.getBoundingClientRect();
    return x >= left && x <= right;
  });
}

/** @param {HTMLElement} list */
const cardsOf = (list) => /** @type {HTMLElement[]} */ ([...list.children]);

/** @param {HTMLElement} card */
function middleOf(card) {
  const { top, height } = card.getBoundingClientRect();
  return top + height / 2;
}
