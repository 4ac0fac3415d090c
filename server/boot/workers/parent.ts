import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { openChannel } from '../../runtime/channel.ts';
import type { Settings } from '../../runtime/env.ts';
import type { Log } from '../../runtime/log.ts';
import { startFailure } from '../../runtime/startFailure.ts';
import type { WorkerCalls } from './calls.ts';
import { LONGEST_START_SECONDS, type Pinged, pingAll } from './pings.ts';
import { makeReplacements } from './replacements.ts';
import { type Member, shareAmong } from './shared.ts';

type Process = Member & Pinged & { worker: Worker; bornAt: number; isHanging: boolean };

const PING_MILLISECONDS = 1000;
/** After the pause; a worker alone needs at most 16 seconds. */
const LONGEST_STOP_MILLISECONDS = 20_000;

/** Starts the workers and replaces those that end; `giveUp` is called when replacing them does not help. */
export async function startWorkers({ WORKERS, STOP_PAUSE_SECONDS }: Settings, log: Log, giveUp: () => void) {
  // With round robin, connections go through this process, and one that was just sent to a killed worker hangs.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  const processes = new Map<number, Process>();
  const shared = shareAmong(processes, WORKERS);
  const replacements = makeReplacements();
  let isStopping = false;
  // Node ends workers without a parent, except those that hang.
  process.once('exit', killAll);

  const pings = setInterval(killHanging, PING_MILLISECONDS);
  try {
    // The first one runs migrations before the others start.
    const url = await launch({ isFirst: true });
    await Promise.all(Array.from({ length: WORKERS - 1 }, () => launch()));
    return { url, stop };
  } catch (error) {
    clearInterval(pings);
    throw error;
  }

  /** Resolves with the address when the worker, or a replacement of one that hangs, accepts connections. */
  function launch({ isFirst = false, isReplacement = false } = {}): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const worker = cluster.fork();
    const { id } = worker;
    const ready = (url: string) => {
      launched.isReady = true;
      resolve(url);
    };
    const send = (messages: object[]) => worker.isConnected() && worker.send(messages, undefined, () => undefined);
    const channel = openChannel<WorkerCalls>(send, { ...shared.callsOf(id), ready });
    const bornAt = performance.now();
    const readyBy = isFirst ? Number.POSITIVE_INFINITY : bornAt + LONGEST_START_SECONDS * 1000;
    const launched: Process = {
      ...{ worker, channel, bornAt, readyBy, isReady: false, isHanging: false, missedPings: 0 },
      ...{ gone: Promise.withResolvers(), metrics: undefined, unsent: new Map(), tickets: new Map() },
    };
    processes.set(id, launched);
    worker.on('message', channel.receive);
    // Of the pipe to a worker that was just killed.
    worker.on('error', () => undefined);
    worker.on('exit', (code, signal) => {
      processes.delete(id);
      shared.release(launched);
      const endsStart = !launched.isReady && !isReplacement && (isFirst || !launched.isHanging);
      // A worker that ends with a code has said why.
      if (endsStart) return reject(startFailure(signal ? `Worker ${id} was ended by ${signal}.` : ''));
      // A start that failed counts as a short life, however long it took.
      const lived = launched.isReady ? performance.now() - bornAt : 0;
      if (!isStopping) void replace(id, endOf(code, signal), lived).then(resolve);
    });
    return promise;
  }

  /** Resolves when another one is ready, and never if none gets ready. */
  async function replace(id: number, end: string, livedMilliseconds: number): Promise<string> {
    const isAnotherReady = [...processes.values()].some(({ isReady }) => isReady);
    const delay = replacements.delayAfter(livedMilliseconds, isAnotherReady);
    if (delay === undefined) {
      log.error(`Worker ${id} ${end}, like those before it: the service stops.`);
      giveUp();
      return NEVER;
    }
    log.error(`Worker ${id} ${end}: another one starts${delay > 0 ? ` in ${delay / 1000} seconds` : ''}.`);
    await pause(delay);
    if (isStopping) return NEVER;
    shared.countReplacement();
    // If the replacement fails to start, its own exit handler replaces it.
    return launch({ isReplacement: true });
  }

  function killHanging() {
    for (const [id, reason] of pingAll(processes)) {
      log.error(`Worker ${id} ${reason}: it is killed.`);
      const hanging = processes.get(id);
      if (!hanging) continue;
      hanging.isHanging = true;
      hanging.worker.process.kill('SIGKILL');
    }
  }

  async function stop() {
    isStopping = true;
    clearInterval(pings);
    const limit = setTimeout(killAll, STOP_PAUSE_SECONDS * 1000 + LONGEST_STOP_MILLISECONDS);
    await Promise.all([...processes.values()].map(stopWorker));
    clearTimeout(limit);
  }

  async function stopWorker({ worker, channel }: Process) {
    channel.tell('stop');
    const [code, signal] = await once(worker, 'exit');
    if (code === 0) return;
    log.error(`Worker ${worker.id} ${endOf(code, signal)} while it stopped.`);
    process.exitCode = 1;
  }

  function killAll() {
    for (const { worker } of processes.values()) worker.process.kill('SIGKILL');
  }
}

const NEVER = new Promise<never>(() => undefined);

const endOf = (code: number | null, signal: string | null) =>
  signal ? `was ended by ${signal}` : `ended with exit code ${code}`;
