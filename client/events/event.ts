import type { Procedures } from '../procedures.ts';
import type { CertainField, PossibleField, SubjectOf } from './eventData.ts';
import type { EventType } from './eventType.ts';

/** Something that happened, as the feed, the stream and webhooks tell of it. */
export type ChangeEvent = Awaited<ReturnType<Procedures['events']['list']['query']>>['events'][number];

/** An event of this type, with the fields that this type has: `EventOf<'card.moved'>`. */
export type EventOf<Type extends EventType> = Omit<ChangeEvent, 'type' | 'subject_id' | 'data'> & {
  /** What happened. */
  type: Type;
  /** The row that it happened to; its type says which table. */
  subject_id: SubjectOf<Type>;
  /** Ids and names of changed fields, no contents. */
  data: Certain<Pick<Data, CertainField<Type> & keyof Data>> & Pick<Data, PossibleField<Type> & keyof Data>;
};
type Data = ChangeEvent['data'];
type Certain<Fields> = { [Name in keyof Fields]-?: Exclude<Fields[Name], undefined> };

/** A function for each type of event that you want. Other events are acknowledged, and forgotten. */
export type Handlers<Transaction> = {
  [Type in EventType]?: (event: EventOf<Type>, context: HandlerContext<Transaction>) => unknown;
};

/** The second argument of a handler. */
export type HandlerContext<Transaction> = {
  /** With `postgresStore`: what you write with it is saved together with the mark that the event was handled, or not at all. */
  transaction: Transaction;
  /**
   * Whether a later version of the same row was handled already: transactions that overlap can tell of their changes in another
   * order. Rows that you fetch are newer than this event then.
   */
  isOutdated: boolean;
};

/** What to do with events, the same for webhooks and the feed. */
export type HandlerOptions<Transaction> = {
  /** A handler by type: `{ 'card.moved': async (event) => … }`. */
  on: Handlers<Transaction>;
  /** Handles the types that `on` does not name, also those of later versions of Deckhand. */
  otherwise?: ((event: ChangeEvent, context: HandlerContext<Transaction>) => unknown) | undefined;
  /**
   * Where handled events are marked. Default: in memory, so that each event is handled at least once, and again after a restart or
   * by another process. With `postgresStore`, exactly once, as far as handlers write with their `transaction`.
   */
  store?: EventStore<Transaction> | undefined;
  /** Called with each error of a handler. The event comes again. Default: `console.error`. */
  onError?: ((error: unknown, event: ChangeEvent) => void) | undefined;
};

/** Remembers which events were handled. Write your own for another database. */
export type EventStore<Transaction = undefined> = {
  /**
   * Calls `work` unless the event was handled before, and marks the event afterwards. If `work` throws, nothing is marked. Two calls for
   * the same event or row must not work at the same time. Returns whether `work` was called.
   */
  handleOnce: (mark: EventMark, work: (context: HandlerContext<Transaction>) => Promise<void>) => Promise<boolean>;
  /** The place in the feed that was stored last. */
  readCursor: () => Promise<string | undefined>;
  /** Stores the place in the feed, without an event. */
  writeCursor: (cursor: string) => Promise<void>;
};

/** What is stored with a handled event. */
export type EventMark = {
  /** The id of the event and its time, as in `1042 2026-01-31T09:30:00.000Z`. */
  id: string;
  /** The row that it happened to, such as `card 7`; another text after a restore of the service, when versions begin anew. */
  row?: string | undefined;
  /** The version of that row after the change; events of earlier releases have none. */
  version?: number | undefined;
  /** The cursor after the event, to be stored with it. Webhooks have none. */
  cursor?: string | undefined;
};

/**
 * Versions are compared within blocks of this many event ids. After a restore, ids begin at its time in microseconds, and after a
 * fail-over they jump by a billion, so each has new blocks. A new block knows no versions at first.
 */
const IDS_PER_BLOCK = 10_000_000;

export const blockOf = (id: string): number => Math.floor(Number(id) / IDS_PER_BLOCK);

/** The row that an event happened to: `card 7`, or `card 7 @176985180` after a restore, since rows have earlier versions again. */
export function rowOf({ id, type, subject_id }: ChangeEvent): string | undefined {
  if (subject_id === null) return undefined;
  const row = `${type.split('.', 1)[0]} ${subject_id}`;
  const block = blockOf(id);
  return block > 0 ? `${row} @${block}` : row;
}
