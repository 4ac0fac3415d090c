import { type ChangeEvent, type EventStore, type HandlerOptions, rowOf } from './event.ts';
import { memoryStore } from './memoryStore.ts';
import { makeTurns } from './turns.ts';

/** Calls the handler of an event once. Events of the same row wait for each other; `cursor` is stored with the event. */
export type Handle = (event: ChangeEvent, cursor?: string) => Promise<void>;

export function makeHandle<Transaction>(options: HandlerOptions<Transaction>): Handle {
  // Without a store, handlers have no transaction.
  const { store = memoryStore() as unknown as EventStore<Transaction> } = options;
  const inTurn = makeTurns();

  return async (event, cursor) => {
    const handler = handlerOf(options, event);
    if (!handler) {
      if (cursor !== undefined) await store.writeCursor(cursor);
      return;
    }
    const mark = { id: idOf(event), row: rowOf(event), version: event.data.version, cursor };
    const work = () => store.handleOnce(mark, async (context) => void (await handler(event, context)));
    try {
      await inTurn(mark.row ?? `event ${event.id}`, work);
    } catch (error) {
      (options.onError ?? printError)(error, event);
      throw error;
    }
  };
}

/** A database that is made anew begins with the same ids, at another time. */
const idOf = ({ id, created_at }: ChangeEvent) => `${id} ${created_at.toISOString()}`;

type AnyHandler<Transaction> = NonNullable<HandlerOptions<Transaction>['otherwise']>;

function handlerOf<Transaction>({ on, otherwise }: HandlerOptions<Transaction>, { type }: ChangeEvent) {
  const handler = Object.hasOwn(on, type)
    ? (on as Record<string, AnyHandler<Transaction> | undefined>)[type]
    : undefined;
  return handler ?? otherwise;
}

const printError = (error: unknown, { id, type }: ChangeEvent) =>
  console.error(`The handler of ${type}, event ${id}, failed:`, error);
