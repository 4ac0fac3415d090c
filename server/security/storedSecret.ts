import { randomBytes } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SHORTEST_SECRET } from '../env.ts';
import { startFailure } from '../startFailure.ts';

/** Its file in `DATA_DIR`. */
export const STORED_SECRET = 'jwt-secret';

export async function readStoredSecret(directory: string): Promise<string | undefined> {
  const kept = await readFile(join(directory, STORED_SECRET), 'utf8').catch(() => '');
  return kept.length >= SHORTEST_SECRET ? kept : undefined;
}

/** The signing secret for the embedded database: generated once, stored next to the data. */
export async function readOrCreateSecret(directory: string): Promise<string> {
  const path = join(directory, STORED_SECRET);
  const kept = await readStoredSecret(directory);
  if (kept !== undefined) return kept;

  const made = randomBytes(48).toString('base64url');
  try {
    // Written to a temporary file first, so that an interrupted start leaves no partial secret.
    await writeFile(`${path}.new`, made, { mode: 0o600 });
    await rename(`${path}.new`, path);
    return made;
  } catch (error) {
    throw startFailure(`DATA_DIR: ${path} can't be written: ${(error as Error).message}.`, error);
  }
}
