import type { WaitForSiblings } from '../../http/connections.ts';
import type { Counter } from '../../limits/counters.ts';

/** What a worker may ask the parent. */
export type ParentCalls = {
  /** It accepts connections. */
  ready: (url: string) => void;
  count: (call: {
    counter: [name: string, points: number, windowSeconds: number];
    method: keyof Counter;
    key: string;
    calls: number | undefined;
  }) => ReturnType<Counter['get']>;
  /** False if the queue is full. */
  enterPasswords: (call: { ticket: number; key: string; goesLast: boolean }) => Promise<boolean>;
  leavePasswords: (ticket: number) => void;
  /** The unsent responses of a caller in this worker. */
  unsent: (sum: { key: string; bytes: number }) => void;
  /** It has written events. */
  changed: () => void;
  allMetrics: () => Promise<string[]>;
  arrive: WaitForSiblings;
};

/** What the parent may ask a worker. */
export type WorkerCalls = {
  stop: () => void;
  /** Answered as soon as the event loop turns. */
  ping: () => void;
  metrics: () => Promise<string> | undefined;
  /** Another worker has written events. */
  changedElsewhere: () => void;
  unsentElsewhere: (sum: { key: string; bytes: number }) => void;
};
