import { mkdirSync, writeFile } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip, zstdDecompress } from 'node:zlib';
import { findPrepared } from './preparedArchive.ts';

/** The directory of an embedded database as a tar archive. PGlite's own `loadDataDir` takes several times as long. */
export type Archive = { name: string; contents: Buffer | undefined }[];

/** Reads an archive with names below 100 characters; it may be compressed with gzip or Zstandard. */
export async function readArchive(file: string | Blob): Promise<Archive> {
  const packed = typeof file === 'string' ? await readFile(file) : Buffer.from(await file.arrayBuffer());
  const bytes = await unpackers[packed.readUInt16BE(0)]?.(packed, LARGE_PIECES);
  return [...entriesOf(bytes ?? packed)];
}

/** A cluster without tables, from PGlite: creating one takes five seconds. */
export async function emptyCluster(): Promise<Archive> {
  const { dataDir } = await import('@electric-sql/pglite-prepopulatedfs');
  return readArchive(await dataDir());
}

/** By the first two bytes of the file. They run in another thread, so that modules load meanwhile. */
const unpackers: Record<number, (packed: Buffer, options: { chunkSize: number }) => Promise<Buffer>> = {
  8075: promisify(gunzip),
  10421: promisify(zstdDecompress),
};
const LARGE_PIECES = { chunkSize: 8 * 1024 * 1024 };

const BLOCK = 512;
const DIRECTORY = '5';

function* entriesOf(bytes: Buffer): Generator<Archive[number]> {
  for (let at = 0; bytes[at]; ) {
    const text = (from: number, to: number) => bytes.toString('latin1', at + from, at + to).split('\0', 1)[0]!;
    // Names are relative to the directory: `./base/1`, `/base/1` or `base/1`.
    const name = text(0, 100).replace(/^\.?\/+|\/+$/g, '');
    const size = Number.parseInt(text(124, 136), 8);
    const start = at + BLOCK;
    if (text(156, 157) !== DIRECTORY) yield { name, contents: bytes.subarray(start, start + size) };
    else if (name !== '' && name !== '.') yield { name, contents: undefined };
    at = start + Math.ceil(size / BLOCK) * BLOCK;
  }
}

/** Fills a new directory with a database: a migrated one if it was prepared. */
export async function unpackInto(directory: string): Promise<void> {
  const prepared = await findPrepared();
  await unpack(await (prepared ? readArchive(prepared) : emptyCluster()), directory);
}

/** Writes an archive to a new directory that only this user reads. Files are written in other threads, while modules load. */
export async function unpack(archive: Archive, directory: string): Promise<void> {
  mkdirSync(directory, { mode: 0o700 });
  for (const { name, contents } of archive) if (!contents) mkdirSync(join(directory, name), { mode: 0o700 });
  const write = promisify(writeFile);
  await Promise.all(
    archive.map(({ name, contents }) => contents && write(join(directory, name), contents, { mode: 0o600 })),
  );
}
