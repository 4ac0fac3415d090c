import type { Channel } from '../../runtime/channel.ts';
import type { WorkerCalls } from './calls.ts';

/** `missedPings`: those that it has not answered since its last answer. */
export type Pinged = {
  channel: Channel<WorkerCalls>;
  isReady: boolean;
  missedPings: number;
  /** When it has to be ready; Infinity for the first one, which runs the migrations. */
  readyBy: number;
};

const MOST_MISSED_PINGS = 30;

/** Longer than a start waits for a database that does not answer. */
export const LONGEST_START_SECONDS = 120;

/** Pings all workers. Returns those whose event loop has been blocked for too long, and those that are still not ready, with the reason. */
export function pingAll<Id>(workers: ReadonlyMap<Id, Pinged>, now = performance.now()): [Id, reason: string][] {
  const hanging: [Id, string][] = [];
  for (const [id, worker] of workers) {
    // While it loads its modules on a busy machine, it may take longer.
    const most = worker.isReady ? MOST_MISSED_PINGS : LONGEST_START_SECONDS;
    if (worker.missedPings++ >= most) hanging.push([id, `has not reacted for ${most} seconds`]);
    else if (!worker.isReady && now >= worker.readyBy)
      hanging.push([id, `is not ready after ${LONGEST_START_SECONDS} seconds`]);
    void worker.channel.ask('ping').then(() => {
      worker.missedPings = 0;
    });
  }
  return hanging;
}
