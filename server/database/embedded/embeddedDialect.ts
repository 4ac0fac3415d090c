import { existsSync } from 'node:fs';
import { PGliteDialect } from 'kysely';
import { ArchiveInMemory, emptyCluster, readArchive, unpack } from './archive.ts';
import { openEmbedded } from './embeddedClient.ts';
import { optimizeLater } from './engineCode.ts';
import { refuseWriteOnFullDisk } from './fullDisk.ts';
import { embeddedDirectory, IN_MEMORY, isInMemory } from './location.ts';
import { findPrepared } from './preparedArchive.ts';

/** Kysely's dialect for the embedded database, which the first statement opens. */
export async function embeddedDialect(DATA_DIR: string): Promise<PGliteDialect> {
  if (isInMemory(DATA_DIR)) {
    const file = DATA_DIR.slice(IN_MEMORY.length);
    const archive = await (file ? readArchive(file) : emptyCluster());
    return new PGliteDialect({ pglite: () => openEmbedded({ fs: new ArchiveInMemory(archive) }) });
  }

  optimizeLater();
  const dataDir = embeddedDirectory(DATA_DIR);
  if (!existsSync(dataDir)) {
    const prepared = await findPrepared();
    await unpack(await (prepared ? readArchive(prepared) : emptyCluster()), dataDir);
  }
  const beforeWrite = () => refuseWriteOnFullDisk(dataDir);
  return new PGliteDialect({ pglite: () => openEmbedded({ dataDir }, { beforeWrite }) });
}
