import { mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { type Plugin, rolldown } from 'rolldown';
import { removeOld } from '../database/snapshot.ts';
import { digestOf, findBundle } from '../runtime/bundle.js';
import { ROOT } from './tarball.ts';

/** The programs that start faster from few files; `runProgram` of server/runtime/bundle.js runs them. */
const PROGRAMS = {
  service: join(ROOT, 'server/boot/run.ts'),
  commandLine: join(ROOT, 'server/cli/main.ts'),
  testing: join(ROOT, 'server/boot/testing/thread.ts'),
};

/** A package of hundreds of files that packages outside import, too: as one file, for all of them. */
const SHARED = { kysely: 'kysely' };

/** Packages that stay outside: with native code or files of their own, shared with migrations, or rarely loaded. */
const OUTSIDE =
  /^(@electric-sql|@mikro-orm|@opentelemetry|argon2|ioredis|kysely|pg|pino|pino-pretty|rolldown|vite)($|\/)/;

const CACHE = join(ROOT, 'node_modules/.cache/deckhand-service');
const DESCRIPTION = 'bundle.json';

/**
 * Bundles the programs for a checkout, unless there is a bundle of these sources. Programs that run keep the files of the bundle
 * that they started from.
 */
export async function makeBundle(): Promise<void> {
  if (findBundle()) return;
  await mkdir(CACHE, { recursive: true });
  const stage = await mkdtemp(join(CACHE, 'bundle-'));
  const begun = Date.now();
  const sources = await writeBundle(stage, stage);
  const directory = basename(stage);
  await writeFile(join(stage, DESCRIPTION), JSON.stringify({ directory, sources, digest: digestOf(sources) }));
  // A source that changed meanwhile may be in the bundle as it was before.
  if (await isAnyChangedSince(begun, sources)) return rm(stage, { recursive: true });
  await rename(join(stage, DESCRIPTION), join(CACHE, DESCRIPTION));
  await removeOld(CACHE, [directory, DESCRIPTION], LONGEST_USE_DAYS);
}
/** Since the last start from it. */
const LONGEST_USE_DAYS = 30;

async function isAnyChangedSince(begun: number, sources: string[]): Promise<boolean> {
  const times = await Promise.all(sources.map(async (source) => (await stat(join(ROOT, source))).mtimeMs));
  return times.some((time) => time >= begun);
}

/** For an image, which has the sources, too. */
const writeImageBundle = async (directory: string) => describe(directory, await writeBundle(directory, directory));

/**
 * For a package, whose contents are at `root` until they are packed, and which has compiled sources. Other packages stay outside,
 * so that projects can update them.
 */
export async function writePackageBundle(directory: string, root: string): Promise<void> {
  await writeBundle(directory, join(ROOT, relative(root, directory)), /^[^./]/);
  await describe(directory, []);
}

const describe = (directory: string, sources: string[]) =>
  writeFile(join(directory, DESCRIPTION), JSON.stringify({ directory: '.', sources, digest: digestOf(sources) }));

/** Returns the files of the repository that it was made from. `place` is where the files will be when they run. */
async function writeBundle(directory: string, place: string, outside = OUTSIDE): Promise<string[]> {
  const bundle = await rolldown({
    input: outside === OUTSIDE ? { ...PROGRAMS, ...SHARED } : PROGRAMS,
    platform: 'node',
    external: (id, importer) => outside.test(id) && (importer !== undefined || !(id in SHARED)),
    plugins: [asFrom(place), commandsAsData],
  });
  const { output } = await bundle.write({
    dir: directory,
    sourcemap: true,
    sourcemapPathTransform: (path, map) => relative(place, resolve(dirname(map), path)),
    // Node looks for no package.json beside these.
    entryFileNames: '[name].mjs',
    chunkFileNames: '[name]-[hash].mjs',
    // Comments are not run.
    comments: false,
  });
  await bundle.close();
  const modules = output.flatMap((part) => (part.type === 'chunk' ? part.moduleIds : []));
  const own = modules.map((path) => relative(ROOT, path)).filter((path) => !/^\.|^node_modules|\0/.test(path));
  // The data of the commands is made from these.
  const ofCommands = (await readdir(join(ROOT, 'server/cli'))).map((name) => `server/cli/${name}`);
  return [...new Set([...own, ...ofCommands, 'package-lock.json'])].toSorted();
}

/** The commands, which take a tenth of a second to make from the procedures. */
const commandsAsData: Plugin = {
  name: 'commands-as-data',
  load: {
    filter: { id: /server\/cli\/commands\.ts$/ },
    handler: async () => {
      const { COMMANDS } = await import('../cli/commands.ts');
      return `export const COMMANDS = new Map(JSON.parse(${JSON.stringify(JSON.stringify([...COMMANDS]))}));`;
    },
  },
};

/** Modules find their files from the place of the bundle. */
const asFrom = (place: string): Plugin => ({
  name: 'as-from',
  transform: {
    filter: { id: { exclude: /node_modules/ }, code: /\bimport\.meta\./ },
    handler: (code, id) => {
      const directory = JSON.stringify(`/${relative(place, dirname(id))}`);
      const url = JSON.stringify(relative(place, id));
      const moved = code
        .replaceAll('import.meta.dirname', `(import.meta.dirname + ${directory})`)
        .replaceAll('import.meta.url', `new URL(${url}, import.meta.url).href`);
      // Lines stay the same.
      return { code: moved, map: null };
    },
  },
});

/** For the image. */
if (import.meta.main) await writeImageBundle(join(ROOT, 'dist/service'));
