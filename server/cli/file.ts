import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Writes a JSON file to the path in the first argument, or to the default one, and prints the path. */
export async function writeJson(usualPath: string, content: object): Promise<void> {
  const [path = usualPath] = process.argv.slice(2);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `${JSON.stringify(content, null, 2)}\n`);
  console.log(`Wrote ${path}`);
}
