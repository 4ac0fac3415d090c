import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';
import { build, type Rolldown } from 'vite';
import { printProcedures } from './declarations.ts';

const ROOT = join(import.meta.dirname, '../..');
const DIST = join(ROOT, 'dist');

const destination = resolve(process.argv[2] ?? DIST);
try {
  const tarball = await packClient();
  console.log(`The client is packed. In the project that uses it:

  npm install ${relative(process.cwd(), tarball).replace(/^(?!\.)/, './')}

See its README.md for the next steps.`);
} catch (error) {
  console.error(`The client was not packed: ${(error as Error).message}`);
  process.exitCode = 1;
}

/** Builds the package: bundled JavaScript, and types without references to other files. */
async function packClient(): Promise<string> {
  await mkdir(DIST, { recursive: true });
  await mkdir(destination, { recursive: true });
  const stage = await mkdtemp(join(DIST, 'client-'));
  try {
    const [sources, contents] = [join(stage, 'client'), join(stage, 'contents')];
    await copySources(stage);
    await writeDeclarations(stage, contents);
    await writeJavaScript(sources, contents);
    await copyFile(join(ROOT, 'docs/client.md'), join(contents, 'README.md'));
    await writeFile(join(contents, 'package.json'), JSON.stringify(await describePackage(), null, 2));

    const packed = await run('npm', ['pack', '--json', '--pack-destination', destination], contents);
    return join(destination, JSON.parse(packed)[0].filename);
  } finally {
    await rm(stage, { recursive: true });
  }
}

/** To a directory without the server, so that a remaining import of it does not compile. */
async function copySources(stage: string): Promise<void> {
  const names = await readdir(join(ROOT, 'client'));
  const files = ['shared/limits.ts', ...names.filter((name) => name.endsWith('.ts')).map((name) => `client/${name}`)];
  for (const folder of ['client', 'shared']) await mkdir(join(stage, folder));
  for (const file of files) await copyFile(join(ROOT, file), join(stage, file));
  await copyFile(join(ROOT, 'shared/reasons.ts'), join(stage, 'client/reasons.ts'));
  await writeFile(join(stage, 'client/procedures.ts'), printProcedures());
}

async function writeDeclarations(stage: string, contents: string): Promise<void> {
  const compilerOptions = {
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    types: [],
    rootDir: '.',
    outDir: 'declarations',
  };
  const settings = { extends: join(ROOT, 'tsconfig.json'), compilerOptions, include: ['client'] };
  await writeFile(join(stage, 'tsconfig.json'), JSON.stringify(settings));
  await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', stage], stage);

  await mkdir(contents);
  const wanted = new Set(['client']);
  for (const name of wanted) {
    const text = await readFile(join(stage, 'declarations/client', `${name}.d.ts`), 'utf8');
    for (const [, imported] of text.matchAll(/ from '(.+)'/g)) {
      if (!imported!.startsWith('./')) throw new Error(`The types in client/${name}.ts must not import ${imported}.`);
      wanted.add(imported!.slice('./'.length, -'.ts'.length));
    }
    await writeFile(join(contents, `${name}.d.ts`), text.replace(/( from '.+)\.ts'/g, "$1.js'"));
  }
}

/** Bundles the dependencies, and adds their licences. */
async function writeJavaScript(sources: string, contents: string): Promise<void> {
  const built = (await build({
    root: ROOT,
    configFile: false,
    logLevel: 'warn',
    publicDir: false,
    build: {
      target: 'es2022',
      minify: false,
      outDir: contents,
      emptyOutDir: false,
      lib: { entry: join(sources, 'client.ts'), formats: ['es'], fileName: () => 'client.js' },
    },
  })) as Rolldown.RolldownOutput[];

  const modules = built.flatMap(({ output }) =>
    output.flatMap((part) => (part.type === 'chunk' ? part.moduleIds : [])),
  );
  const packages = new Set(modules.flatMap((path) => path.match(/.*\/node_modules\/(?:@[^/]+\/)?[^/]+/) ?? []));
  const licences = [...packages].map(async (folder) => {
    const { name, version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    return `${name} ${version}\n\n${await readFile(join(folder, 'LICENSE'), 'utf8')}`;
  });
  await writeFile(join(contents, 'LICENSES.txt'), (await Promise.all(licences)).join('\n\n'));
}

async function describePackage(): Promise<object> {
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  return {
    name: 'deckhand-client',
    version,
    description: 'The typed client of Deckhand, for Node and browsers.',
    type: 'module',
    sideEffects: false,
    engines: { node: '>=20' },
    exports: { '.': { types: './client.d.ts', default: './client.js' } },
    types: './client.d.ts',
  };
}

async function run(command: string, parts: string[], cwd: string): Promise<string> {
  try {
    return (await promisify(execFile)(command, parts, { cwd })).stdout;
  } catch (error) {
    const { stdout, stderr, message } = error as Error & { stdout?: string; stderr?: string };
    throw new Error([message.split('\n')[0], stdout, stderr].filter(Boolean).join('\n'));
  }
}
