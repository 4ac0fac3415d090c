import type { Client } from '../client.ts';
import { DeckhandError } from '../errors.ts';
import { pause } from '../timeOut.ts';
import { blockOf } from './event.ts';
import { readFeed } from './feed.ts';
import { RowTooOld } from './fetchRow.ts';
import { fromCursor } from './followEvents.ts';
import { insist, untilSignal } from './insist.ts';
import { type MirrorRows, NO_ROWS, type Outdated, outdatedBy, readBoard, readChanged } from './mirrorRows.ts';

/** What is mirrored, and where to. */
export type MirrorOptions = {
  /** The board. */
  boardId: number;
  /** Its project. Default: that of the client. */
  projectId?: number | undefined;
  /** Where the rows are kept: `fileStorage('board.jsonl')`, or your own. */
  storage: MirrorStorage;
  /** How long after an event its rows are read; 12,000 if the service reads from replicas. Default: 0. */
  readDelayMilliseconds?: number | undefined;
};

/** What a storage has. */
export type MirrorState = {
  /** The board: also while it is deleted, and so without rows. */
  board: {
    /** Its id. */
    id: number;
    /** Its project. */
    project_id: number;
  };
  /** The rows. */
  rows: MirrorRows;
  /** The cursor in the feed after them. */
  cursor: string;
  /** The id of the last event before the cursor; undefined as long as there was none. */
  lastEvent: string | undefined;
};

/** Keeps the rows of a mirror. Write your own for a database. */
export type MirrorStorage = {
  /** What was saved; undefined before the first save. */
  load: () => Promise<MirrorState | undefined>;
  /** Saves all of a change, or nothing. */
  save: (change: MirrorChange) => Promise<void>;
};

/** Rows that came, changed or went. */
export type MirrorChange = {
  /** The board and its project. */
  board: MirrorState['board'];
  /** The cursor in the feed after the change. */
  cursor: string;
  /** The id of the last event before the cursor. */
  lastEvent: string | undefined;
  /** Rows that came or changed. */
  put: { [Kind in keyof MirrorRows]: NonNullable<ReturnType<MirrorRows[Kind]['get']>>[] };
  /** The ids of rows that are no longer on the board. */
  removed: Record<keyof MirrorRows, number[]>;
};

/** A copy of a board that follows its changes. One call at a time: another one is refused. */
export type Mirror = {
  /** The rows as of the last change: read this property each time. */
  readonly rows: MirrorRows;
  /** Brings the rows up to date, and ends. */
  refresh: () => Promise<void>;
  /** Keeps the rows up to date until the signal. Throws what a retry can't help, such as a 401. */
  follow: (signal?: AbortSignal) => Promise<void>;
};

/** If more cards than this plus 1 % changed, all are read as pages. */
const FEW_CARDS = 20;

/**
 * Mirrors a board with its groups and cards: reads all rows once, then those that events name. Goes on after a kill. If the stored
 * place in the feed is refused, all rows are read again. Only one process may write to a storage.
 */
export async function openMirror(client: Client, options: MirrorOptions): Promise<Mirror> {
  const { boardId, storage, readDelayMilliseconds = 0 } = options;
  const stored = await storage.load();
  let { rows, cursor, lastEvent }: Pick<MirrorState, 'rows'> & Partial<MirrorState> = stored ?? { rows: NO_ROWS };
  // Once it is known, since the user's default project may change.
  let projectId = stored?.board.project_id ?? options.projectId;
  let isWorking = false;

  if (stored && stored.board.id !== boardId)
    throw new DeckhandError(
      `The storage has board ${stored.board.id}, not ${boardId}. Give each board a storage of its own.`,
    );

  async function save(next: MirrorRows, nextCursor: string, nextEvent?: string): Promise<void> {
    projectId = next.boards.get(boardId)?.project_id ?? projectId;
    const board = { id: boardId, project_id: projectId as number };
    await storage.save({ board, cursor: nextCursor, lastEvent: nextEvent, ...changesBetween(rows, next) });
    [rows, cursor, lastEvent] = [next, nextCursor, nextEvent];
  }

  /** Without `outdated`: all rows. */
  async function read(signal: AbortSignal, outdated?: Outdated): Promise<MirrorRows> {
    await pause(readDelayMilliseconds, signal);
    const caller = client.as({ projectId });
    if (outdated) return insist(() => readChanged(caller, boardId, rows, outdated), signal);
    const next = await insist(() => readBoard(caller, boardId), signal);
    // A wrong id would be mirrored as an empty board.
    if (next.boards.size > 0 || cursor !== undefined) return next;
    throw new DeckhandError(`There is no board ${boardId} in this project. Set projectId to that of the board.`);
  }

  function readAgain(outdated: Outdated, signal: AbortSignal): MirrorRows | Promise<MirrorRows> {
    const { isAll, hasBoard, hasGroups, cards } = outdated;
    if (isAll || cards.size > FEW_CARDS + rows.cards.size / 100) return read(signal);
    return hasBoard || hasGroups || cards.size > 0 ? read(signal, outdated) : rows;
  }

  async function work(signal: AbortSignal, isOnce: boolean): Promise<void> {
    const caller = client.as({ projectId });
    let first = rows;
    const store = { readCursor: async () => cursor, writeCursor: (latest: string) => save(first, latest) };
    const begin = async () => {
      first = await read(signal);
    };
    const follow = async (after: string, succeeded: () => void) => {
      // Events of other projects may name cards that the caller has no access to.
      for await (const { events, cursor } of readFeed(caller, { after, projectId, isOnce, signal })) {
        const outdated = outdatedBy(events, boardId);
        outdated.isAll ||= hasLeap([...(lastEvent === undefined ? [] : [lastEvent]), ...events.map(({ id }) => id)]);
        await save(await readAgain(outdated, signal), cursor, events.at(-1)?.id ?? lastEvent);
        succeeded();
      }
    };
    // Too old: reads the feed again. After a restore, the row never gets newer, but the feed refuses the cursor.
    await fromCursor(caller, store, { begin, signal }, (after) =>
      insist(
        (succeeded) => follow(cursor ?? after, succeeded),
        signal,
        (error) => error instanceof RowTooOld,
      ),
    );
  }

  /** Two calls at once would each save what the other one has not read yet. */
  async function alone(work: () => Promise<void>): Promise<void> {
    if (isWorking)
      throw new DeckhandError('The mirror is being read already. Await that call, or end it by its signal, first.');
    isWorking = true;
    try {
      await work();
    } finally {
      isWorking = false;
    }
  }

  return {
    get rows() {
      return rows;
    },
    refresh: () => alone(() => work(new AbortController().signal, true)),
    follow: (signal = new AbortController().signal) => alone(() => untilSignal(signal, () => work(signal, false))),
  };
}

/**
 * Whether the service was failed over between these events. Rows may have been read with a later change, which the fail-over has
 * lost, and which no event will name.
 */
const hasLeap = (ids: string[]) => new Set(ids.map(blockOf)).size > 1;

function changesBetween(before: MirrorRows, after: MirrorRows): Pick<MirrorChange, 'put' | 'removed'> {
  const put = <Row extends { id: number }>(old: ReadonlyMap<number, Row>, rows: ReadonlyMap<number, Row>) =>
    [...rows.values()].filter((row) => !isSame(old.get(row.id), row));
  const removed = (kind: keyof MirrorRows) => [...before[kind].keys()].filter((id) => !after[kind].has(id));
  return {
    put: {
      boards: put(before.boards, after.boards),
      groups: put(before.groups, after.groups),
      cards: put(before.cards, after.cards),
    },
    removed: { boards: removed('boards'), groups: removed('groups'), cards: removed('cards') },
  };
}

const isSame = (one: object | undefined, other: object) =>
  one === other || JSON.stringify(one) === JSON.stringify(other);
