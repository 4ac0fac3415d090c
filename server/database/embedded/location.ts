import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';

export const embeddedDirectory = (dataDirectory: string) => join(resolve(dataDirectory), 'database');

/** A `DATA_DIR` in memory, for tests; the path of a tar archive to load may follow. */
export const IN_MEMORY = 'memory://';
export const isInMemory = (directory: string) =>
  directory === IN_MEMORY || (directory.startsWith(IN_MEMORY) && existsSync(directory.slice(IN_MEMORY.length)));

/** A migrated database without rows, which only the package and the image have: a first start needs no migrations. */
export const MIGRATED = join(import.meta.dirname, 'migrated.tar.zst');
