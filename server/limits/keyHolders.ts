const MOST_REMEMBERED = 1000;

/** The users of keys that were valid lately, by the hashes of their secrets: their calls count for the user at once. */
export type KeyHolders = {
  find: (keyHash: string) => number | undefined;
  remember: (keyHash: string, userId: number | undefined) => void;
};

export function makeKeyHolders(): KeyHolders {
  const holders = new Map<string, number>();
  return {
    find: (keyHash) => holders.get(keyHash),
    remember: (keyHash, userId) => {
      if (holders.get(keyHash) === userId) return;
      holders.delete(keyHash);
      if (userId === undefined) return;
      holders.set(keyHash, userId);
      const [oldest] = holders.keys();
      if (holders.size > MOST_REMEMBERED && oldest !== undefined) holders.delete(oldest);
    },
  };
}
