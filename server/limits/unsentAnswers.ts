/** The limit of unsent answers in memory per user, or per address without a token. */
const MOST_UNSENT_BYTES = 64 * 1024 * 1024;

const SMALLEST_COUNTED_BYTES = 64 * 1024;

export type UnsentAnswers = {
  /** Smaller answers are not counted, since the rate limit bounds them. */
  isCounted: (bytes: number) => boolean;
  /** Counts an answer until `release` is called, when it was sent or its connection closed. */
  add: (key: string, bytes: number) => { release: () => void };
  isTooMuch: (key: string) => boolean;
};

/** Limits the memory of unsent answers. */
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
