/** What waits in memory to be read by one user, or by one address without a token, may not grow beyond this. */
const MOST_UNSENT_BYTES = 64 * 1024 * 1024;

const SMALLEST_COUNTED_BYTES = 64 * 1024;

export type UnsentAnswers = {
  /** Smaller answers are not worth counting: the rate limit bounds them. */
  isCounted: (bytes: number) => boolean;
  /** Counts an answer until `release` is called, which is when it was read or its connection is gone. */
  add: (key: string, bytes: number) => { release: () => void };
  isTooMuch: (key: string) => boolean;
};

/** Bounds the memory of answers that callers do not read. */
export function makeUnsentAnswers(): UnsentAnswers {
  const unsent = new Map<string, number>();
  const change = (key: string, bytes: number) => {
    const sum = (unsent.get(key) ?? 0) + bytes;
    if (sum > 0) unsent.set(key, sum);
    else unsent.delete(key);
  };
  return {
    isCounted: (bytes) => bytes >= SMALLEST_COUNTED_BYTES,
    add: (key, bytes) => {
      change(key, bytes);
      return { release: () => change(key, -bytes) };
    },
    isTooMuch: (key) => (unsent.get(key) ?? 0) > MOST_UNSENT_BYTES,
  };
}
