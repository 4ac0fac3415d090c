import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { networkOf } from '../runtime/address.ts';

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
