/** Random numbers that a seed decides. */
export type Random = {
  /** From 0 to 1. */
  next: () => number;
  /** From 0 to below the end. */
  below: (end: number) => number;
  pick: <Item>(items: readonly Item[]) => Item;
  isTrue: (chance: number) => boolean;
};

export function makeRandom(seed: number): Random {
  let state = Math.imul(seed, 0x9e3779b1) >>> 0;
  // Mulberry32.
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (end: number) => Math.floor(next() * end);
  return { next, below, pick: (items) => items[below(items.length)]!, isTrue: (chance) => next() < chance };
}
