import type { EventEmitter } from 'node:events';
import pg from 'pg';
import { parseMoment, TIMESTAMPTZ } from './moment.ts';
import { isStalePlan, statementNames } from './preparedStatements.ts';
import { BRIEF, PATIENT } from './query.ts';

/** Above the server's own `statement_timeout`: only a server that has gone silent takes longer. */
const LONGEST_ANSWER_MILLISECONDS = 32_000;

/** For the first statement of a request: a look-up by key that a working server answers in a few milliseconds. */
const LONGEST_BRIEF_ANSWER_MILLISECONDS = 2_000;

const NO_ANSWER = 'the database did not answer in time';

/** Whether the server took no connection, or sent no answer, in time: it may be slow, and work a moment later. */
export const isSilence = ({ message }: Error) => message === NO_ANSWER || message === NO_CONNECTION;
const NO_CONNECTION = 'Connection terminated due to connection timeout';

/** What the pool gives each connection, beyond pg's own options. */
export type ClientOptions = pg.ClientConfig & { isPreparing: boolean };

/**
 * A connection that is given up when the server does not answer in time, for example after the network was lost: nothing
 * would ever end that wait otherwise. What waits on it fails, and the pool replaces it. Statements with values are prepared.
 */
export class DeckhandClient extends pg.Client {
  private readonly isPreparing: boolean;
  private isPatient = false;
  private unanswered = 0;
  private latestAnswer = Number.POSITIVE_INFINITY;

  constructor(options: ClientOptions) {
    super(options);
    this.isPreparing = options.isPreparing;
    this.setTypeParser(TIMESTAMPTZ, parseMoment);
    this.once('connect', () => connected.add(this));
    this.once('end', () => connected.delete(this));
  }

  // biome-ignore lint/suspicious/noExplicitAny: the many forms of pg's own `query`
  override query(...parts: any[]): any {
    const [text, values] = parts;
    if (typeof text === 'string' && typeof parts.at(-1) !== 'function') return this.answerInTime(text, values);
    return super.query(...(parts as [string]));
  }

  private answerInTime(text: string, values: unknown[] = [], isPreparing = this.isPreparing): Promise<unknown> {
    if (text.startsWith(PATIENT)) this.isPatient = true;
    if (text === 'commit' || text === 'rollback') this.isPatient = false;
    this.unanswered++;
    this.expectAnswerWithin(text.startsWith(BRIEF) ? LONGEST_BRIEF_ANSWER_MILLISECONDS : LONGEST_ANSWER_MILLISECONDS);
    const name = isPreparing && values.length > 0 ? statementNames.of(text) : undefined;
    const answer = name === undefined ? super.query(text, values) : super.query({ name, text, values });
    return answer.then(
      (result) => {
        this.noteAnswer();
        return result;
      },
      (error) => {
        this.noteAnswer();
        if (name === undefined || !isStalePlan(error)) throw error;
        statementNames.forget(name);
        // A transaction has failed with it, and is tried again by whoever runs it.
        if (this.getTransactionStatus() !== 'I') throw error;
        return this.answerInTime(text, values, false);
      },
    );
  }

  private noteAnswer(): void {
    this.unanswered--;
    this.expectAnswerWithin(this.unanswered > 0 ? LONGEST_ANSWER_MILLISECONDS : Number.POSITIVE_INFINITY);
  }

  private expectAnswerWithin(milliseconds: number): void {
    this.latestAnswer = this.isPatient ? Number.POSITIVE_INFINITY : performance.now() + milliseconds;
  }

  get isSilent(): boolean {
    return performance.now() > this.latestAnswer;
  }

  /** Ends the connection at once, without a word to the server. */
  drop(): void {
    const { stream } = (this as unknown as { connection: { stream: { destroy: (error: Error) => void } } }).connection;
    stream.destroy(new Error(NO_ANSWER));
  }

  giveUp(): void {
    this.emit('silent');
    this.drop();
  }
}

const connected = new Set<DeckhandClient>();

/** All connections are looked at ten times a second: a timer for each statement would cost more. */
setInterval(() => {
  const silent = [...connected].filter(({ isSilent }) => isSilent);
  if (silent.length === 0) return;
  // After one more turn of the event loop: where it was blocked, the answer may have arrived and not been read.
  setImmediate(() => {
    for (const client of silent) if (client.isSilent) client.giveUp();
  });
}, 100).unref();

/** What the pool does not do by itself when connections are lost. */
export function replaceLost(pool: pg.Pool): void {
  dropIdleAfterSilence(pool);
  releaseLost(pool);
}

/** After one connection went silent, the idle ones are dropped too: each would cost a request the same wait. */
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
 * Kysely keeps a connection on which `begin`, `commit` or `rollback` fails: each transaction that loses its connection would
 * cost the pool a place for ever.
 */
function releaseLost(pool: pg.Pool): void {
  const held = new Set<unknown>();
  pool.on('acquire', (client) => held.add(client));
  pool.on('release', (_error, client) => held.delete(client));
  pool.on('connect', (client) => {
    client.once('end', () => {
      if (!held.has(client)) return;
      client.release(true);
      // Whoever held it may still release it, which pg allows only once.
      client.release = () => undefined;
    });
  });
}
