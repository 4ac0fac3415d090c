import { existsSync } from 'node:fs';
import { PGliteDialect } from 'kysely';
import { emptyCluster, readArchive, unpackInto } from './archive.ts';
import { openEmbedded } from './embeddedClient.ts';
import { type Engine, openInThread } from './engine.ts';
import { refuseWriteOnFullDisk } from './fullDisk.ts';
import { embeddedDirectory, IN_MEMORY, isInMemory } from './location.ts';

/** Kysely's dialect for the embedded database, which the first statement opens unless it is open already. */
export async function embeddedDialect(DATA_DIR: string, engine?: Promise<Engine>): Promise<PGliteDialect> {
  if (isInMemory(DATA_DIR)) {
    const file = DATA_DIR.slice(IN_MEMORY.length);
    const archive = await (file ? readArchive(file) : emptyCluster());
    const { openInMemory } = await import('./localEngine.ts');
    return new PGliteDialect({ pglite: async () => openEmbedded(await openInMemory(archive)) });
  }

  const dataDir = embeddedDirectory(DATA_DIR);
  if (!existsSync(dataDir)) await unpackInto(dataDir);
  const beforeWrite = () => refuseWriteOnFullDisk(dataDir);
  return new PGliteDialect({
    pglite: async () => openEmbedded(await (engine ?? openInThread(dataDir)), { beforeWrite }),
  });
}
