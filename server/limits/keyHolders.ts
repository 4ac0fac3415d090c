const MOST_REMEMBERED = 1000;

/** The users of keys that were valid lately, by the hash of the key. */
export type KeyHolders = {
  find: (keyHash: string) => number | undefined;
  remember: (keyHash: string, userId: number | undefined) => void;
};

export function makeKeyHolders(): KeyHolders {
  const holders = new Map<string, number>();
  return {
    find: (keyHash) => holders.get(keyHash),
    remember: (keyHash, userId) => {
      holders.delete(keyHash);
      if (userId === undefined) return;
      holders.set(keyHash, userId);
      if (holders.size > MOST_REMEMBERED) holders.delete(holders.keys().next().value!);
    },
  };
}
