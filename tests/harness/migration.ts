import type { Migration } from '@mikro-orm/migrations';
import { sql } from 'kysely';
import { type Db, query } from '../../server/database/query.ts';
import { testDatabase } from './service.ts';

type MigrationClass = new (...parts: ConstructorParameters<typeof Migration>) => Migration;

/** Runs a migration again, on the rows that a test made. */
export async function runMigration(Class: MigrationClass, db?: Db): Promise<void> {
  const database = await testDatabase();
  const orm = await database.orm();
  const migration = new Class(orm.em.getDriver() as never, orm.config);
  if (db) migration.setTransactionContext(db as never);
  await migration.up();
  for (const statement of migration.getQueries()) await query(db ?? database.db, sql.raw(String(statement)));
}
