import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { networkOf } from '../address.ts';

/** Beyond them, new connections are closed at once. */
const MOST_CONNECTIONS = 5000;
const MOST_OF_ONE_ADDRESS = 1000;

/** An answer of which nothing was read for this long is given up, with its connection. */
const LONGEST_UNREAD_MILLISECONDS = 30_000;

/** Keeps one address from taking all connections, and callers who do not read from keeping answers in memory. */
export function limitConnections(app: FastifyInstance, { isBehindProxy }: { isBehindProxy: boolean }): void {
  app.server.maxConnections = MOST_CONNECTIONS;
  app.addHook('onSend', (_request, reply, _payload, done) => {
    reply.raw.setTimeout(LONGEST_UNREAD_MILLISECONDS);
    done();
  });
  // All connections are the proxy's then: it has limits of its own.
  if (isBehindProxy) return;

  const counts = new Map<string, number>();
  app.server.on('connection', (socket: Socket) => {
    const network = networkOf(socket.remoteAddress ?? '');
    const count = (counts.get(network) ?? 0) + 1;
    counts.set(network, count);
    socket.once('close', () => {
      const left = counts.get(network)! - 1;
      if (left > 0) counts.set(network, left);
      else counts.delete(network);
    });
    if (count > MOST_OF_ONE_ADDRESS) socket.destroy();
  });
}
