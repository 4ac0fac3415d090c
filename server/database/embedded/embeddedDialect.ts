import { existsSync } from 'node:fs';
import { PGliteDialect } from 'kysely';
import { type Archive, ArchiveInMemory, readArchive, unpack } from './archive.ts';
import { openEmbedded } from './embeddedClient.ts';
import { optimizeLater } from './engineCode.ts';
import { refuseWriteOnFullDisk } from './fullDisk.ts';
import { embeddedDirectory, IN_MEMORY, isInMemory, MIGRATED } from './location.ts';

/** Kysely's dialect for the embedded database, which the first statement opens. */
export async function embeddedDialect(DATA_DIR: string): Promise<PGliteDialect> {
  if (isInMemory(DATA_DIR)) {
    const file = DATA_DIR.slice(IN_MEMORY.length);
    const archive = await (file ? readArchive(file) : emptyCluster());
    return new PGliteDialect({ pglite: () => openEmbedded({ fs: new ArchiveInMemory(archive) }) });
  }

  optimizeLater();
  const dataDir = embeddedDirectory(DATA_DIR);
  if (!existsSync(dataDir)) unpack(await (existsSync(MIGRATED) ? readArchive(MIGRATED) : emptyCluster()), dataDir);
  const beforeWrite = () => refuseWriteOnFullDisk(dataDir);
  return new PGliteDialect({ pglite: () => openEmbedded({ dataDir }, { beforeWrite }) });
}

/** A prepared cluster from PGlite: creating one takes five seconds. */
async function emptyCluster(): Promise<Archive> {
  const { dataDir } = await import('@electric-sql/pglite-prepopulatedfs');
  return readArchive(await dataDir());
}
