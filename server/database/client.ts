import type { EventEmitter } from 'node:events';
import pg from 'pg';
import { isStalePlan, statementNames } from './preparedStatements.ts';
import { SHORT_TIMEOUT } from './query.ts';
import { traceStatement } from './statementSpan.ts';
import { parseTimestamp, TIMESTAMPTZ } from './timestamp.ts';

/** Above the server's `statement_timeout`, so only a server that does not respond takes longer. */
const LONGEST_RESPONSE_MILLISECONDS = 32_000;

/** For the first statement of a request: a lookup by key, which a working server runs in milliseconds. */
const LONGEST_SHORT_RESPONSE_MILLISECONDS = 2_000;

const NO_RESPONSE = 'the database did not answer in time';

/** Whether connecting or a response timed out: the server may only be slow, so a retry can work. */
export const isSilence = ({ message }: Error) => message === NO_RESPONSE || message === NO_CONNECTION;
const NO_CONNECTION = 'Connection terminated due to connection timeout';

/** The options of each connection, in addition to those of pg. */
export type ClientOptions = pg.ClientConfig & { isPreparing: boolean; hasTimeouts: boolean };

/**
 * A connection with a timeout for responses, for example after the network was lost; pg itself would wait forever. After a
 * timeout, its statements fail and the pool replaces it. Statements with values are prepared.
 */
export class DeckhandClient extends pg.Client {
  private readonly isPreparing: boolean;
  private readonly hasTimeouts: boolean;
  private pending = 0;
  private latestResponse = Number.POSITIVE_INFINITY;

  constructor(options: ClientOptions) {
    super(options);
    this.isPreparing = options.isPreparing;
    this.hasTimeouts = options.hasTimeouts;
    this.setTypeParser(TIMESTAMPTZ, parseTimestamp);
    this.once('connect', () => connected.add(this));
    this.once('end', () => connected.delete(this));
  }

  // biome-ignore lint/suspicious/noExplicitAny: the many forms of pg's own `query`
  override query(...parts: any[]): any {
    const [text, values] = parts;
    if (typeof text === 'string' && typeof parts.at(-1) !== 'function') {
      return traceStatement(text, () => this.respondInTime(text, values));
    }
    return super.query(...(parts as [string]));
  }

  private respondInTime(text: string, values: unknown[] = [], isPreparing = this.isPreparing): Promise<unknown> {
    this.pending++;
    this.expectResponseWithin(
      text.startsWith(SHORT_TIMEOUT) ? LONGEST_SHORT_RESPONSE_MILLISECONDS : LONGEST_RESPONSE_MILLISECONDS,
    );
    const name = isPreparing && values.length > 0 ? statementNames.of(text) : undefined;
    const response = name === undefined ? super.query(text, values) : super.query({ name, text, values });
    return response.then(
      (result) => {
        this.noteResponse();
        return result;
      },
      (error) => {
        this.noteResponse();
        if (name === undefined || !isStalePlan(error)) throw error;
        statementNames.forget(name);
        // Inside a transaction, which has failed with it, the retry is up to `transact`.
        if (this.getTransactionStatus() !== 'I') throw error;
        return this.respondInTime(text, values, false);
      },
    );
  }

  private noteResponse(): void {
    this.pending--;
    this.expectResponseWithin(this.pending > 0 ? LONGEST_RESPONSE_MILLISECONDS : Number.POSITIVE_INFINITY);
  }

  private expectResponseWithin(milliseconds: number): void {
    this.latestResponse = this.hasTimeouts ? performance.now() + milliseconds : Number.POSITIVE_INFINITY;
  }

  get isSilent(): boolean {
    return performance.now() > this.latestResponse;
  }

  /** Destroys the connection without telling the server. */
  drop(): void {
    const { stream } = (this as unknown as { connection: { stream: { destroy: (error: Error) => void } } }).connection;
    stream.destroy(new Error(NO_RESPONSE));
  }

  giveUp(): void {
    this.emit('silent');
    this.drop();
  }
}

const connected = new Set<DeckhandClient>();

/** Checks all connections ten times per second, which is cheaper than a timer per statement. */
setInterval(() => {
  const silent = [...connected].filter(({ isSilent }) => isSilent);
  if (silent.length === 0) return;
  // One turn later: if the event loop was blocked, the response may have arrived without being read yet.
  setImmediate(() => {
    for (const client of silent) if (client.isSilent) client.giveUp();
  });
}, 100).unref();

/** Handles lost connections, which the pool does not do by itself. */
export function replaceLost(pool: pg.Pool): void {
  dropIdleAfterSilence(pool);
  releaseLost(pool);
}

/** After a timeout on one connection, drops the idle ones too: each would cause the same timeout for another request. */
function dropIdleAfterSilence(pool: pg.Pool): void {
  const idle = new Set<unknown>();
  const dropIdle = () => {
    for (const client of idle) (client as DeckhandClient).drop();
  };
  pool.on('release', (_error, client) => idle.add(client));
  pool.on('acquire', (client) => idle.delete(client));
  pool.on('remove', (client) => idle.delete(client));
  pool.on('connect', (client) => (client as unknown as EventEmitter).on('silent', dropIdle));
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
