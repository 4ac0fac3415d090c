import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build, type Plugin, type Rolldown } from 'vite';
import { ROOT } from './tarball.ts';

/** Of `package.json`, the bundle has nothing but the version. */
export const onlyVersion: Plugin = {
  name: 'only-version',
  enforce: 'pre',
  transform: {
    filter: { id: /\/package\.json$/ },
    handler: (text) => JSON.stringify({ version: JSON.parse(text).version }),
  },
};

/** The client and its dependencies as one module for browsers and Node, and the licences of the dependencies. */
export async function bundleClient(entry: string) {
  const built = (await build({
    root: ROOT,
    configFile: false,
    logLevel: 'warn',
    publicDir: false,
    plugins: [onlyVersion],
    build: {
      target: 'es2022',
      minify: false,
      write: false,
      lib: { entry, formats: ['es'], fileName: () => 'client.js' },
    },
  })) as Rolldown.RolldownOutput[];

  const chunks = chunksOf(built);
  const sources = chunks.flatMap(({ moduleIds }) => moduleIds);
  const code = chunks.map((chunk) => chunk.code).join('\n');
  return { code, sources, packages: await packagesOf(sources), licences: await licencesOf(sources) };
}

export const chunksOf = (built: Rolldown.RolldownOutput[]) =>
  built.flatMap(({ output }) => output.filter((part) => part.type === 'chunk'));

/** The folders of the packages that these modules belong to. */
const foldersOf = (modules: string[]) => [
  ...new Set(modules.flatMap((path) => path.match(/.*\/node_modules\/(?:@[^/]+\/)?[^/]+/) ?? [])),
];

const manifestIn = async (folder: string): Promise<{ name: string; version: string }> =>
  JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));

/** These packages, with their versions: `name@1.0.0`. */
const packagesOf = (modules: string[]): Promise<string[]> =>
  Promise.all(
    foldersOf(modules).map(async (folder) => {
      const { name, version } = await manifestIn(folder);
      return `${name}@${version}`;
    }),
  );

/** The licences of the packages that these modules belong to. */
export async function licencesOf(modules: string[]): Promise<string> {
  const licences = foldersOf(modules).map(async (folder) => {
    const { name, version } = await manifestIn(folder);
    return `${name} ${version}\n\n${await readFile(join(folder, 'LICENSE'), 'utf8')}`;
  });
  return (await Promise.all(licences)).join('\n\n');
}
