import { appendFile, cp, mkdir, readdir, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { connect } from '../../server/database/connect.ts';
import { IN_MEMORY } from '../../server/database/embedded/location.ts';
import { entities } from '../../server/database/entities.ts';
import { migrate } from '../../server/database/migrate.ts';
import { oneRow, query } from '../../server/database/query.ts';
import { makePrepared } from '../../server/database/snapshot.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { givenDirectory, removeProcesses } from '../harness/process.ts';

/** The migrated database that the test kit loads in a checkout. */

const DATABASE = join(import.meta.dirname, '../../server/database');

let cache: string;
let sources: string;
/** Migrating takes seconds: what becomes of the archive does not depend on what is in it. */
const makeFake = (_data: string, archive: string) => writeFile(archive, 'made');

beforeAll(async () => {
  cache = join(await givenDirectory(), 'cache');
  sources = await givenDirectory();
  await cp(join(DATABASE, 'migrations'), join(sources, 'migrations'), { recursive: true });
});
afterAll(removeProcesses);

describe('a prepared database', () => {
  it('is the same for all who make it at once, who leave nothing else behind', async () => {
    let making = 0;
    const makeBoth = async (data: string, archive: string) => {
      making++;
      await vi.waitUntil(() => making === 2);
      await makeFake(data, archive);
    };

    const made = await Promise.all([makePrepared(cache, sources, makeBoth), makePrepared(cache, sources, makeBoth)]);

    expect(made[0]).toMatch(/migrated-[0-9a-f]{16}\.tar\.zst$/);
    expect(made[1]).toBe(made[0]);
    expect((await readdir(cache)).map((name) => join(cache, name))).toEqual([made[0]]);
  });

  it('has all tables, no pending migrations, and no rows', async () => {
    const made = await makePrepared(join(await givenDirectory(), 'cache'), sources);
    const database = await connect(readSettings({ DATA_DIR: `${IN_MEMORY}${made}` }));

    const pending = await migrate(database);
    const counts = entities.map(({ meta }) => sql`(select count(*)::int from ${sql.table(meta.tableName)})`);
    const rows = await query(database.db, sql<{ count: number }>`select ${sql.join(counts, sql` + `)} as count`);
    await database.close();

    expect(pending).toEqual([]);
    expect(oneRow(rows).count).toBe(0);
  });

  it('is made once, and again after a change; an old one is removed then', async () => {
    const first = (await makePrepared(cache, sources, makeFake))!;
    const before = await stat(first);
    expect(await makePrepared(cache, sources, makeFake)).toBe(first);
    expect((await stat(first)).mtimeMs).toBe(before.mtimeMs);

    const [migration] = await readdir(join(sources, 'migrations'));
    await appendFile(join(sources, 'migrations', migration!), '\n');
    await utimes(first, new Date(0), new Date(0));
    await mkdir(join(cache, 'stage-of-another'));
    const second = await makePrepared(cache, sources, makeFake);

    expect(second).not.toBe(first);
    expect((await readdir(cache)).map((name) => join(cache, name)).toSorted()).toEqual(
      [join(cache, 'stage-of-another'), second].toSorted(),
    );
  });

  it('is undefined where nothing can be written', async () => {
    const file = join(await givenDirectory(), 'file');
    await writeFile(file, '');

    expect(await makePrepared(join(file, 'cache'), sources)).toBeUndefined();
  });
});
