import type { Log } from '../runtime/log.ts';

/** Notes that keys were used, without delaying a request. */
export type KeyUse = { note: (keyId: number) => void };

/** Writes used keys one statement at a time: whatever is noted meanwhile is in the next one. */
export function makeKeyUse(write: (keyIds: number[]) => Promise<void>, log: Log): KeyUse {
  const noted = new Set<number>();
  let isWriting = false;

  async function writeNoted() {
    isWriting = true;
    while (noted.size > 0) {
      const ids = [...noted];
      noted.clear();
      await write(ids).catch((error) => log.warn(error, 'The last use of API keys was not stored.'));
    }
    isWriting = false;
  }

  return {
    note: (keyId) => {
      noted.add(keyId);
      if (!isWriting) void writeNoted();
    },
  };
}
