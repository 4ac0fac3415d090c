import { statSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { type Db, query } from '../query.ts';
import { damaged } from './damage.ts';

/** Refuses a database whose tables or indexes have lost their files, or all of their contents. Otherwise, calls would fail later. */
export async function refuseMissingFiles(db: Db, dataDirectory: string, directory: string): Promise<void> {
  const files = await query(
    db,
    sql<{ name: string; path: string; pages: number }>`
      select relname as name, pg_relation_filepath(oid) as path, relpages as pages from pg_class
      where relkind in ('r', 'i', 't', 'S') and relpersistence = 'p' and relfilenode <> 0`,
  );
  for (const { name, path, pages } of files) {
    const size = statSync(join(directory, path), { throwIfNoEntry: false })?.size;
    if (size === undefined) throw damaged(dataDirectory, `the file of ${name} is missing`);
    if (size === 0 && pages > 0) throw damaged(dataDirectory, `the file of ${name} is empty`);
  }
}
