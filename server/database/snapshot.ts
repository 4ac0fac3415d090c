import { createWriteStream, existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createZstdCompress } from 'node:zlib';
import { sql } from 'kysely';
import { packTar } from 'modern-tar/fs';
import { readSettings } from '../runtime/env.ts';
import { connect } from './connect.ts';
import { emptyCluster, unpack } from './embedded/archive.ts';
import { embeddedDirectory, MIGRATED } from './embedded/location.ts';
import { FINISHED } from './embedded/opening.ts';
import { CACHE, preparedName } from './embedded/preparedArchive.ts';
import { migrate } from './migrate.ts';
import { query } from './query.ts';

/** Creates an embedded database without tables, even if there is a prepared one. */
export async function createWithoutTables(DATA_DIR: string): Promise<void> {
  await mkdir(DATA_DIR, { recursive: true, mode: 0o700 });
  await unpack(await emptyCluster(), embeddedDirectory(DATA_DIR));
  await writeFile(join(embeddedDirectory(DATA_DIR), FINISHED), '');
}

/** Creates an embedded database with all tables and no rows, and a tar archive of it, compressed if its name ends in `.zst`. */
export async function makeMigrated(DATA_DIR: string, archive: string): Promise<void> {
  await createWithoutTables(DATA_DIR);
  const database = await connect(readSettings({ DATA_DIR }));
  await migrate(database);
  // Each database of the archive has its own.
  await query(database.db, sql`delete from incarnations`);
  await database.close();

  const files = packTar(embeddedDirectory(DATA_DIR), { filter: (path) => basename(path) !== FINISHED });
  const compressed = archive.endsWith('.zst') ? [createZstdCompress()] : [];
  await pipeline([files, ...compressed, createWriteStream(archive)]);
  // Opening the database lets only this user read new files; others may use the archive.
  await chmod(archive, 0o644);
}

/**
 * The archive of a migrated database. A checkout makes it once, and again when its files changed; undefined where nothing can
 * be written.
 */
export async function makePrepared(
  cache = CACHE,
  sources = import.meta.dirname,
  make = makeMigrated,
): Promise<string | undefined> {
  if (existsSync(MIGRATED)) return MIGRATED;
  const name = await preparedName(sources);
  const archive = join(cache, name);
  if (existsSync(archive)) return archive;

  const stage = await makeStage(cache);
  if (stage === undefined) return undefined;
  try {
    await make(join(stage, 'data'), join(stage, name));
    // Several may make it at once: each is complete, and the last one stays.
    await rename(join(stage, name), archive);
  } finally {
    await rm(stage, { recursive: true, force: true });
  }
  await removeOld(cache, [name]);
  return archive;
}

const makeStage = (cache: string) =>
  mkdir(cache, { recursive: true }).then(
    () => mkdtemp(join(cache, 'stage-')),
    () => undefined,
  );

const DAY_MILLISECONDS = 24 * 3_600_000;

/** Archives of earlier versions, and what interrupted processes left. A recent one may be in use. */
export async function removeOld(cache: string, current: string[], days = 1): Promise<void> {
  for (const name of await readdir(cache)) {
    const path = join(cache, name);
    const { mtimeMs = Date.now() } = (await stat(path).catch(() => undefined)) ?? {};
    const isOld = !current.includes(name) && Date.now() - mtimeMs > days * DAY_MILLISECONDS;
    if (isOld) await rm(path, { recursive: true, force: true });
  }
}
