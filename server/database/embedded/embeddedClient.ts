import { type messages, protocol, types } from '@electric-sql/pglite';
import type { PGlite as KyselyClient } from 'kysely';
import { isStalePlan, statementNames } from '../preparedStatements.ts';
import { traceStatement } from '../statementSpan.ts';
import { parseTimestamp } from '../timestamp.ts';
import { type Column, countAffected, findError, readResponse } from './embeddedResponse.ts';
import { type Engine, EngineCrash } from './engine.ts';
import { joined } from './pglite.js';

type Guards = {
  /** Called before a statement that may write; throws to refuse it. */
  beforeWrite?: () => void;
  /** Called when the database has crashed while the process still runs. */
  giveUp?: (reason: string) => void;
};

/** The description of a prepared statement. */
type Statement = { isWrite: boolean; serializers: (types.Serializer | undefined)[]; columns: Column[] };

const { serialize } = protocol;
const NO_NAME = '';

/** Includes row locks, which also write. */
const WRITES = /\b(insert|update|delete|merge|truncate|create|alter|drop|vacuum)\b/i;

/** Dates and timestamps without time zone stay text; a timestamptz becomes a Date. */
const PARSERS = {
  [types.DATE]: (text: string) => text,
  [types.TIMESTAMP]: (text: string) => text,
  [types.TIMESTAMPTZ]: parseTimestamp,
};

/** A client of an open database. */
export async function openEmbedded(engine: Engine, guards: Guards = {}): Promise<EmbeddedClient> {
  const client = new EmbeddedClient(engine, guards);
  await client.learnArrays();
  return client;
}

/**
 * The embedded database for Kysely, with one caller at a time. Statements with values are prepared; PGlite's own `query`
 * parses, plans and describes each statement every time, which takes much longer than running a short one.
 */
export class EmbeddedClient implements KyselyClient {
  readonly ready = true;
  readonly waitReady = Promise.resolve();
  closed = false;
  private readonly engine: Engine;
  private readonly guards: Guards;
  private readonly prepared = new Map<string, Statement>();
  private readonly serializers: Record<number, types.Serializer> = { ...types.serializers };
  private readonly parsers: Record<number, types.Parser> = { ...types.parsers, ...PARSERS };
  private isInTransaction = false;

  constructor(engine: Engine, guards: Guards = {}) {
    this.engine = engine;
    this.guards = guards;
  }

  query<Row>(text: string, values: readonly unknown[] = []) {
    return traceStatement(text, () => this.respond<Row>(text, values));
  }

  private async respond<Row>(text: string, values: readonly unknown[]) {
    const name = values.length > 0 ? statementNames.of(text) : undefined;
    if (name === undefined) return this.run<Row>(NO_NAME, text, values);
    try {
      return await this.run<Row>(name, text, values);
    } catch (error) {
      if (!isStalePlan(error)) throw error;
      statementNames.forget(name);
      // Inside a transaction, which has failed with it, the retry is up to `transact`.
      if (this.isInTransaction) throw error;
      return this.run<Row>(NO_NAME, text, values);
    }
  }

  async transaction<Result>(work: (transaction: EmbeddedClient) => Promise<Result>): Promise<Result> {
    await this.control('begin');
    try {
      const result = await work(this);
      await this.control('commit');
      return result;
    } catch (error) {
      await this.rollback();
      throw error;
    }
  }

  async rollback(): Promise<void> {
    await this.control('rollback');
  }

  private control(text: 'begin' | 'commit' | 'rollback') {
    return traceStatement(text, () => this.exchange([serialize.query(text)]));
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.engine.close();
  }

  private async run<Row>(name: string, text: string, values: readonly unknown[]) {
    const statement = this.prepared.get(name) ?? (await this.prepare(name, text));
    if (statement.isWrite) this.guards.beforeWrite?.();
    const texts = values.map((value, at) => toText(value, statement.serializers[at]));
    const bind = serialize.bind({ statement: name, values: texts });
    const response = await this.exchange([bind, serialize.execute()], statement.columns);
    return { rows: response.rows as Row[], fields: statement.columns, affectedRows: countAffected(response) };
  }

  private async prepare(name: string, text: string): Promise<Statement> {
    const response = await this.exchange([serialize.parse({ name, text }), serialize.describe({ type: 'S', name })]);
    const [parameters, row] = response.messages as [
      messages.ParameterDescriptionMessage,
      messages.RowDescriptionMessage?,
    ];
    const statement = {
      isWrite: WRITES.test(text),
      serializers: parameters.dataTypeIDs.map((type) => this.serializers[type]),
      columns: (row?.fields ?? []).map(({ name, dataTypeID }) => ({
        name,
        dataTypeID,
        parse: this.parsers[dataTypeID],
      })),
    };
    if (name !== NO_NAME) this.prepared.set(name, statement);
    return statement;
  }

  /** Sends messages followed by a Sync, which commits them outside a transaction. */
  private async exchange(messages: Uint8Array[], columns: Column[] = []) {
    try {
      const { sent, synced } = await this.engine.exchange(joined(messages));
      // The last message says whether a transaction is open.
      this.isInTransaction = synced.at(-1) !== IDLE;
      const [response, end] = [sent, synced].map((bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
      const error = findError(response as Buffer) ?? findError(end as Buffer);
      if (error) throw error;
      return readResponse(response as Buffer, columns);
    } catch (error) {
      // A statement behind the end of the database is no crash.
      if (isLost(error) && !this.closed) (this.guards.giveUp ?? endProcess)((error as Error).message);
      throw error;
    }
  }

  /** Arrays are written and read by their elements. */
  async learnArrays(): Promise<void> {
    const { rows } = await this.query<{ oid: number; typarray: number }>(
      'select oid::int, typarray::int from pg_type where typarray <> 0',
    );
    for (const { oid, typarray } of rows) {
      this.serializers[typarray] = (value) => types.arraySerializer(value, this.serializers[oid], typarray);
      this.parsers[typarray] = (text) => types.arrayParser(text, this.parsers[oid] as types.Parser, typarray);
    }
  }
}

const IDLE = 'I'.charCodeAt(0);

function toText(value: unknown, serializer: types.Serializer | undefined): string | null {
  if (value === null || value === undefined) return null;
  return serializer ? serializer(value) : String(value);
}

/** Errors after which the database has crashed, and no further call returns. */
const isLost = (error: unknown) =>
  error instanceof EngineCrash ||
  error instanceof WebAssembly.RuntimeError ||
  /^(PANIC|FATAL)$/.test((error as { severity?: string } | undefined)?.severity ?? '');

function endProcess(reason: string): void {
  console.error(
    `Deckhand ends: the embedded database has crashed (${reason}). No acknowledged write is lost. Start it again.`,
  );
  process.exit(1);
}
