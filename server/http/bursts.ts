import type { FastifyInstance } from 'fastify';

/** How many requests of one caller begin in one turn of the event loop. */
const BEGUN_PER_TURN = 4;

/** What one caller sent during the last turns. */
type Burst = { begun: number; waiting: (() => void)[] };

/**
 * Lets the requests of a burst begin over several turns of the event loop, a few of each caller at a time: a request of another
 * caller would otherwise wait until the first steps of all of them are done.
 */
export function spreadBursts(app: FastifyInstance): void {
  const bursts = new Map<string, Burst>();

  app.addHook('onRequest', ({ headers, socket }, _reply, done) => {
    const caller = headers.authorization ?? socket.remoteAddress ?? '';
    let burst = bursts.get(caller);
    if (!burst) {
      if (bursts.size === 0) setImmediate(beginNext);
      burst = { begun: 0, waiting: [] };
      bursts.set(caller, burst);
    }
    if (burst.begun++ < BEGUN_PER_TURN) done();
    else burst.waiting.push(done);
  });

  function beginNext(): void {
    for (const [caller, burst] of bursts) {
      const next = burst.waiting.splice(0, BEGUN_PER_TURN);
      burst.begun = next.length;
      if (next.length === 0) bursts.delete(caller);
      for (const begin of next) begin();
    }
    if (bursts.size > 0) setImmediate(beginNext);
  }
}
