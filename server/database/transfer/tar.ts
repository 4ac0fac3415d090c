/** The parts of the tar format (ustar) that a backup needs: directories and files with short names. */

export type Entry = { name: string; isDirectory: boolean; size: number };

const BLOCK = 512;
const LONGEST_NAME = 100;

/** The bytes before the content of an entry. */
export function tarHeader({ name, isDirectory, size }: Entry): Buffer {
  if (Buffer.byteLength(name) > LONGEST_NAME) throw new Error(`The name is too long: ${name}`);
  const header = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, length: number) =>
    header.write(value.toString(8).padStart(length - 1, '0'), at, 'latin1');
  header.write(name, 0);
  octal(isDirectory ? 0o700 : 0o600, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(0, 136, 12);
  header.write(isDirectory ? DIRECTORY : FILE, 156);
  header.write('ustar\x0000', 257, 'latin1');
  octal(checksumOf(header), CHECKSUM_AT, 7);
  header.write(' ', CHECKSUM_AT + 7);
  return header;
}

/** The bytes after the content of an entry. */
export const tarPadding = (size: number) => Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);

export const TAR_END = Buffer.alloc(2 * BLOCK);

/** Reads an archive; `take` gets each entry with its content, which it must read. Throws if the archive is incomplete. */
export async function readTar(
  chunks: AsyncIterable<Buffer>,
  take: (entry: Entry, content: AsyncIterable<Buffer>) => Promise<void>,
): Promise<void> {
  const bytes = new Bytes(chunks);
  for (;;) {
    const header = await bytes.read(BLOCK);
    if (header.every((byte) => byte === 0)) break;
    const entry = readHeader(header);
    await take(entry, bytes.parts(entry.size));
    await bytes.read(tarPadding(entry.size).length);
  }
  // To the end, where the checksum of the compression is.
  await bytes.skipAll();
}

const DIRECTORY = '5';
const FILE = '0';
const CHECKSUM_AT = 148;

function readHeader(header: Buffer): Entry {
  const text = (at: number, length: number) => header.toString('utf8', at, at + length).replace(/\0.*$/s, '');
  const octal = (at: number, length: number) => Number.parseInt(text(at, length), 8);
  const type = text(156, 1);
  if (octal(CHECKSUM_AT, 8) !== checksumOf(header) || ![DIRECTORY, FILE].includes(type)) {
    throw new Error('it is not a backup');
  }
  return { name: text(0, LONGEST_NAME), isDirectory: type === DIRECTORY, size: octal(124, 12) };
}

/** The sum of all bytes, with spaces in the place of the sum itself. */
function checksumOf(header: Buffer): number {
  const isOwn = (at: number) => at >= CHECKSUM_AT && at < CHECKSUM_AT + 8;
  return header.reduce((sum, byte, at) => sum + (isOwn(at) ? 32 : byte), 0);
}

/** Reads chunks of any size in pieces of wanted sizes. */
class Bytes {
  private readonly chunks: AsyncIterator<Buffer>;
  private rest: Buffer = Buffer.alloc(0);

  constructor(chunks: AsyncIterable<Buffer>) {
    this.chunks = chunks[Symbol.asyncIterator]();
  }

  async read(size: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for await (const part of this.parts(size)) parts.push(part);
    return Buffer.concat(parts);
  }

  async *parts(size: number): AsyncGenerator<Buffer> {
    for (let left = size; left > 0; ) {
      if (this.rest.length === 0) {
        const { done, value } = await this.chunks.next();
        if (done) throw new Error('it is incomplete');
        this.rest = value;
      }
      const part = this.rest.subarray(0, left);
      this.rest = this.rest.subarray(part.length);
      left -= part.length;
      yield part;
    }
  }

  async skipAll(): Promise<void> {
    while (!(await this.chunks.next()).done);
  }
}
