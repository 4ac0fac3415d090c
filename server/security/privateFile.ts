import { rename, rm, writeFile } from 'node:fs/promises';
import { startFailure } from '../runtime/startFailure.ts';

/**
 * Writes a file of `DATA_DIR` that only its owner can read; one that exists is replaced. It gets its name when it is complete
 * and on the disk. A symbolic link in its place is replaced, too, not followed.
 */
export async function writePrivateFile(path: string, content: string): Promise<void> {
  try {
    await rm(`${path}.new`, { force: true });
    await writeFile(`${path}.new`, content, { mode: 0o600, flag: 'wx', flush: true });
    await rename(`${path}.new`, path);
  } catch (error) {
    throw startFailure(`DATA_DIR: ${path} can't be written: ${(error as Error).message}.`, error);
  }
}
