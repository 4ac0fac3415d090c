/// <reference path="./pgUtils.d.ts" />
import type { Connection } from 'pg';
import { prepareValue } from 'pg/lib/utils.js';

/** What an execution needs of pg's connection. */
type Wire = {
  stream: { cork: () => void; uncork: () => void };
  parsedStatements: Record<string, string>;
  submittedNamedStatements: Record<string, string>;
  parse: (statement: { name: string; text: string }) => void;
  describe: (what: { type: 'S'; name: string }) => void;
  bind: (values: { statement: string; values: unknown[] }) => void;
  execute: (portal?: object) => void;
  sync: () => void;
};

export type Column = { name: string; parse: (text: string) => unknown };

/** The columns of the prepared statements of one connection, by the names of the statements. */
export type KnownColumns = Map<string, readonly Column[]>;

type Field = { name: string; dataTypeID: number };
type FindParser = (type: number) => Column['parse'];
type Result = { rows: Record<string, unknown>[]; command: string; rowCount: number };

/**
 * Executes a prepared statement. Unlike pg's own query, it asks for the columns only when it prepares the statement, and not at
 * each execution: PostgreSQL refuses to execute a statement whose columns have changed.
 */
export class NamedQuery {
  readonly name: string;
  readonly text: string;
  callback: (error: Error | null, result?: Result) => void;
  private readonly values: unknown[];
  private readonly known: KnownColumns;
  private readonly findParser: FindParser;
  private readonly result: Result = { rows: [], command: '', rowCount: 0 };
  private columns: readonly Column[] | undefined;
  private failure: Error | undefined;

  constructor(
    { name, text, values }: { name: string; text: string; values: readonly unknown[] },
    known: KnownColumns,
    findParser: FindParser,
    callback: NamedQuery['callback'],
  ) {
    this.name = name;
    this.text = text;
    this.values = values.map(prepareValue);
    this.known = known;
    this.findParser = findParser;
    this.callback = callback;
  }

  submit(connection: Connection): null {
    const { name, text } = this;
    const wire = connection as unknown as Wire;
    // Leaves as one packet.
    wire.stream.cork();
    try {
      if (!(name in wire.parsedStatements || name in wire.submittedNamedStatements)) {
        wire.parse({ name, text });
        wire.describe({ type: 'S', name });
        wire.submittedNamedStatements[name] = text;
      }
      wire.bind({ statement: name, values: this.values });
      wire.execute();
      wire.sync();
    } finally {
      wire.stream.uncork();
    }
    return null;
  }

  handleRowDescription({ fields }: { fields: Field[] }): void {
    const columns = fields.map(({ name, dataTypeID }) => ({ name, parse: this.findParser(dataTypeID) }));
    this.known.set(this.name, columns);
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    this.columns ??= this.known.get(this.name);
    if (!this.columns) {
      this.failure = new UnknownColumns();
      return;
    }
    const row: Record<string, unknown> = {};
    try {
      for (const [at, { name, parse }] of this.columns.entries()) {
        const text = fields[at] ?? null;
        row[name] = text === null ? null : parse(text);
      }
    } catch (error) {
      this.failure = error as Error;
    }
    this.result.rows.push(row);
  }

  handleCommandComplete({ text }: { text: string }): void {
    this.result.command = text.slice(0, text.indexOf(' '));
    this.result.rowCount = Number(text.slice(text.lastIndexOf(' ')));
  }

  handleReadyForQuery(): void {
    if (this.failure) this.callback(this.failure);
    else this.callback(null, this.result);
  }

  handleError(error: Error): void {
    this.callback(error);
  }

  handleEmptyQuery(): void {}
}

/** The execution that prepared the statement failed before its columns arrived: as if it was not prepared. */
class UnknownColumns extends Error {
  readonly code = '26000';
  constructor() {
    super('the columns of the prepared statement are not known');
  }
}
