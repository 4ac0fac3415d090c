import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';

/** Elsewhere than servers listen, so that it keeps a port from other tests and not from the server that gets it. */
const GUARD = '127.0.0.99';
const LOWEST = 10_000;

/**
 * A port for a server that can't take one itself and tell it. Nobody else gets it until this process ends: it is not one that
 * systems give to connections and to servers without a port, and other tests find it reserved.
 */
export async function reservePort(): Promise<number> {
  const end = lowestGiven();
  for (let attempt = 0; attempt < 1000; attempt++) {
    const port = LOWEST + Math.floor(Math.random() * (end - LOWEST));
    const guard = await listen(port, GUARD);
    if (!guard) continue;
    guard.unref();
    const tried = await listen(port, '127.0.0.1');
    if (!tried) continue;
    await new Promise((resolve) => tried.close(resolve));
    return port;
  }
  throw new Error(`No port from ${LOWEST} to ${end} is free.`);
}

/** Undefined if the port is in use. */
const listen = (port: number, host: string): Promise<Server | undefined> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined)).listen(port, host, () => resolve(server));
  });

/** The first port that the system gives by itself. */
function lowestGiven(): number {
  try {
    return Number.parseInt(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8'), 10);
  } catch {
    return 32_768;
  }
}
