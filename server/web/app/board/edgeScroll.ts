type Point = { clientX: number; clientY: number };

/** How near to an edge a drag begins to scroll, and how far it scrolls with each frame at the most. */
const EDGE_PIXELS = 56;
const STEP_PIXELS = 8;

/**
 * Scrolls the board, and the page up or down, while a drag is near their edge. Returns whether something moved. A drag
 * may begin near an edge (`start`), and only scrolls on the way there.
 */
export function scrollAtEdge(board: HTMLElement, start: Point, pointer: Point): boolean {
  const { left, right, top, bottom } = board.getBoundingClientRect();
  const bar = document.querySelector('.bar')?.getBoundingClientRect().bottom ?? 0;
  const before = [board.scrollLeft, board.scrollTop, scrollY];

  board.scrollLeft += step(start.clientX, pointer.clientX, Math.max(left, 0), Math.min(right, innerWidth));
  board.scrollTop += step(start.clientY, pointer.clientY, Math.max(top, bar), Math.min(bottom, innerHeight));
  scrollBy(0, step(start.clientY, pointer.clientY, bar, innerHeight));
  return [board.scrollLeft, board.scrollTop, scrollY].some((place, index) => place !== before[index]);
}

function step(from: number, to: number, low: number, high: number): number {
  const beyond = to < from ? Math.min(0, to - low - EDGE_PIXELS) : Math.max(0, to - high + EDGE_PIXELS);
  const share = Math.max(-1, Math.min(1, beyond / EDGE_PIXELS));
  return Math.round(share * STEP_PIXELS);
}
