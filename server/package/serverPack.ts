import { chmod, copyFile, cp } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { MIGRATED } from '../database/embedded/location.ts';
import { makeMigrated } from '../database/snapshot.ts';
import { BUILT } from '../web/built.ts';
import { buildPages } from './pageBuild.ts';
import { packagesOfService, writeBill } from './sbom.ts';
import { writePackageBundle } from './serviceBundle.ts';
import { compile, packFromCommandLine, ROOT, readManifest, writeManifest } from './tarball.ts';

/** The entries of the package; it has what they import, and no more. */
const SERVICE = 'server/boot/main.js';
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
  await writePackageBundle(join(contents, 'dist/service'), contents);
  await buildPages();
  await cp(BUILT, join(contents, relative(ROOT, BUILT)), { recursive: true });
  await chmod(join(contents, COMMAND_LINE), 0o755);
  // Opening the database lets only this user read new files; others may read the package.
  const mask = process.umask();
  await makeMigrated(join(stage, 'data'), join(contents, relative(ROOT, MIGRATED)));
  process.umask(mask);
  await copyFile(join(ROOT, 'docs/testing.md'), join(contents, 'README.md'));

  const { name, version, description, type, dependencies } = manifest;
  await writeBill(contents, name, await packagesOfService());
  await writeManifest(contents, {
    ...{ name, version, description, type, dependencies },
    // The repository brings its own Node.
    engines: { node: '>=22.18' },
    bin: { deckhand: COMMAND_LINE },
    exports: { './testing': testing, './package.json': './package.json' },
  });
});

/** Pages, guides and lists that the service reads; the compiled files are there already. */
async function copyOtherFiles(contents: string): Promise<void> {
  const filter = (path: string) => !/\.tsx?$|\/server\/web\/app(\/|$)/.test(path);
  await cp(join(ROOT, 'server'), join(contents, 'server'), { recursive: true, force: false, filter });
  await cp(join(ROOT, 'docs'), join(contents, 'docs'), { recursive: true });
  await copyFile(join(ROOT, 'README.md'), join(contents, 'docs/README.md'));
}
