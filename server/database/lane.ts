import type { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { NO_RESPONSE, READ_ONLY, type ServerClient } from './client.ts';
import { READ_ONLY_TRANSACTION } from './hosts.ts';
import { replaceLost } from './pool.ts';

/** Later statements wait for this one. After a timeout, for example because of a lock, it is executed again on the pool. */
const TIMEOUTS = { statement_timeout: 1_000, lock_timeout: 100 };
const RECONNECT_MILLISECONDS = 1_000;
/** A read that took longer, for example of much data, or had a timeout, uses the pool for some time. */
const LONGEST_READ_MILLISECONDS = 20;
const SLOW_FOR_MILLISECONDS = 10_000;
const MOST_SLOW = 1000;
const LONG_WRITE_MILLISECONDS = 500;
const RETRY_MILLISECONDS = 100;
/** A lane that lost its connections has new ones after a second, and a connection may take two. */
const LONGEST_WITHOUT_LANE_MILLISECONDS = 4_000;

/**
 * Connections that single short reads share: statements are sent without waiting for the results of those before them, which
 * saves checking out a connection and most of the system calls. Each has its own Sync, so that a failure affects no other.
 * Writes stay on the pool: those behind a commit would wait for the disk.
 */
export type Lane = {
  /** The rows of a statement. Undefined if it is up to the pool: without a connection, after its loss, or after a timeout. */
  read: (text: string, values: unknown[]) => Promise<unknown[] | undefined>;
  /** The rows of a statement on a connection of the pool, without the steps of Kysely around it. */
  runOnPool: (text: string, values: unknown[]) => Promise<unknown[]>;
  /**
   * The same for the first statement of a request. If it takes long, a read on the lane shows whether it waits for a lock or the
   * server is silent. No rows, and nothing is written, without a connection of the lane or on a server that became read-only.
   */
  writeFirst: (text: string, values: unknown[]) => Promise<unknown[]>;
  load: () => PoolLoad;
  close: () => Promise<void>;
};

/** The connections of a pool. On a lane, pending statements wait for others on their connection. */
export type PoolLoad = { used: number; idle: number; pending: number; max: number };

/** A lane beside a pool, with its options; it connects at its first use. */
export function makeLane(
  pool: pg.Pool,
  size: number,
  dropIdle: (why: string) => void,
  longestReadMilliseconds = LONGEST_READ_MILLISECONDS,
): Lane {
  const own = new pg.Pool({
    ...pool.options,
    ...TIMEOUTS,
    application_name: 'deckhand lane',
    max: size,
    pipeline: true,
  });
  own.on('error', () => undefined);
  replaceLost(own);
  const clients = new Set<ServerClient>();
  let state: 'new' | 'open' | 'closed' = 'new';
  const isClosed = () => state === 'closed';
  /** Slow reads by statement and values, with the time until when they use the pool; the oldest comes first. */
  const slow = new Map<string, number>();
  for (const each of [pool, own]) {
    each.on('connect', (client) => {
      const events = client as unknown as EventEmitter;
      events.on('silent', () => retireAll(NO_RESPONSE));
      events.on('readOnly', () => retireAll(READ_ONLY));
      events.on('late', () => giveUpIfSilent(client as unknown as ServerClient));
    });
  }

  return {
    read,
    runOnPool: async (text, values) => {
      const client = await pool.connect();
      try {
        return (await client.query(text, values)).rows;
      } finally {
        client.release();
      }
    },
    writeFirst: async (text, values) => {
      if (!leastUsed()) return [];
      const client = await pool.connect();
      const server = client as unknown as ServerClient;
      server.lateAt = performance.now() + LONG_WRITE_MILLISECONDS;
      try {
        return (await client.query(text, values)).rows;
      } catch (error) {
        if ((error as pg.DatabaseError).code === READ_ONLY_TRANSACTION) return [];
        throw error;
      } finally {
        server.lateAt = Number.POSITIVE_INFINITY;
        client.release();
      }
    },
    load: () => {
      const pending = [...clients].map((client) => client.pending);
      const used = pending.filter((count) => count > 0).length;
      const waiting = pending.reduce((sum, count) => sum + Math.max(0, count - 1), 0);
      return { used, idle: clients.size - used, pending: waiting, max: size };
    },
    close: async () => {
      state = 'closed';
      await Promise.all([...clients].map((client) => client.end()));
      await own.end();
    },
  };

  async function read(text: string, values: unknown[]): Promise<unknown[] | undefined> {
    if (state === 'new') open();
    const begun = performance.now();
    const client = isSlow(text, values) ? undefined : leastUsed();
    if (!client) return undefined;
    try {
      const { rows } = await client.query(text, values);
      // Without the time that it waited for statements before it.
      const took = performance.now() - Math.max(begun, client.previousResponse);
      if (took > longestReadMilliseconds) noteSlow(text, values);
      return rows;
    } catch (error) {
      const isTimeout = TIMEOUT_CODES.has((error as pg.DatabaseError).code);
      if (isTimeout) noteSlow(text, values);
      if (isTimeout || isLoss(error as pg.DatabaseError)) return undefined;
      throw error;
    }
  }

  async function giveUpIfSilent(waiting: ServerClient): Promise<void> {
    const { lastResponse } = waiting;
    const isSame = () => waiting.pending > 0 && waiting.lastResponse === lastResponse;
    const latest = performance.now() + LONGEST_WITHOUT_LANE_MILLISECONDS;
    while (isSame() && performance.now() < latest) {
      const server = await probe();
      if (server === 'answers') return;
      if (server === 'silent') break;
      await sleep(RETRY_MILLISECONDS);
    }
    if (isSame()) waiting.giveUp();
  }

  /** Any answer counts, however slow, an error too. Unknown without a connection. */
  async function probe(): Promise<'answers' | 'silent' | 'unknown'> {
    try {
      const client = leastUsed();
      if (!client) return 'unknown';
      await client.query('select 1', []);
      return 'answers';
    } catch (error) {
      if ((error as Error).message === NO_RESPONSE) return 'silent';
      return isLoss(error as pg.DatabaseError) ? 'unknown' : 'answers';
    }
  }

  function isSlow(text: string, values: unknown[]): boolean {
    return slow.size > 0 && (slow.get(keyOf(text, values)) ?? 0) > performance.now();
  }

  function noteSlow(text: string, values: unknown[]): void {
    const now = performance.now();
    for (const [key, until] of slow) {
      if (until > now && slow.size < MOST_SLOW) break;
      slow.delete(key);
    }
    const key = keyOf(text, values);
    slow.delete(key);
    slow.set(key, now + SLOW_FOR_MILLISECONDS);
  }

  function leastUsed(): ServerClient | undefined {
    let chosen: ServerClient | undefined;
    for (const client of clients) if (!chosen || client.pending < chosen.pending) chosen = client;
    return chosen;
  }

  function open(): void {
    state = 'open';
    for (let number = 0; number < size; number++) void connect();
  }

  async function connect(): Promise<void> {
    if (isClosed()) return;
    try {
      const checkedOut = await own.connect();
      const client = checkedOut as unknown as ServerClient;
      client.on('error', () => undefined);
      const isUsable = await hasTimeouts(client).catch(() => undefined);
      if (isUsable === false) state = 'closed';
      if (!isUsable || isClosed()) {
        checkedOut.release(true);
        connectLater();
        return;
      }
      clients.add(client);
      client.once('end', () => {
        clients.delete(client);
        checkedOut.release(true);
        connectLater();
      });
    } catch {
      // The log has the failures of the pool, to the same server.
      connectLater();
    }
  }

  function connectLater(): void {
    if (state === 'open') setTimeout(connect, RECONNECT_MILLISECONDS).unref();
  }

  /** After a failure of one connection, each of the others would fail another request. Those in use fail or end by themselves. */
  function retireAll(why: string): void {
    dropIdle(why);
    for (const client of clients) {
      clients.delete(client);
      if (client.pending === 0) client.drop(why);
      else client.end();
    }
  }
}

/** Some poolers drop the parameters of new connections: one statement could then block all others for long. */
async function hasTimeouts(client: ServerClient): Promise<boolean> {
  const { rows } = await client.query(`select current_setting('statement_timeout') = '1s' as has`, []);
  return rows[0].has;
}

const keyOf = (text: string, values: unknown[]) => text + JSON.stringify(values);

const TIMEOUT_CODES = new Set<string | undefined>(['57014', '55P03']);

/** Whether the connection was lost. A server that does not respond would not respond to the pool either. */
const isLoss = ({ severity, message }: pg.DatabaseError) =>
  (severity === undefined || severity === 'FATAL') && message !== NO_RESPONSE;
