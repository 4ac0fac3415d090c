import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { appPage } from '../../server/web/appPage.ts';
import { BUILT, BUILT_ADDRESS, readBuild } from '../../server/web/built.ts';

/** The page as a service sends it, and each of its files. */
export async function readPage(url: string): Promise<Record<string, string>> {
  const files = readBuild()!.files.filter((name) => name !== 'client.js');
  const read = async (path: string) => (await fetch(url + path)).text();
  const contents = files.map(async (name) => [name, await read(`${BUILT_ADDRESS}/${name}`)] as const);
  return { page: await read('/'), ...Object.fromEntries(await Promise.all(contents)) };
}

/** The same of this checkout. */
export function filesOfPage(): Record<string, string> {
  const build = readBuild()!;
  const files = build.files.filter((name) => name !== 'client.js');
  const contents = files.map((name) => [name, readFileSync(join(BUILT, name), 'utf8')] as const);
  return { page: appPage(build), ...Object.fromEntries(contents) };
}
