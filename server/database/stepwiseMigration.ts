import { Migration } from '@mikro-orm/migrations';
import { retryLocked, SET_SHORT_LOCK_TIMEOUT } from './lockRetry.ts';

/**
 * A migration that runs outside a transaction, in short steps: for data, indexes and constraints of existing tables. After a
 * failure it runs again from its beginning, so each step must do nothing if it is done already.
 */
export abstract class StepwiseMigration extends Migration {
  abstract override up(): Promise<void>;

  override isTransactional(): boolean {
    return false;
  }

  /** Runs statements in one short transaction, on one existing table: requests wait for its locks. */
  protected async inTransaction(...statements: string[]): Promise<void> {
    await this.transact(async (run) => {
      for (const statement of statements) await run(statement);
    });
  }

  /** Creates a table with its indexes and constraints, in one transaction. */
  protected async createTable(table: string, ...statements: string[]): Promise<void> {
    const found = await this.execute('select from pg_class where oid = to_regclass(?)', [table]);
    if (found.length === 0) await this.inTransaction(...statements);
  }

  /**
   * Adds the constraint for new rows first, and then checks the existing rows, which blocks no request. Replaces one of the same
   * name.
   */
  protected async addConstraint(table: string, name: string, definition: string): Promise<void> {
    await this.addForNewRows(table, name, definition);
    await this.checkExistingRows(table, name);
  }

  protected async addForNewRows(table: string, name: string, definition: string): Promise<void> {
    await this.inTransaction(
      `alter table "${table}" drop constraint if exists "${name}", add constraint "${name}" ${definition} not valid`,
    );
  }

  protected async checkExistingRows(table: string, name: string): Promise<void> {
    await this.execute(`alter table "${table}" validate constraint "${name}"`).catch((error) => {
      if (!VIOLATIONS.includes(error.code)) throw error;
      const hint = 'npx deckhand database verify finds them and says what to do';
      throw new Error(`rows of ${table} violate ${name}: ${hint}`, { cause: error });
    });
  }

  /** Creates an index while requests write to its table: `createIndex('tags_name', 'on "tags" ("name")')`. */
  protected async createIndex(name: string, definition: string, { isUnique = false } = {}): Promise<void> {
    if (await this.hasIndex(name)) return;
    // An attempt that failed leaves an invalid index.
    await this.dropIndex(name);
    await this.execute(`create ${isUnique ? 'unique ' : ''}index ${this.concurrently} "${name}" ${definition}`);
  }

  /**
   * Creates a unique index. Requests may add duplicates until it exists: `removeDuplicates` runs again if it can't be created.
   */
  protected async createUniqueIndex(
    name: string,
    definition: string,
    removeDuplicates: () => Promise<void> = async () => undefined,
  ): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      if (await this.hasIndex(name)) return;
      await removeDuplicates();
      try {
        return await this.createIndex(name, definition, { isUnique: true });
      } catch (error) {
        if (attempt === MOST_ATTEMPTS || (error as { code?: string }).code !== UNIQUE_VIOLATION) throw error;
      }
    }
  }

  /** Adds a unique constraint; its index is built while requests write to the table. */
  protected async addUnique(table: string, name: string, columns: string): Promise<void> {
    const found = await this.execute('select from pg_constraint where conname = ? and conrelid = to_regclass(?)', [
      name,
      table,
    ]);
    if (found.length > 0) return;
    await this.createUniqueIndex(name, `on "${table}" ${columns}`);
    await this.inTransaction(`alter table "${table}" add constraint "${name}" unique using index "${name}"`);
  }

  protected async dropIndex(name: string): Promise<void> {
    await this.execute(`drop index ${this.concurrently} if exists "${name}"`);
  }

  /**
   * Rewrites rows in batches, a short transaction each: `rewrite` gets the first and last value of `key` in the batch. It must
   * leave rows alone that are written already, or that a request has changed since.
   */
  protected async inBatches(
    table: string,
    rewrite: (run: Run, first: number, last: number) => Promise<unknown>,
    { key = 'id', size = 500 } = {},
  ): Promise<void> {
    for (let last = 0; ; ) {
      const first = last + 1;
      const rows = await this.execute(
        `select max(key) as last from (select ${key} as key from "${table}" where ${key} >= ? order by ${key} limit ${size}) as batch`,
        [first],
      );
      const end = (rows as { last: number | null }[])[0]?.last;
      if (end == null) return;
      await this.transact((run) => rewrite(run, first, end));
      last = end;
    }
  }

  /** One short transaction; repeated if it gave up waiting for a lock. */
  protected async transact(work: (run: Run) => Promise<unknown>): Promise<void> {
    const runIn = (transaction: unknown) =>
      work((statement, values) => this.driver.execute(statement, values, 'all', transaction));
    if (this.ctx) return void (await runIn(this.ctx));
    await retryLocked(() =>
      this.driver.getConnection().transactional(async (transaction) => {
        await this.driver.execute(SET_SHORT_LOCK_TIMEOUT, [], 'run', transaction);
        await runIn(transaction);
      }),
    );
  }

  private async hasIndex(name: string): Promise<boolean> {
    const rows = await this.execute(`select from pg_index where indexrelid = to_regclass(?) and indisvalid`, [name]);
    return rows.length > 0;
  }

  /** Tests run migrations in a transaction, where indexes can't be built concurrently. */
  private get concurrently(): string {
    return this.ctx ? '' : 'concurrently';
  }
}

/** Runs a statement in the transaction of a step. */
// biome-ignore lint/suspicious/noExplicitAny: the rows of any statement
type Run = (statement: string, values?: unknown[]) => Promise<any[]>;

const UNIQUE_VIOLATION = '23505';
/** Of foreign keys and checks. */
const VIOLATIONS = ['23503', '23514'];
const MOST_ATTEMPTS = 10;
