import { chmod, copyFile, cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeMigrated } from './migrated.ts';
import { printPageClient } from './pageClient.ts';
import { compile, packFromCommandLine, ROOT, readManifest, writeManifest } from './tarball.ts';

/** The entries of the package; it has what they import, and no more. */
const SERVICE = 'server/boot/main.ts';
const COMMAND_LINE = 'server/cli/deckhand.js';

/** The service as JavaScript, since Node does not run TypeScript in `node_modules`. */
await packFromCommandLine('service', async ({ stage, contents }) => {
  const { exports, ...manifest } = await readManifest();
  const testing: string = exports['./testing'];

  await compile(
    stage,
    { rewriteRelativeImportExtensions: true, noCheck: true, rootDir: ROOT, outDir: contents },
    {
      files: [SERVICE, COMMAND_LINE, testing].map((entry) => join(ROOT, entry)),
      // Found by listing their directory.
      include: [join(ROOT, 'server/database/migrations')],
    },
  );
  await copyOtherFiles(contents);
  await writeFile(join(contents, 'server/web/pages/client.js'), await printPageClient());
  await chmod(join(contents, COMMAND_LINE), 0o755);
  await addMigrated(stage, join(contents, 'server/boot/testing/migrated.tar.gz'));
  await copyFile(join(ROOT, 'docs/testing.md'), join(contents, 'README.md'));

  const { name, version, description, type, dependencies } = manifest;
  await writeManifest(contents, {
    ...{ name, version, description, type, dependencies },
    // The repository brings its own Node.
    engines: { node: '>=22.18' },
    bin: { deckhand: COMMAND_LINE },
    exports: { './testing': testing.replace(/\.ts$/, '.js'), './package.json': './package.json' },
  });
});

/** Pages, guides and lists that the service reads; the compiled files are there already. */
async function copyOtherFiles(contents: string): Promise<void> {
  const compiled = join(ROOT, 'server/cli');
  const filter = (path: string) => !path.endsWith('.ts') && path !== compiled;
  await cp(join(ROOT, 'server'), join(contents, 'server'), { recursive: true, filter });
  await cp(join(ROOT, 'docs'), join(contents, 'docs'), { recursive: true });
  await copyFile(join(ROOT, 'README.md'), join(contents, 'docs/README.md'));
}

async function addMigrated(stage: string, archive: string): Promise<void> {
  // Opening the database lets only this user read new files; others may install the package.
  const mask = process.umask(0o022);
  await makeMigrated(join(stage, 'data'), archive);
  process.umask(mask);
}
