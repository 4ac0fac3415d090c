/** Calls to another process: names with functions of one value. Values cross as JSON. */
// biome-ignore lint/suspicious/noExplicitAny: each call has its own types
export type Calls = Record<string, (value: any) => unknown>;

export type Channel<Theirs extends Calls> = {
  /** Calls a function of the other process; rejects if it throws there. */
  ask: <Name extends keyof Theirs & string>(
    name: Name,
    ...value: Parameters<Theirs[Name]>
  ) => Promise<Awaited<ReturnType<Theirs[Name]>>>;
  /** The same without an answer. */
  tell: <Name extends keyof Theirs & string>(name: Name, ...value: Parameters<Theirs[Name]>) => void;
  /** Takes what the other process sent. */
  receive: (messages: Message[]) => void;
};

type Message = { id?: number; name?: string; value?: unknown; error?: string };
type Waiter = { resolve: (value: never) => void; reject: (error: Error) => void };

/** Asks and answers over a pipe. All messages of one turn of the event loop are sent together, which is far cheaper. */
export function openChannel<Theirs extends Calls>(send: (messages: Message[]) => void, ours: Calls): Channel<Theirs> {
  const waiting = new Map<number, Waiter>();
  let lastId = 0;
  let outgoing: Message[] = [];

  return {
    ask: (name, value) =>
      new Promise((resolve, reject) => {
        waiting.set(++lastId, { resolve, reject });
        post({ id: lastId, name, value });
      }),
    tell: (name, value) => post({ name, value }),
    receive: (messages) => {
      for (const message of messages) {
        if (message.name === undefined) settle(message);
        else void answer(message.name, message);
      }
    },
  };

  function post(message: Message) {
    if (outgoing.push(message) > 1) return;
    setImmediate(() => {
      send(outgoing);
      outgoing = [];
    });
  }

  async function answer(name: string, { id, value }: Message) {
    try {
      const result = await ours[name]?.(value);
      if (id !== undefined) post({ id, value: result });
    } catch (error) {
      if (id !== undefined) post({ id, error: (error as Error).message });
    }
  }

  function settle({ id = 0, value, error }: Message) {
    const waiter = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) waiter?.resolve(value as never);
    else waiter?.reject(new Error(error));
  }
}
