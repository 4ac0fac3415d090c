import { MemoryFS, PGlite } from '@electric-sql/pglite';
import type { Archive } from './archive.ts';
import type { Engine } from './engine.ts';
import { exchange, openPglite } from './pglite.js';

/** Opens a database in the memory of this thread, with the files of an archive. */
export async function openInMemory(archive: Archive): Promise<Engine> {
  const engine = await openPglite({ fs: new ArchiveInMemory(archive) });
  return { exchange: (messages) => exchange(engine, messages), close: () => engine.close() };
}

/** A file system in memory for PGlite, with the files of an archive. Their bytes are not copied: use an archive once. */
class ArchiveInMemory extends MemoryFS {
  private readonly archive: Archive;

  constructor(archive: Archive) {
    super();
    this.archive = archive;
  }

  override async initialSyncFs(): Promise<void> {
    const { FS } = this.pg!.Module;
    FS.mkdirTree(PGlite.paths.PGDATA);
    for (const { name, contents } of this.archive) {
      const path = `${PGlite.paths.PGDATA}/${name}`;
      if (contents) FS.writeFile(path, contents, { canOwn: true });
      else FS.mkdir(path);
    }
  }
}
