import type { EventEmitter } from 'node:events';
import type pg from 'pg';
import { type DeckhandClient, NO_RESPONSE, READ_ONLY } from './client.ts';
import { HostLost } from './hosts.ts';

/** Handles lost connections, which the pool does not do by itself. Returns how to drop the idle ones. */
export function replaceLost(pool: pg.Pool): DropIdle {
  const dropIdle = dropIdleAfterFailure(pool);
  closeOutdated(pool);
  releaseLost(pool);
  return dropIdle;
}

export type DropIdle = (why: string) => void;

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

/** After a timeout or a read-only server on one connection, drops the idle ones too: each would fail another request. */
function dropIdleAfterFailure(pool: pg.Pool): DropIdle {
  const idle = new Set<unknown>();
  const dropIdle: DropIdle = (why) => {
    for (const client of idle) (client as DeckhandClient).drop(why);
  };
  pool.on('release', (_error, client) => idle.add(client));
  pool.on('acquire', (client) => idle.delete(client));
  pool.on('remove', (client) => idle.delete(client));
  pool.on('connect', (client) => {
    (client as unknown as EventEmitter).on('silent', () => dropIdle(NO_RESPONSE));
    (client as unknown as EventEmitter).on('readOnly', () => dropIdle(READ_ONLY));
  });
  return dropIdle;
}

/** The pool removes connections that are ending. */
function closeOutdated(pool: pg.Pool): void {
  pool.on('release', (_error, client) => {
    if ((client as unknown as DeckhandClient).isOutdated) client.end();
  });
}

/**
 * Kysely does not release a connection on which `begin`, `commit` or `rollback` fails: each transaction that loses its
 * connection would permanently shrink the pool.
 */
function releaseLost(pool: pg.Pool): void {
  const held = new Set<unknown>();
  pool.on('acquire', (client) => held.add(client));
  pool.on('release', (_error, client) => held.delete(client));
  pool.on('connect', (client) => {
    client.once('end', () => {
      if (!held.has(client)) return;
      client.release(true);
      // A later release by its user must do nothing, since pg allows only one.
      client.release = () => undefined;
    });
  });
}
