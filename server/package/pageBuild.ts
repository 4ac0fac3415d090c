import { readFileSync } from 'node:fs';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { build, type Rolldown } from 'vite';
import { digestOf } from '../runtime/bundle.js';
import { BUILT, BUILT_ADDRESS, type PageBuild, readBuild } from '../web/built.ts';
import { bundleClient, chunksOf, licencesOf, onlyVersion } from './bundle.ts';
import { ROOT } from './tarball.ts';

const ENTRY = 'server/web/app/main.tsx';

/**
 * Builds the page for browsers, unless it is built from these sources. The files of the build before stay: a browser that has the
 * page of another version may still ask for them.
 */
export async function buildPages(): Promise<void> {
  const before = readBuild();
  if (before && isCurrent(before)) return;

  const { files, ...described } = await makeFiles();
  const kept = filesBefore(before, Object.keys(files));
  for (const [name, content] of Object.entries(files)) await write(name, content);
  await write('build.json', JSON.stringify({ ...described, files: Object.keys(files), before: kept }, null, 2));
  await removeOthers([...Object.keys(files), ...kept, 'build.json']);
}

function isCurrent({ sources, digest }: PageBuild): boolean {
  try {
    return digestOf(sources) === digest;
  } catch {
    // A source is gone.
    return false;
  }
}

/** If nothing changed in the files, those of the build before that one. */
export function filesBefore(before: Pick<PageBuild, 'files' | 'before'> | undefined, files: string[]): string[] {
  const replaced = before?.files.filter((name) => !files.includes(name)) ?? [];
  return (replaced.length > 0 ? replaced : (before?.before ?? [])).filter((name) => !files.includes(name));
}

async function makeFiles() {
  const [built, client] = await Promise.all([buildApp(), bundleClient(join(ROOT, 'client/client.ts'))]);
  const chunks = chunksOf([built]);
  const entry = chunks.find(({ isEntry }) => isEntry);
  if (!entry) throw new Error(`${ENTRY} was not built.`);
  const modules = chunks.flatMap(({ moduleIds }) => moduleIds);
  const styles = built.output.map(({ fileName }) => fileName).filter((name) => name.endsWith('.css'));
  const files: Record<string, string | Uint8Array> = {
    ...Object.fromEntries(built.output.map((part) => [part.fileName, 'code' in part ? part.code : part.source])),
    'client.js': `/*!\nMade from client/client.ts. It contains:\n\n${client.licences.trim()}\n*/\n${client.code}`,
    'licences.txt': await licencesOf(modules),
  };
  const sources = await sourcesOf([...modules, ...client.sources]);
  return {
    script: entry.fileName,
    /** The style sheets of the first view. Other pages load theirs when they open. */
    styles: styles.filter((name) => entry.viteMetadata?.importedCss.has(name)),
    preloaded: entry.imports,
    sources,
    digest: digestOf(sources),
    files,
  };
}

async function buildApp(): Promise<Rolldown.RolldownOutput> {
  return (await build({
    root: ROOT,
    base: `${BUILT_ADDRESS}/`,
    configFile: false,
    logLevel: 'warn',
    publicDir: false,
    plugins: [onlyVersion],
    // Set here, too, since the image is built without tsconfig.json.
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      target: 'es2022',
      write: false,
      assetsDir: '',
      modulePreload: { polyfill: false },
      rolldownOptions: { input: join(ROOT, ENTRY) },
    },
  })) as Rolldown.RolldownOutput;
}

/** Styles are no modules of the output, so all files of the folders count. */
async function sourcesOf(modules: string[]): Promise<string[]> {
  const own = modules.map((path) => relative(ROOT, path)).filter((path) => !/^\.|^node_modules|\0/.test(path));
  const styles = ['server/web/app', 'server/web/pages'].map(async (folder) =>
    (await readdir(join(ROOT, folder), { recursive: true }))
      .filter((name) => /\.(css|tsx?)$/.test(name))
      .map((name) => join(folder, name)),
  );
  return [...new Set([...own, ...(await Promise.all(styles)).flat(), 'package-lock.json'])].toSorted();
}

/** In one step, since a service may be reading. */
async function write(name: string, content: string | Uint8Array): Promise<void> {
  const to = join(BUILT, name);
  await mkdir(dirname(to), { recursive: true });
  await writeFile(`${to}.${process.pid}`, content);
  await rename(`${to}.${process.pid}`, to);
}

async function removeOthers(kept: string[]): Promise<void> {
  for (const name of await readdir(BUILT)) {
    if (!kept.includes(name) && !isBeingWritten(name)) await rm(join(BUILT, name), { force: true });
  }
}
const isBeingWritten = (name: string) => /\.\d+$/.test(name);

/** `npm run pages`. */
if (import.meta.main) {
  await buildPages();
  const { script } = readBuild() ?? {};
  console.log(
    `Built: ${script} (${readFileSync(join(BUILT, script ?? ''), 'utf8').length.toLocaleString('en')} bytes).`,
  );
}
