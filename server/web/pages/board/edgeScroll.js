/** @typedef {{ clientX: number, clientY: number }} Point */

/** How near to an edge a drag begins to scroll, and how far it scrolls with each frame at the most. */
const EDGE_PIXELS = 56;
const STEP_PIXELS = 8;

/**
 * Scrolls the columns sideways and the page up or down while a drag is near their edge. Returns whether something moved.
 * @param {HTMLElement} board
 * @param {Point} start where the drag began: it may begin near an edge, and only scrolls on the way there
 * @param {Point} pointer
 */
export function scrollAtEdge(board, start, pointer) {
  const { left, right } = board.getBoundingClientRect();
  const top = document.querySelector('.bar')?.getBoundingClientRect().bottom ?? 0;
  const before = [board.scrollLeft, scrollY];

  board.scrollLeft += step(start.clientX, pointer.clientX, Math.max(left, 0), Math.min(right, innerWidth));
  scrollBy(0, step(start.clientY, pointer.clientY, top, innerHeight));
  return board.scrollLeft !== before[0] || scrollY !== before[1];
}

/**
 * @param {number} from
 * @param {number} to
 * @param {number} low
 * @param {number} high
 */
function step(from, to, low, high) {
  const beyond = to < from ? Math.min(0, to - low - EDGE_PIXELS) : Math.max(0, to - high + EDGE_PIXELS);
  const share = Math.max(-1, Math.min(1, beyond / EDGE_PIXELS));
  return Math.round(share * STEP_PIXELS);
}
