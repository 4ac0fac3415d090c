const MOST_REMEMBERED = 1000;

export type KeyHolder = { keyHash: string; userId: number };

/** The users of keys that were valid lately, by their secrets: these need not be hashed again. */
export type KeyHolders = {
  find: (secret: string) => KeyHolder | undefined;
  remember: (secret: string, keyHash: string, userId: number | undefined) => void;
};

export function makeKeyHolders(): KeyHolders {
  const holders = new Map<string, KeyHolder>();
  return {
    find: (secret) => holders.get(secret),
    remember: (secret, keyHash, userId) => {
      if (holders.get(secret)?.userId === userId) return;
      holders.delete(secret);
      if (userId === undefined) return;
      holders.set(secret, { keyHash, userId });
      if (holders.size > MOST_REMEMBERED) holders.delete(holders.keys().next().value!);
    },
  };
}
