import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as pause, setImmediate } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';

declare module 'fastify' {
  interface FastifyInstance {
    /** Ends the service without cutting anybody off; `limitMilliseconds` is when it ends all the same. */
    drain: (limitMilliseconds: number) => Promise<void>;
  }
}

/** A kept connection on which nothing has come for this long is closed. */
const QUIET_MILLISECONDS = 1000;
const LOOK_MILLISECONDS = 20;
const LONGEST_HOLD_MILLISECONDS = 5000;
/** When no connection has come for this long, and the event loop has looked for one this often, none is waiting. */
const NONE_WAITING = { milliseconds: 100, turns: 3 };

/**
 * Lets the service stop while it is in use: requests in flight end as usual, requests on kept connections are still served,
 * and every connection is closed after its next answer, which says `Connection: close`. New connections are refused only
 * when those from before are gone.
 */
export function drainable(app: FastifyInstance): void {
  const connections = new Map<Socket, { inFlight: number; quietSince: number }>();
  let isDraining = false;
  let answersHeld: Promise<void> | undefined;
  let connected = 0;

  app.server.on('connection', (socket: Socket) => {
    connected++;
    connections.set(socket, { inFlight: 0, quietSince: performance.now() });
    socket.once('close', () => connections.delete(socket));
  });
  app.server.on('request', ({ socket }, response) => {
    const connection = connections.get(socket);
    if (!connection) return;
    connection.inFlight++;
    response.once('close', () => {
      connection.inFlight--;
      connection.quietSince = performance.now();
    });
  });
  app.addHook('onSend', (_request, reply, _payload, done) => {
    const send = () => {
      if (isDraining) reply.header('Connection', 'close');
      done();
    };
    if (answersHeld) void answersHeld.then(send);
    else send();
  });

  app.decorate('drain', async (limitMilliseconds: number) => {
    const deadline = performance.now() + limitMilliseconds;
    const before = new Set(connections.keys());
    isDraining = true;
    while (before.size > 0 && performance.now() < deadline) {
      await pause(LOOK_MILLISECONDS);
      await closeQuiet();
      for (const socket of before) if (!connections.has(socket)) before.delete(socket);
    }

    const { ended } = await stopListening(deadline);
    const quiet = setInterval(closeQuiet, LOOK_MILLISECONDS);
    const limit = setTimeout(cutAll, Math.max(0, deadline - performance.now()));
    await ended;
    clearInterval(quiet);
    clearTimeout(limit);
    await app.close();
  });

  function cutAll() {
    const requests = [...connections.values()].reduce((sum, { inFlight }) => sum + inFlight, 0);
    if (requests > 0) app.log.warn({ requests }, 'Requests that had not ended were cut.');
    app.server.closeAllConnections();
  }

  async function closeQuiet() {
    // Right after the event loop has read what arrived: a request that waits to be read is no quiet connection.
    await setImmediate();
    const now = performance.now();
    for (const [socket, { inFlight, quietSince }] of connections) {
      if (inFlight === 0 && now - quietSince > QUIET_MILLISECONDS) socket.destroySoon();
    }
  }

  /**
   * The kernel resets connections that wait to be accepted when the listener is closed, and the event loop accepts one in
   * each turn. So answers are held until none waits any more: whoever waits for an answer opens no new connection.
   */
  async function stopListening(deadline: number): Promise<{ ended: Promise<unknown> }> {
    const { promise, resolve } = Promise.withResolvers<void>();
    answersHeld = promise;
    const latest = Math.min(deadline, performance.now() + LONGEST_HOLD_MILLISECONDS);
    let turns = 0;
    for (let latestConnection = performance.now(), known = connected; performance.now() < latest; turns++) {
      if (connected > known) [latestConnection, known, turns] = [performance.now(), connected, 0];
      if (turns >= NONE_WAITING.turns && performance.now() - latestConnection > NONE_WAITING.milliseconds) break;
      await setImmediate();
    }

    // At once, while every answer is held: it also destroys connections whose answer has ended but is not sent yet.
    const ended = once(app.server, 'close');
    app.server.close();
    answersHeld = undefined;
    resolve();
    return { ended };
  }
}
