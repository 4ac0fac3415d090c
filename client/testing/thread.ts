import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { MessageChannel, Worker } from 'node:worker_threads';
import type { Asked, Reply, Request, Start, Started } from './messages.ts';

/** A Deckhand in its own thread, so that this one keeps its clock, its globals and its event loop. */
export type Thread = {
  started: Started;
  /** Returns the new address after a reset. */
  ask: (asked: Asked) => Promise<string | undefined>;
  stop: () => Promise<void>;
};

export async function startThread(start: Start): Promise<Thread> {
  mustBeRecentNode();
  // Without the options of this process, such as loaders, and without its environment.
  const worker = new Worker(findService(), { workerData: start, env: cacheSettings(), execArgv: [] });
  let isRunning = true;
  worker.once('exit', () => {
    isRunning = false;
  });
  const started = await untilListening(worker);
  // Don't keep the test process alive.
  worker.unref();

  return {
    started,
    ask: async (asked) => {
      if (!isRunning) throw new Error(STOPPED);
      return askThread(worker, asked);
    },
    stop: async () => {
      await worker.terminate();
    },
  };
}

/** Where Node keeps compiled code. */
function cacheSettings(): Record<string, string> {
  const names = ['NODE_COMPILE_CACHE', 'XDG_CACHE_HOME'];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}

const STOPPED = 'This Deckhand was stopped.';

function mustBeRecentNode(): void {
  const { node } = process.versions;
  if (Number.parseInt(node, 10) < 22) throw new Error(`startDeckhand needs Node 22.18 or later; this is ${node}.`);
}

function findService(): URL {
  try {
    return pathToFileURL(createRequire(import.meta.url).resolve('deckhand/testing'));
  } catch (cause) {
    throw new Error(
      'startDeckhand needs the package deckhand, in the version of deckhand-client. Build it with `npm run pack:server` in the repository of Deckhand, and install it with `npm install --save-dev ./deckhand-<version>.tgz`.',
      { cause },
    );
  }
}

function untilListening(worker: Worker): Promise<Started> {
  return new Promise((resolve, reject) => {
    worker.once('error', reject);
    worker.once('exit', () => reject(new Error('Deckhand ended before it listened.')));
    worker.once('message', (started: Started) => {
      // A later error has no listener, so that it fails the test run.
      worker.off('error', reject);
      resolve(started);
    });
  });
}

function askThread(worker: Worker, asked: Asked): Promise<string | undefined> {
  const { port1: mine, port2: reply } = new MessageChannel();
  return new Promise((resolve, reject) => {
    mine.once('message', ({ failure, url }: Reply) => {
      if (failure === undefined) resolve(url);
      else reject(new Error(failure));
      mine.close();
    });
    mine.once('close', () => reject(new Error(STOPPED)));
    worker.postMessage({ ...asked, reply } satisfies Request, [reply]);
  });
}
