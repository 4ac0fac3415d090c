import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SHORTEST_SECRET } from '../runtime/env.ts';
import { writePrivateFile } from './privateFile.ts';

/** Its file in `DATA_DIR`. */
export const STORED_SECRET = 'jwt-secret';

export async function readStoredSecret(directory: string): Promise<string | undefined> {
  const kept = await readFile(join(directory, STORED_SECRET), 'utf8').catch(() => '');
  return kept.length >= SHORTEST_SECRET ? kept : undefined;
}

/** The signing secret for the embedded database: generated once, stored next to the data. */
export async function readOrCreateSecret(directory: string): Promise<string> {
  const kept = await readStoredSecret(directory);
  if (kept !== undefined) return kept;

  const made = randomBytes(48).toString('base64url');
  await writePrivateFile(join(directory, STORED_SECRET), made);
  return made;
}
