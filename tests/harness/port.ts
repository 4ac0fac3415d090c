import { readFileSync } from 'node:fs';
import { createServer, type ListenOptions, type Server } from 'node:net';

const LOWEST = 10_000;

/**
 * A port for a server that can't take one itself and tell it. It is not one that systems give to connections and to servers
 * without a port, and other tests find it reserved until this process ends.
 */
export async function reservePort(): Promise<number> {
  const end = lowestGiven();
  for (let attempt = 0; attempt < 1000; attempt++) {
    const port = LOWEST + Math.floor(Math.random() * (end - LOWEST));
    const reservation = await reserve(port);
    if (!reservation) continue;
    const tried = await listen({ port });
    if (tried) {
      await close(tried);
      return port;
    }
    await close(reservation);
  }
  throw new Error(`No port from ${LOWEST} to ${end} is free.`);
}

/**
 * By a name that the kernel gives to one process only, and forgets when that ends. A port on another address would be in the way
 * of a server on all of them. Other systems than Linux have no such names.
 */
async function reserve(port: number): Promise<Server | undefined> {
  if (process.platform !== 'linux') return createServer();
  return (await listen({ path: `\0deckhand-test-port-${port}` }))?.unref();
}

/** Undefined if it is in use. */
const listen = (options: ListenOptions): Promise<Server | undefined> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error),
    );
    server.listen(options, () => resolve(server));
  });

const close = (server: Server) => new Promise((resolve) => server.close(resolve));

/** The first port that the system gives by itself. */
function lowestGiven(): number {
  try {
    return Number.parseInt(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8'), 10);
  } catch {
    return 32_768;
  }
}
