import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';

/** Builds packages that other projects install. */

export const ROOT = join(import.meta.dirname, '../..');
const DIST = join(ROOT, 'dist');

/** `stage` is a directory for files on the way, `contents` becomes the package. */
type Stage = { stage: string; contents: string };

/** A program that packs a part of the repository into `dist`, or into the directory that its first argument names. */
export async function packFromCommandLine(part: string, fill: (place: Stage) => Promise<void>): Promise<void> {
  try {
    const tarball = await pack(fill, resolve(process.argv[2] ?? DIST));
    console.log(`The ${part} is packed. In the project that uses it:

  npm install ${relative(process.cwd(), tarball).replace(/^(?!\.)/, './')}

See its README.md for the next steps.`);
  } catch (error) {
    console.error(`The ${part} was not packed: ${(error as Error).message}`);
    process.exitCode = 1;
  }
}

async function pack(fill: (place: Stage) => Promise<void>, destination: string): Promise<string> {
  // The same rights of files for everybody who packs.
  process.umask(0o022);
  for (const directory of [DIST, destination]) await mkdir(directory, { recursive: true });
  const stage = await mkdtemp(join(DIST, 'stage-'));
  try {
    const contents = join(stage, 'contents');
    await mkdir(contents);
    await fill({ stage, contents });
    const packed = await run('npm', ['pack', '--json', '--pack-destination', destination], contents);
    return join(destination, JSON.parse(packed)[0].filename);
  } finally {
    await rm(stage, { recursive: true });
  }
}

export const readManifest = async () => JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));

export const writeManifest = (contents: string, manifest: object) =>
  writeFile(join(contents, 'package.json'), JSON.stringify(manifest, null, 2));

/** Compiles files of the stage, with the settings of the repository and others. */
export async function compile(stage: string, compilerOptions: object, files: object): Promise<void> {
  const settings = { extends: join(ROOT, 'tsconfig.json'), compilerOptions: { noEmit: false, ...compilerOptions } };
  await writeFile(join(stage, 'tsconfig.json'), JSON.stringify({ ...settings, include: [], ...files }));
  await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', stage], stage);
}

export async function run(command: string, parts: string[], cwd: string): Promise<string> {
  try {
    return (await promisify(execFile)(command, parts, { cwd, maxBuffer: 64 * 1024 * 1024 })).stdout;
  } catch (error) {
    const { stdout, stderr, message } = error as Error & { stdout?: string; stderr?: string };
    throw new Error([message.split('\n')[0], stdout, stderr].filter(Boolean).join('\n'));
  }
}
