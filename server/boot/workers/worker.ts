import cluster from 'node:cluster';
import type { Siblings } from '../../api/services.ts';
import type { WaitForSiblings } from '../../http/connections.ts';
import type { Counter, MakeCounter } from '../../limits/counters.ts';
import { type Channel, openChannel } from '../../runtime/channel.ts';
import type { FairQueue } from '../../runtime/fairQueue.ts';
import { tooManySignIns } from '../../security/passwords.ts';
import type { ParentCalls, WorkerCalls } from './calls.ts';

/** A worker's side: whatever must be counted over all workers is counted by the parent. */
export type Worker = Siblings & {
  id: number;
  /** The first one runs migrations and prints the warnings of the start. */
  isFirst: boolean;
  waitForSiblings: WaitForSiblings;
  /** Tells the parent that it accepts connections. */
  reportReady: (url: string) => void;
};

export function joinParent(stop: () => void): Worker {
  const id = cluster.worker?.id ?? 0;
  const elsewhere = new Map<string, number>();
  let readMetrics: (() => Promise<string>) | undefined;
  let onChange = () => {};
  const calls: WorkerCalls = {
    stop,
    ping: () => undefined,
    metrics: () => readMetrics?.(),
    changedElsewhere: () => onChange(),
    unsentElsewhere: ({ key, bytes }) => void (bytes > 0 ? elsewhere.set(key, bytes) : elsewhere.delete(key)),
  };
  // Nothing waits for ever: when the parent is gone, Node ends this process.
  const parent = openChannel<ParentCalls>(
    (messages) => process.send?.(messages, undefined, {}, () => undefined),
    calls,
  );
  process.on('message', parent.receive);

  return {
    id,
    isFirst: id === 1,
    makeCounter: counterOf(parent),
    passwords: passwordQueueOf(parent),
    unsentElsewhere: {
      bytesOf: (key) => elsewhere.get(key) ?? 0,
      publish: (key, bytes) => parent.tell('unsent', { key, bytes }),
    },
    changes: {
      send: () => parent.tell('changed'),
      listen: (listener) => {
        onChange = listener;
      },
    },
    collectMetrics: (own) => {
      readMetrics = own;
      return () => parent.ask('allMetrics');
    },
    waitForSiblings: (step) => parent.ask('arrive', step),
    reportReady: (url) => parent.tell('ready', url),
  };
}

const counterOf =
  (parent: Channel<ParentCalls>): MakeCounter =>
  (name, points, windowSeconds) => {
    const count = (method: keyof Counter) => (key: string, calls?: number) =>
      parent.ask('count', { counter: [name, points, windowSeconds], method, key, calls });
    return { get: count('get'), penalty: count('penalty'), reward: count('reward') } as Counter;
  };

function passwordQueueOf(parent: Channel<ParentCalls>): FairQueue {
  let running = 0;
  let waiting = 0;
  let lastTicket = 0;
  return {
    load: () => ({ running, waiting }),
    run: async (key, work, { goesLast = false } = {}) => {
      const ticket = ++lastTicket;
      waiting++;
      const isAdmitted = await parent.ask('enterPasswords', { ticket, key, goesLast }).finally(() => waiting--);
      if (!isAdmitted) throw tooManySignIns();
      running++;
      try {
        return await work();
      } finally {
        running--;
        parent.tell('leavePasswords', ticket);
      }
    },
  };
}
