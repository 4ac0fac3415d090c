import type { EventStore } from './event.ts';
import { makeTurns } from './turns.ts';

/** How many events and rows are remembered: far more than arrive again. */
const MOST_REMEMBERED = 20_000;

/** The place in the feed, if it is to outlive the process: `{ readCursor, writeCursor }`. */
export type CursorStore = Pick<EventStore, 'readCursor' | 'writeCursor'>;

/**
 * Remembers handled events while the process runs. Events are handled at least once: again after a restart, and by each process.
 * With a place for the cursor, such as a file, the feed goes on after the last page of events that was handled.
 */
export function memoryStore(cursors: CursorStore = cursorInMemory()): EventStore {
  const handled = new Map<string, true>();
  const versions = new Map<string, number>();
  // Several receivers may share a store.
  const inTurn = makeTurns();

  return {
    ...cursors,
    handleOnce: ({ id, row = '', version = 0, cursor }, work) =>
      inTurn(row || `event ${id}`, async () => {
        const isNew = !handled.has(id);
        const known = versions.get(row) ?? 0;
        if (isNew) await work({ transaction: undefined, isOutdated: version > 0 && version < known });
        remember(handled, id, true);
        if (row && version >= known) remember(versions, row, version);
        if (cursor !== undefined) await cursors.writeCursor(cursor);
        return isNew;
      }),
  };
}

function cursorInMemory(): CursorStore {
  let stored: string | undefined;
  return {
    readCursor: async () => stored,
    writeCursor: async (cursor) => {
      stored = cursor;
    },
  };
}

/** A map keeps the order of insertion: the oldest key goes first. */
function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > MOST_REMEMBERED) map.delete(map.keys().next().value as string);
}
