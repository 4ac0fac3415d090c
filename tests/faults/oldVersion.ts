import { execFile, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { MikroORM } from '@mikro-orm/core';
import { Migrator } from '@mikro-orm/migrations';
import { PostgreSqlDriver } from '@mikro-orm/postgresql';
import { givenDirectory, type StartedService, startProgram } from '../harness/process.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');

/** A commit to upgrade from. */
type Version = {
  commit: string;
  name: string;
  /** It runs with the packages of this version. */
  hasOurPackages: boolean;
  /** It knows `Idempotency-Key`, `STOP_PAUSE_SECONDS`, events and webhooks. */
  isRecent: boolean;
};

export const FIRST: Version = { commit: '20bfc05', name: 'first version', hasOurPackages: false, isRecent: false };

/** The latest release. After the next one, set it to that commit. */
export const PREVIOUS: Version = { commit: '8fd865d', name: 'previous version', hasOurPackages: true, isRecent: true };

export type OldVersion = Version & {
  /** Undefined without its packages. */
  start?: (settings: Record<string, string>) => Promise<StartedService>;
  /** Creates its tables, without any of its nodes. */
  createTables: (clientUrl: string) => Promise<void>;
};

/** The code of a version, from the git history; it can be started if its packages are ours, or are installed. */
export async function givenOldVersion(version: Version, { isInstalled = false } = {}): Promise<OldVersion> {
  const directory = await givenCheckout(version.commit, isInstalled ? installedFor(version) : ROOT);
  const programs = ['server/boot/main.js', 'server/boot/main.ts', 'server/main.ts'];
  const program = programs.map((path) => join(directory, path)).find(existsSync)!;
  return {
    ...version,
    start:
      version.hasOurPackages || isInstalled
        ? (settings) => startProgram([program], { STOP_PAUSE_SECONDS: '1', ...settings })
        : undefined,
    createTables: (clientUrl) => createTables(clientUrl, join(directory, 'server/database/migrations')),
  };
}

/** The code of a commit in a directory of its own, with the packages of another one. */
export async function givenCheckout(commit: string, packages = ROOT): Promise<string> {
  const directory = await givenDirectory();
  await run('git', ['archive', '-o', join(directory, 'code.tar'), commit], { cwd: ROOT });
  await run('tar', ['-xf', 'code.tar'], { cwd: directory });
  await symlink(join(packages, 'node_modules'), join(directory, 'node_modules'));
  return directory;
}

/** Why the code of a version is not available; undefined if it is. */
export function missingHistory({ commit }: Version): string | undefined {
  const { status } = spawnSync('git', ['cat-file', '-e', `${commit}^{tree}`], { cwd: ROOT });
  return status === 0 ? undefined : `There is no git history with the commit ${commit}.`;
}

/** Installs the packages of a version that does not run with ours; the reason if that fails. They are kept for the next run. */
export async function missingPackages(version: Version): Promise<string | undefined> {
  const directory = installedFor(version);
  if (version.hasOurPackages || existsSync(directory)) return undefined;
  await mkdir(dirname(directory), { recursive: true, mode: 0o700 });
  const made = await mkdtemp(`${directory}-`);
  try {
    const files = ['package.json', 'package-lock.json', '.npmrc'];
    await run('git', ['archive', '-o', join(made, 'files.tar'), version.commit, ...files], { cwd: ROOT });
    await run('tar', ['-xf', 'files.tar'], { cwd: made });
    const options = ['--ignore-scripts', '--omit=dev', '--omit=optional', '--no-audit', '--no-fund'];
    await run('npm', ['ci', ...options], { cwd: made, timeout: 5 * 60_000 });
    await rename(made, directory);
    return undefined;
  } catch (error) {
    await rm(made, { recursive: true });
    return `Its packages can't be installed: ${(error as { stderr?: string }).stderr?.split('\n')[0]}`;
  }
}

const installedFor = ({ commit }: Version) => join(tmpdir(), `deckhand-packages-${process.getuid?.()}`, commit);

async function createTables(clientUrl: string, path: string): Promise<void> {
  const orm = await MikroORM.init({
    driver: PostgreSqlDriver,
    clientUrl,
    entities: [],
    discovery: { warnWhenNoEntities: false },
    ensureDatabase: false,
    extensions: [Migrator],
    migrations: { path, snapshot: false, silent: true },
  });
  try {
    await orm.migrator.up();
  } finally {
    await orm.close(true);
  }
}
