import { existsSync } from 'node:fs';
import { copyFile, cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { bundleClient } from './bundle.ts';
import { printExamples, printProcedures, printSettings } from './declarations.ts';
import { writeBill } from './sbom.ts';
import { compile, packFromCommandLine, ROOT, readManifest, writeManifest } from './tarball.ts';

const NAME = 'deckhand-client';
/** Only for the type of the router, whose users have it: `@trpc/client` needs it, too. */
const PEER = '@trpc/server';

/** The client as bundled JavaScript with types of its own, and beside it what tests of its users need. */
await packFromCommandLine('client', async ({ stage, contents }) => {
  await copySources(stage);
  const emit = { declaration: true, rewriteRelativeImportExtensions: true, rootDir: '.', outDir: 'emitted' };
  const emitted = join(stage, 'emitted/client');

  // Without the types of Node, which browsers lack.
  await compile(
    stage,
    { ...emit, emitDeclarationOnly: true, types: [] },
    { files: ['client/client.ts', 'client/router.ts'] },
  );
  for (const name of ['client', 'router']) await copyWithImports(emitted, contents, name, '.d.ts');
  await writeJavaScript(join(stage, 'client'), contents);

  const others = ['testing/testing', 'events/events'];
  await compile(stage, emit, { files: others.map((name) => `client/${name}.ts`) });
  for (const kind of ['.d.ts', '.js'] as const)
    for (const name of others) await copyWithImports(emitted, contents, name, kind);

  await copyFile(join(ROOT, 'docs/client.md'), join(contents, 'README.md'));
  await copyFile(join(ROOT, 'docs/testing.md'), join(contents, 'testing.md'));
  await writeManifest(contents, await describePackage());
});

/** To a directory without the server, so that a remaining import of it does not compile. */
async function copySources(stage: string): Promise<void> {
  const names = await readdir(join(ROOT, 'client'));
  const files = ['shared/limits.ts', ...names.filter((name) => name.endsWith('.ts')).map((name) => `client/${name}`)];
  for (const folder of ['client', 'shared']) await mkdir(join(stage, folder));
  for (const file of files) await copyFile(join(ROOT, file), join(stage, file));
  for (const folder of ['client/testing', 'client/events'])
    await cp(join(ROOT, folder), join(stage, folder), { recursive: true });
  await copyFile(join(ROOT, 'shared/reasons.ts'), join(stage, 'client/reasons.ts'));
  for (const name of ['eventData.ts', 'eventType.ts'])
    await copyFile(join(ROOT, 'shared', name), join(stage, 'client/events', name));
  await writeFile(join(stage, 'client/procedures.ts'), printProcedures());
  await writeFile(join(stage, 'client/testing/settings.ts'), printSettings());
  await writeFile(join(stage, 'client/testing/examples.ts'), printExamples());
  const { version } = await readManifest();
  await writeFile(join(stage, 'client/version.ts'), `export const VERSION = '${version}';\n`);
}

/** Copies a compiled file and what it imports, except for what the package has already, such as the bundled client. */
async function copyWithImports(emitted: string, contents: string, name: string, kind: '.d.ts' | '.js'): Promise<void> {
  const to = join(contents, name + kind);
  if (existsSync(to)) return;

  const text = await readFile(join(emitted, name + kind), 'utf8');
  await mkdir(dirname(to), { recursive: true });
  await writeFile(to, text.replace(/( from '\..+)\.ts'/g, "$1.js'"));
  for (const [, imported] of text.matchAll(/ from '(.+)'/g)) {
    const isAllowed = kind === '.js' ? imported!.startsWith('node:') : name === 'router' && imported === PEER;
    if (isAllowed) continue;
    if (!imported!.startsWith('.')) throw new Error(`client/${name}.ts must not import ${imported}.`);
    await copyWithImports(emitted, contents, join(dirname(name), imported!.replace(/\.[jt]s$/, '')), kind);
  }
}

async function writeJavaScript(sources: string, contents: string): Promise<void> {
  const { code, licences, packages } = await bundleClient(join(sources, 'client.ts'));
  // Comments name the files, in a directory whose name is another one each time.
  await writeFile(join(contents, 'client.js'), code.replaceAll(relative(ROOT, dirname(sources)), '.'));
  await writeFile(join(contents, 'LICENSES.txt'), licences);
  await writeBill(contents, NAME, packages);
}

async function describePackage(): Promise<object> {
  const { version, dependencies } = await readManifest();
  return {
    name: NAME,
    version,
    description: 'The typed client of Deckhand, for Node and browsers.',
    type: 'module',
    sideEffects: false,
    engines: { node: '>=20' },
    exports: {
      '.': { types: './client.d.ts', default: './client.js' },
      './router': { types: './router.d.ts' },
      './events': { types: './events/events.d.ts', default: './events/events.js' },
      './testing': { types: './testing/testing.d.ts', default: './testing/testing.js' },
    },
    types: './client.d.ts',
    // The second one is only for `deckhand-client/testing`.
    peerDependencies: { [PEER]: `^${dependencies[PEER]}`, deckhand: version },
    peerDependenciesMeta: { [PEER]: { optional: true }, deckhand: { optional: true } },
  };
}
