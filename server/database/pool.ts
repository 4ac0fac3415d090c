import type { EventEmitter } from 'node:events';
import type pg from 'pg';
import { NO_RESPONSE, READ_ONLY, type ServerClient } from './client.ts';
import { HostLost } from './hosts.ts';

export type DropIdle = (why: string) => void;

/**
 * Replaces connections to a server that is silent or read-only, which the pool does not do by itself. Drops the idle ones after
 * such a failure of one connection, since each would fail another request. Returns how to drop them.
 */
export function replaceLost(pool: pg.Pool): DropIdle {
  const idle = new Set<unknown>();
  const dropIdle: DropIdle = (why) => {
    for (const client of idle) (client as ServerClient).drop(why);
  };
  pool.on('acquire', (client) => idle.delete(client));
  pool.on('remove', (client) => idle.delete(client));
  pool.on('release', (_error, client) => {
    idle.add(client);
    // The pool removes connections that are ending.
    if ((client as unknown as ServerClient).isOutdated) client.end();
  });
  pool.on('connect', (client) => {
    const events = client as unknown as EventEmitter;
    events.on('silent', () => dropIdle(NO_RESPONSE));
    events.on('readOnly', () => dropIdle(READ_ONLY));
  });
  return dropIdle;
}

/** Connects once more, to another host, if the one that was used last is gone: the request must not fail for it. */
export function tryOtherHosts(pool: pg.Pool): void {
  const connect = pool.connect.bind(pool) as () => Promise<pg.PoolClient>;
  const isLost = (error: Error) => error instanceof HostLost || error.cause instanceof HostLost;
  pool.connect = (() =>
    connect().catch((error) => {
      if (!isLost(error)) throw error;
      return connect();
    })) as typeof pool.connect;
}
