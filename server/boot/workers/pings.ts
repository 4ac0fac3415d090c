import type { Channel } from '../../runtime/channel.ts';
import type { WorkerCalls } from './calls.ts';

/** Pings that it has not answered since its last answer. */
export type Pinged = { channel: Channel<WorkerCalls>; isReady: boolean; missedPings: number };

export const MOST_MISSED_PINGS = 30;

/** Pings all workers, and returns those whose event loop has been blocked for too long. */
export function pingAll<Id>(workers: ReadonlyMap<Id, Pinged>): Id[] {
  const hanging: Id[] = [];
  for (const [id, worker] of workers) {
    if (!worker.isReady) continue;
    if (worker.missedPings++ >= MOST_MISSED_PINGS) hanging.push(id);
    void worker.channel.ask('ping').then(() => {
      worker.missedPings = 0;
    });
  }
  return hanging;
}
