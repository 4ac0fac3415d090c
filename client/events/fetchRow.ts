import type { Client } from '../client.ts';
import { isRefusal } from '../errorChecks.ts';
import { DeckhandError } from '../errors.ts';
import { millisecondsBefore } from '../retry.ts';
import { pause } from '../timeOut.ts';
import type { ChangeEvent } from './event.ts';

type Got<Noun extends 'cards' | 'boards'> = Awaited<ReturnType<Client[Noun]['get']['query']>>;

/** What `fetchRow` returns for events of a card, such as `card.moved`, and of a board. */
export type FetchedRow<Type extends string> = Type extends `card.${string}` ? Got<'cards'> : Got<'boards'>;

/** No replica that serves reads is further behind, with a margin for clocks. */
const OLD_MILLISECONDS = 60_000;

/**
 * The card or the board of an event, as it is now: `const { card } = …`. Never older than the event: while a replica is behind, the
 * row is read again, for a few seconds; also one that is not found, if the event is new. Undefined if the row was deleted, or
 * if the event names none.
 */
export async function fetchRow<Type extends `card.${string}` | `board.${string}`>(
  client: Client,
  event: Pick<ChangeEvent, 'subject_id' | 'created_at'> &
    Record<'type', Type> &
    Record<'data', Pick<ChangeEvent['data'], 'version'>>,
): Promise<FetchedRow<Type> | undefined> {
  const { type, subject_id: id, created_at } = event;
  if (id === null) return undefined;
  const read = async (): Promise<Got<'cards'> | Got<'boards'>> =>
    type.startsWith('card.') ? client.cards.get.query({ id }) : client.boards.get.query({ id });
  const isGone = type.endsWith('.deleted') || Date.now() - created_at.getTime() > OLD_MILLISECONDS;
  return (await readSince(read, event.data.version, isGone)) as FetchedRow<Type> | undefined;
}

/** The pauses between them are below the 15 seconds that the answer to a webhook may take. */
const MOST_ATTEMPTS = 6;

/** Thrown while a replica is behind. */
export class RowTooOld extends DeckhandError {}

/** Reads a row until it has at least this version. Undefined if there is none: after a 404, at once or after several. */
export async function readSince<Row extends { version: string }>(
  read: () => Promise<Row>,
  least = 0,
  trusts404 = false,
): Promise<Row | undefined> {
  let found: Row | undefined;
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
    if (attempt > 0) await pause(millisecondsBefore(attempt - 1, []), new AbortController().signal);
    found = await unlessGone(read());
    // A replica that is behind does not find a new row.
    if (found ? numberIn(found.version) >= least : trusts404 || least === 0) return found;
  }
  if (!found) return undefined;
  throw new RowTooOld('The row is still older than its event. Try again.');
}

/** Undefined for a 404. */
export async function unlessGone<Result>(found: Promise<Result>): Promise<Result | undefined> {
  try {
    return await found;
  } catch (error) {
    if (isRefusal(error) && error.status === 404) return undefined;
    throw error;
  }
}

/** `7-1769851800000` is the 7th version of a row. */
const numberIn = (version: string): number => Number.parseInt(version, 10);
