import type { MikroORM } from '@mikro-orm/core';
import { sql } from 'kysely';
import { counted } from '../../runtime/count.ts';
import { startFailure } from '../../runtime/startFailure.ts';
import type { Database } from '../connect.ts';
import { beginRestored } from '../incarnation.ts';
import { executedMigrations, migrate, underMigrationLock } from '../migrate.ts';
import { type Db, query } from '../query.ts';
import { withoutForeignKeys } from './foreignKeys.ts';
import {
  type Content,
  contentOf,
  continueSequences,
  describeTable,
  insertPage,
  readPages,
  type TableText,
  useSameText,
} from './tableText.ts';

/** The number of rows of each table. */
export type Copied = Record<string, number>;

type OnProgress = (progress: { table: string; done: number; total: number }) => void;

/**
 * Copies all rows to an empty database, in one transaction there. It holds the migration lock: a node that starts meanwhile
 * waits. Events get a new incarnation, and webhooks are paused unless the copy is a move.
 */
export async function copyDatabase(
  source: Database,
  target: Database,
  onProgress: OnProgress = () => {},
  options?: { keepsWebhooks?: boolean },
): Promise<Copied> {
  const tables = tablesOf(await target.orm());
  await requireEmpty(target.db, tables);
  await migrate(target);
  await requireSameVersion(source.db, target.db);

  return source.db.transaction().execute(async (from) => {
    await query(from, sql`set transaction isolation level repeatable read, read only`);
    await useSameText(from);
    return target.withoutTimeouts((target) =>
      underMigrationLock(target, undefined, async (to) => {
        await useSameText(to);
        // Stops running nodes from adding rows.
        await query(to, sql`lock table ${sql.join(tables.map((name) => sql.table(name)))} in access exclusive mode`);
        await requireEmpty(to, tables);
        const copied = await copyTables(from, to, tables, onProgress);
        await beginRestored(to, options);
        return copied;
      }),
    );
  });
}

/** The tables of the entities; the migrator fills its own. */
const tablesOf = (orm: MikroORM) =>
  [...orm.getMetadata().getAll().values()].map(({ tableName }) => tableName).toSorted();

async function copyTables(from: Db, to: Db, names: string[], onProgress: OnProgress): Promise<Copied> {
  const tables: { table: TableText; content: Content }[] = [];
  for (const name of names) {
    const table = await describeTable(from, name);
    tables.push({ table, content: await contentOf(from, table) });
  }

  const total = tables.reduce((sum, { content }) => sum + content.rows, 0);
  let done = 0;
  await withoutForeignKeys(to, names, async () => {
    for (const { table, content } of tables) {
      for await (const rows of readPages(from, table, rowsPerPage(content))) {
        await insertPage(to, table, rows);
        done += rows.length;
        onProgress({ table: table.name, done, total });
      }
      await requireSameContent(to, table, content);
    }
  });
  // Last, since a rollback does not undo it.
  for (const { table } of tables) await continueSequences(from, to, table);
  // Fresh statistics, so that the first requests are planned well.
  for (const name of names) await query(to, sql`analyze ${sql.table(name)}`);
  return Object.fromEntries(tables.map(({ table, content }) => [table.name, content.rows]));
}

/** Bounds the memory of a page, even with large rows. */
const rowsPerPage = ({ largestRow }: Content) =>
  Math.max(1, Math.min(MOST_ROWS, Math.floor(LARGEST_PAGE_BYTES / Math.max(1, largestRow))));
const MOST_ROWS = 1000;
const LARGEST_PAGE_BYTES = 8 * 1024 * 1024;

async function requireEmpty(db: Db, tables: string[]): Promise<void> {
  const existing = await query(
    db,
    sql<{
      name: string;
    }>`select name from unnest(${tables}::text[]) as name where to_regclass(quote_ident(name)) is not null`,
  );
  for (const { name } of existing) {
    if ((await query(db, sql`select from ${sql.table(name)} limit 1`)).length === 0) continue;
    throw startFailure(`DATABASE_URL: the database is not empty: ${name} has rows. Choose an empty one.`);
  }
}

/** Both must have the same tables; the source is not changed, so it can't be migrated here. */
async function requireSameVersion(source: Db, target: Db): Promise<void> {
  const [executed, expected] = [await executedMigrations(source), await executedMigrations(target)];
  if (expected?.every((name) => executed?.includes(name))) return;
  throw startFailure(
    'DATA_DIR: its tables are those of an earlier version. Bring them up to date first: DATABASE_URL= npx deckhand migrate',
  );
}

async function requireSameContent(db: Db, table: TableText, { rows, checksum }: Content): Promise<void> {
  const copied = await contentOf(db, table);
  if (copied.rows === rows && copied.checksum === checksum) return;
  throw startFailure(
    `The copy of ${table.name} has ${counted(copied.rows, 'row')} instead of ${rows}, or other values. Nothing was copied.`,
  );
}
