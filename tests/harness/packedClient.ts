import { execFile } from 'node:child_process';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { procedures } from '../../server/api/procedures.ts';
import { givenDirectory, inherited } from './process.ts';
import { madeOnce } from './workplace.ts';

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);

/** The packed client or service, made once for the whole run. */
export async function givenTarball(kind: 'client' | 'server'): Promise<string> {
  const directory = await madeOnce(`packed-${kind}`, async (directory) => {
    await pack(kind, directory);
  });
  const [tarball] = await readdir(directory);
  return join(directory, tarball!);
}

/** Packs into a directory; `dist` if none is given. */
export const pack = (kind: 'client' | 'server', ...directory: string[]) =>
  run(process.execPath, [`server/package/${kind}Pack.ts`, ...directory], { cwd: ROOT, env: inherited() });

/** A new project with the packed client installed. */
export async function givenInstalledClient(): Promise<string> {
  const [tarball, directory] = await Promise.all([givenTarball('client'), givenDirectory()]);
  await writeFile(join(directory, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball], { cwd: directory });
  return directory;
}

/** The errors of the compiler, one per line. */
export async function compile(project: string, settings: object, ...files: string[]): Promise<string[]> {
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ ...settings, files }));
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  // Each additional checker would compute the router's types again.
  return run(process.execPath, [tsc, '--pretty', 'false', '--checkers', '1'], { cwd: project }).then(
    () => [],
    ({ stdout }: { stdout: string }) => stdout.split('\n').filter((line) => /^\S/.test(line)),
  );
}

export const strictly = (moduleResolution: string) => ({
  compilerOptions: {
    target: 'es2022',
    module: moduleResolution === 'bundler' ? 'esnext' : moduleResolution,
    moduleResolution,
    noEmit: true,
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    types: [],
  },
});

/** A program that does not compile unless each procedure has the same input and answer in two types; `packed` is the second. */
export function comparisonOf(own: (path: string) => string, packed: (path: string) => string): string {
  const lines = procedures.map(({ name }, index) => {
    const path = name.replace(/[^.]+\.?/g, (part) => `['${part.replace('.', '')}']`);
    const same = WITH_CHOICES_OF_RUN_TIME.has(name) ? 'Fits' : 'Same';
    return `export const same${index}: ${same}<${packed(path)}, ${own(path)}, '${name}'> = '${name}';`;
  });
  return [SAME_TYPES, ...lines].join('\n');
}

/** The scopes come from the procedures: any text in the types of the service, choices in the printed ones. */
const WITH_CHOICES_OF_RUN_TIME = new Set([
  ...['keys.create', 'keys.rotateSelf'],
  ...['identityRules.create', 'identityRules.update'],
]);

const SAME_TYPES = `
type Fits<One, Other, Name> = Parts<One> extends Parts<Other> ? Name : never;
type Same<One, Other, Name> = Equal<Parts<One>, Parts<Other>> extends true ? Name : never;
/** Written out twice: by the name of a type, TypeScript would only compare whether one fits the other. */
type Equal<One, Other> = (<T>() => T extends One ? 1 : 2) extends (<T>() => T extends Other ? 1 : 2) ? true : false;
type Parts<T> = { [Kind in keyof T]: T[Kind] extends (...parts: infer Sent) => Promise<infer Answer>
  ? [WithoutBlank<Sent[0 & keyof Sent]>, WithoutBlank<Answer>] : never };
/** A choice may be sent as '' for none; the types of the package do not say so. */
type WithoutBlank<T> = T extends Date ? T : T extends object ? { [Key in keyof T]: WithoutBlank<T[Key]> } : Exclude<T, ''>;`;
