import { Worker } from 'node:worker_threads';

/** PGlite, in this thread or in one of its own, where a long statement does not stop the event loop. */
export type Engine = {
  exchange: (messages: Uint8Array) => Promise<Responses>;
  close: () => Promise<unknown>;
};

/** The responses to messages of PostgreSQL's protocol, and to the Sync behind them. */
export type Responses = { sent: Uint8Array; synced: Uint8Array };

/** What the thread gets: the directory to open, messages for the database or, with neither, the order to close it. */
export type Request = { dataDir?: string; messages?: Uint8Array };
type Reply = { responses?: Responses; failure?: { message: string; isCrash: boolean } };
type Pending = { resolve: (responses: Responses | undefined) => void; reject: (error: Error) => void };

/** `terminate` ends it as a crash would. */
type ThreadEngine = Engine & { terminate: () => Promise<unknown> };

/** After this, no further call returns. */
export class EngineCrash extends Error {}

/** Opens the database of a directory in a new thread, which must not keep the process alive. */
export async function openInThread(dataDir: string): Promise<ThreadEngine> {
  const thread = new Worker(new URL('./engineThread.js', import.meta.url), {
    // Most of what it allocates are short messages: a larger part of its heap would only take memory.
    resourceLimits: { maxYoungGenerationSizeMb: 6 },
  });
  const pending: Pending[] = [];
  thread.on('message', ({ responses, failure }: Reply) => {
    const { resolve, reject } = pending.shift() as Pending;
    if (pending.length === 0) thread.unref();
    if (failure) reject(failure.isCrash ? new EngineCrash(failure.message) : new Error(failure.message));
    else resolve(responses);
  });
  let ended: EngineCrash | undefined;
  const end = (message: string) => {
    ended ??= new EngineCrash(message);
    for (const { reject } of pending.splice(0)) reject(ended);
  };
  thread.on('error', ({ message }: Error) => end(message));
  thread.on('exit', () => end('its thread has ended'));

  const ask = (request: Request) =>
    new Promise<Responses | undefined>((resolve, reject) => {
      if (ended) return reject(ended);
      pending.push({ resolve, reject });
      thread.ref();
      thread.postMessage(request);
    });
  await ask({ dataDir }).catch(async (error) => {
    await thread.terminate();
    throw error;
  });
  return {
    exchange: async (messages) => (await ask({ messages })) as Responses,
    close: async () => {
      await ask({}).finally(() => thread.terminate());
    },
    terminate: () => thread.terminate(),
  };
}
