import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** For programs that write one file of JSON: the one that they are given, or the usual one. They say which. */
export async function writeJson(usualPath: string, content: object): Promise<void> {
  const [path = usualPath] = process.argv.slice(2);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `${JSON.stringify(content, null, 2)}\n`);
  console.log(`Wrote ${path}`);
}
