import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as pause, setImmediate } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { networkOf } from '../runtime/address.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** Stops gracefully, within `limitMilliseconds`. Whether no request was cut off. */
    drain: (limitMilliseconds: number, waitForSiblings?: WaitForSiblings) => Promise<boolean>;
  }
}

/** Waits until all workers of the node have come to this step. */
export type WaitForSiblings = (step: 'drained' | 'quiet' | 'closed') => Promise<void>;
const ALONE: WaitForSiblings = async () => undefined;

/** A keep-alive connection that is idle for this long is closed. */
const QUIET_MILLISECONDS = 1000;
const LOOK_MILLISECONDS = 20;
const LONGEST_HOLD_MILLISECONDS = 5000;
/** After this time and number of event loop turns without a new connection, none is waiting in the backlog. */
const NONE_WAITING = { milliseconds: 100, turns: 3 };

/**
 * Graceful shutdown: completes requests in flight, still serves requests on keep-alive connections, and closes each connection
 * after its next response, which has `Connection: close`. Streams of events end at once: their clients reconnect elsewhere. New
 * connections are refused only once the existing ones are closed.
 * Workers share one listener, so they close it together: whoever got their last response from one could still reach another.
 */
export function addDrain(app: FastifyInstance): void {
  const connections = new Map<Socket, { inFlight: number; quietSince: number }>();
  let isDraining = false;
  let responsesHeld: Promise<void> | undefined;
  let connected = 0;
  let isComplete = true;

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
    if (responsesHeld) void responsesHeld.then(send);
    else send();
  });

  app.decorate('drain', async (limitMilliseconds: number, waitForSiblings = ALONE) => {
    const deadline = performance.now() + limitMilliseconds;
    const before = new Set(connections.keys());
    isDraining = true;
    app.endStreams();
    while (before.size > 0 && performance.now() < deadline) {
      await pause(LOOK_MILLISECONDS);
      await closeQuiet();
      for (const socket of before) if (!connections.has(socket)) before.delete(socket);
    }

    await inTime(waitForSiblings('drained'), deadline);
    const { ended } = await stopListening(deadline, waitForSiblings);
    const quiet = setInterval(closeQuiet, LOOK_MILLISECONDS);
    const limit = setTimeout(cutAll, Math.max(0, deadline - performance.now()));
    await ended;
    clearInterval(quiet);
    clearTimeout(limit);
    await app.close();
    return isComplete;
  });

  function cutAll() {
    const requests = [...connections.values()].reduce((sum, { inFlight }) => sum + inFlight, 0);
    isComplete = requests === 0;
    if (!isComplete) app.log.warn({ requests }, 'Unfinished requests were cut off.');
    app.server.closeAllConnections();
  }

  async function closeQuiet() {
    // After the event loop has read pending data: a connection with an unread request is not idle.
    await setImmediate();
    const now = performance.now();
    for (const [socket, { inFlight, quietSince }] of connections) {
      if (inFlight === 0 && now - quietSince > QUIET_MILLISECONDS) socket.destroySoon();
    }
  }

  /**
   * Closing the listener makes the kernel reset connections in the backlog, and the event loop accepts one per turn. So responses
   * are held back until the backlog is empty: callers that wait for a response open no new connection.
   */
  async function stopListening(
    deadline: number,
    waitForSiblings: WaitForSiblings,
  ): Promise<{ ended: Promise<unknown> }> {
    const { promise, resolve } = Promise.withResolvers<void>();
    responsesHeld = promise;
    const latest = Math.min(deadline, performance.now() + LONGEST_HOLD_MILLISECONDS);
    let turns = 0;
    for (let latestConnection = performance.now(), known = connected; performance.now() < latest; turns++) {
      if (connected > known) [latestConnection, known, turns] = [performance.now(), connected, 0];
      if (turns >= NONE_WAITING.turns && performance.now() - latestConnection > NONE_WAITING.milliseconds) break;
      await setImmediate();
    }
    await inTime(waitForSiblings('quiet'), latest);

    // While all responses are held back: closing also destroys connections whose response is finished but not yet sent.
    const ended = once(app.server, 'close');
    app.server.close();
    await inTime(waitForSiblings('closed'), latest);
    responsesHeld = undefined;
    resolve();
    return { ended };
  }
}

const inTime = (event: Promise<void>, latest: number) =>
  Promise.race([event, pause(Math.max(0, latest - performance.now()), undefined, { ref: false })]);

/** Above these limits, new connections are closed at once. */
const MOST_CONNECTIONS = 5000;
const MOST_OF_ONE_ADDRESS = 1000;

/** If a caller does not read a response for this long, the connection is closed. */
const LONGEST_UNREAD_MILLISECONDS = 30_000;

/** Prevents one address from using all connections, and callers who do not read from filling the memory. */
export function limitConnections(app: FastifyInstance, { isBehindProxy }: { isBehindProxy: boolean }): void {
  app.server.maxConnections = MOST_CONNECTIONS;
  app.addHook('onSend', (_request, reply, _payload, done) => {
    reply.raw.setTimeout(LONGEST_UNREAD_MILLISECONDS);
    done();
  });
  // All connections come from the proxy, which has its own limits.
  if (isBehindProxy) return;

  const counts = new Map<string, number>();
  app.server.on('connection', (socket: Socket) => {
    const network = networkOf(socket.remoteAddress ?? '');
    const count = (counts.get(network) ?? 0) + 1;
    counts.set(network, count);
    socket.once('close', () => {
      const left = (counts.get(network) ?? 1) - 1;
      if (left > 0) counts.set(network, left);
      else counts.delete(network);
    });
    if (count > MOST_OF_ONE_ADDRESS) socket.destroy();
  });
}
