import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import pg from 'pg';
import { type Host, HostLost, type Hosts, READ_ONLY_TRANSACTION } from './hosts.ts';
import { type KnownColumns, NamedQuery } from './namedQuery.ts';
import { isStalePlan, statementNames } from './preparedStatements.ts';
import { SHORT_TIMEOUT } from './query.ts';
import { traceStatement } from './statementSpan.ts';
import { parseTimestamp, TIMESTAMPTZ } from './timestamp.ts';

/** Above the server's `statement_timeout`, so only a server that does not respond takes longer. */
const LONGEST_RESPONSE_MILLISECONDS = 32_000;

/** For the first statement of a request and for those of a lane: lookups by key, which a working server runs in milliseconds. */
const LONGEST_SHORT_RESPONSE_MILLISECONDS = 2_000;

export const NO_RESPONSE = 'the database did not answer in time';

/** Whether connecting or a response timed out: the server may only be slow, so a retry can work. */
export const isSilence = ({ message }: Error) => message === NO_RESPONSE || message === NO_CONNECTION;
const NO_CONNECTION = 'Connection terminated due to connection timeout';

/** The options of each connection, in addition to those of pg; `hosts` if there are several. */
export type ClientOptions = pg.ClientConfig & { isPreparing: boolean; hasTimeouts: boolean; hosts?: Hosts };

/** What PostgreSQL reports on its own: at the start of a connection, and with a response after each change. */
const READ_ONLY_PARAMETERS = ['in_hot_standby', 'default_transaction_read_only'];
export const READ_ONLY = 'the database is read-only';

/**
 * A connection with a timeout for responses, for example after the network was lost; pg itself would wait forever. After a
 * timeout, its statements fail and the pool replaces it, and so after its server became read-only. Statements with values are
 * prepared.
 */
export class ServerClient extends pg.Client {
  private readonly isPreparing: boolean;
  private readonly hasTimeouts: boolean;
  private readonly isPipelined: boolean;
  private readonly hosts: Hosts | undefined;
  private readonly readOnlyBy = new Set<string>();
  /** Can't write any more: closed as soon as its user releases it. */
  isOutdated = false;
  /** Statements without a result yet. */
  pending = 0;
  private readonly columns: KnownColumns = new Map();
  private isCorked = false;
  private latestResponse = Number.POSITIVE_INFINITY;
  /** When the last but one response arrived, and the last one. */
  previousResponse = 0;
  lastResponse = 0;
  /** When `late` is emitted, unless it is set to another time before. */
  lateAt = Number.POSITIVE_INFINITY;

  constructor(options: ClientOptions) {
    super(options);
    this.isPreparing = options.isPreparing;
    this.hasTimeouts = options.hasTimeouts;
    this.isPipelined = options.pipeline ?? false;
    this.hosts = options.hosts;
    this.wire.on('parameterStatus', (reported) => this.noteParameter(reported));
    this.setTypeParser(TIMESTAMPTZ, parseTimestamp);
    this.once('connect', () => connected.add(this));
    this.once('end', () => connected.delete(this));
  }

  // biome-ignore lint/suspicious/noExplicitAny: both forms of pg's own `connect`; the pool uses the one with a callback
  override connect(callback?: any): any {
    const { hosts } = this;
    if (!hosts) return super.connect(callback);
    hosts.choose().then((host) => this.connectTo(host, hosts, callback), callback);
  }

  private connectTo(host: Host, hosts: Hosts, callback: (error?: Error) => void): void {
    // By the pool, after its timeout.
    if (this.wire.stream.destroyed) {
      callback(new Error(NO_CONNECTION));
      return;
    }
    Object.assign(this, host);
    Object.assign((this as unknown as { connectionParameters: Host }).connectionParameters, host);
    const doubt = (error?: Error | null) => hosts.doubt(host, error?.message || READ_ONLY);
    for (const event of ['error', 'readOnly']) (this as EventEmitter).on(event, doubt);
    super.connect((error: Error | null) => {
      const isUsable = !error && !(hosts.mustBeWritable && this.readOnlyBy.size > 0);
      if (isUsable) {
        callback();
        return;
      }
      doubt(error);
      if (!error) this.end();
      callback(new HostLost(error?.message ?? READ_ONLY, { cause: error }));
    });
  }

  private noteParameter({ parameterName, parameterValue }: { parameterName: string; parameterValue: string }): void {
    if (!READ_ONLY_PARAMETERS.includes(parameterName)) return;
    if (parameterValue === 'off') this.readOnlyBy.delete(parameterName);
    else this.readOnlyBy.add(parameterName);
    if (parameterValue !== 'off' && connected.has(this)) this.noteReadOnly();
  }

  private noteReadOnly(): void {
    this.isOutdated = true;
    this.emit('readOnly');
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
    // A statement behind another one must not extend its time.
    if (++this.pending === 1) {
      const isShort = text.startsWith(SHORT_TIMEOUT);
      this.expectResponseWithin(isShort ? LONGEST_SHORT_RESPONSE_MILLISECONDS : this.longestResponse);
    }
    const name = isPreparing && values.length > 0 ? statementNames.of(text) : undefined;
    if (this.isPipelined) this.sendTogether();
    const response = name === undefined ? super.query(text, values) : this.execute(name, text, values);
    return response.then(
      (result) => {
        this.noteResponse();
        return result;
      },
      (error) => {
        this.noteResponse();
        if (error.code === READ_ONLY_TRANSACTION) this.noteReadOnly();
        if (name === undefined || !isStalePlan(error)) throw error;
        statementNames.forget(name);
        // Inside a transaction, which has failed with it, the retry is up to `transact`.
        if (this.getTransactionStatus() !== 'I') throw error;
        return this.respondInTime(text, values, false);
      },
    );
  }

  private execute(name: string, text: string, values: unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const done = (error: Error | null, result: unknown) => (error ? reject(error) : resolve(result));
      const findParser = (type: number) => this.getTypeParser(type, 'text');
      super.query(new NamedQuery({ name, text, values }, this.columns, findParser, done));
    });
  }

  /** Statements of the same turn of the event loop leave in one packet. */
  private sendTogether(): void {
    if (this.isCorked) return;
    this.isCorked = true;
    const { stream } = this.wire;
    stream.cork();
    setImmediate(() => {
      this.isCorked = false;
      stream.uncork();
    });
  }

  private noteResponse(): void {
    this.pending--;
    this.previousResponse = this.lastResponse;
    this.lastResponse = performance.now();
    this.expectResponseWithin(this.pending > 0 ? this.longestResponse : Number.POSITIVE_INFINITY);
  }

  private get longestResponse(): number {
    return this.isPipelined ? LONGEST_SHORT_RESPONSE_MILLISECONDS : LONGEST_RESPONSE_MILLISECONDS;
  }

  private expectResponseWithin(milliseconds: number): void {
    this.latestResponse = this.hasTimeouts ? performance.now() + milliseconds : Number.POSITIVE_INFINITY;
  }

  get isSilent(): boolean {
    return performance.now() > this.latestResponse;
  }

  /** Destroys the connection without telling the server. */
  drop(why: string): void {
    this.wire.stream.destroy(new Error(why));
  }

  noteLate(): void {
    if (performance.now() < this.lateAt) return;
    this.lateAt = Number.POSITIVE_INFINITY;
    this.emit('late');
  }

  giveUp(): void {
    this.emit('silent');
    this.drop(NO_RESPONSE);
  }

  private get wire() {
    return (this as unknown as { connection: EventEmitter & { stream: Socket } }).connection;
  }
}

const connected = new Set<ServerClient>();

/** Checks all connections ten times per second, which is cheaper than a timer per statement. */
setInterval(() => {
  for (const client of connected) client.noteLate();
  const silent = [...connected].filter(({ isSilent }) => isSilent);
  if (silent.length === 0) return;
  // One turn later: if the event loop was blocked, the response may have arrived without being read yet.
  setImmediate(() => {
    for (const client of silent) if (client.isSilent) client.giveUp();
  });
}, 100).unref();
