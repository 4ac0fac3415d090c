import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { MIGRATED } from './location.ts';

const DATABASE = join(import.meta.dirname, '..');
const ROOT = join(DATABASE, '../..');

/** Where a checkout keeps what it prepared. */
export const CACHE = join(ROOT, 'node_modules/.cache/deckhand');

/** The archive of a migrated database, if there is one: that of the package, or one that fits the files of the checkout. */
export async function findPrepared(): Promise<string | undefined> {
  if (existsSync(MIGRATED)) return MIGRATED;
  if (!existsSync(CACHE)) return undefined;
  const archive = join(CACHE, await preparedName());
  return existsSync(archive) ? archive : undefined;
}

/** Its name in a checkout, with a hash of all files that the tables may depend on. */
export async function preparedName(sources = DATABASE): Promise<string> {
  const files = await readdir(sources, { recursive: true, withFileTypes: true });
  const paths = files.filter((file) => file.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  const hash = createHash('sha256');
  // The manifest has the version of the database.
  for (const path of [join(ROOT, 'package.json'), ...paths.toSorted()]) {
    hash.update(JSON.stringify([relative(sources, path), await readFile(path, 'utf8')]));
  }
  return `migrated-${hash.digest('hex').slice(0, 16)}.tar.zst`;
}
