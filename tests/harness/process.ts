import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync } from 'node:fs';
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { RawBuilder } from 'kysely';
import manifest from '../../package.json' with { type: 'json' };
import { connect } from '../../server/database/connect.ts';
import { readArchive, unpack } from '../../server/database/embedded/archive.ts';
import { embeddedDirectory } from '../../server/database/embedded/location.ts';
import { FINISHED } from '../../server/database/embedded/opening.ts';
import { findPrepared } from '../../server/database/embedded/preparedArchive.ts';
import { query } from '../../server/database/query.ts';
import { fillWithDemoData } from '../../server/database/seed/demo.ts';
import { makeMigrated } from '../../server/database/snapshot.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { makeCaller, type TestCaller } from './caller.ts';
import { findTestServer, givenServerDatabase, type ServerDatabase } from './server.ts';
import { givenFilledDatabase, removeTemplates } from './serverTemplates.ts';
import { madeOnce, workplace } from './workplace.ts';

/** The service and its command line as separate processes. */

export type Ended = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };

export type StartedService = {
  url: string;
  pid: number;
  /** Its standard output so far. */
  printed: () => string;
  stop: (signal?: NodeJS.Signals) => Promise<Ended>;
};

/** Starts the service on a free port, and waits until it prints its address. */
export const startService = (settings: Record<string, string>, program: 'node' | 'npm' = 'node') =>
  untilListening(
    program === 'npm' ? launchWith('npm', ['start'], settings, ROOT) : launch(['server/boot/main.js'], settings),
  );

/** The same with the options of `npm start`, but without the processes of npm; also in another checkout. */
export const startAsScript = (settings: Record<string, string>, checkout = ROOT) =>
  untilListening(launchWith('sh', ['-c', manifest.scripts.start], settings, checkout));

/** For `startService`: lets the service take its output for a terminal. */
export const ON_TERMINAL = { NODE_OPTIONS: '--import=data:text/javascript,process.stdout.isTTY=true' };

/** Starts another program that prints its address; its path is absolute or one of the repository. */
export const startProgram = (command: [string, ...string[]], settings: Record<string, string>) =>
  untilListening(launch(command, settings));

async function untilListening({ child, output, ended }: ReturnType<typeof launch>): Promise<StartedService> {
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout!.on('data', () => {
      const address = / listens on (http:[^\s"]+)/.exec(output.stdout)?.[1];
      if (address) resolve(address);
    });
    ended.then((end) => reject(new Error(`It ended before it listened: ${JSON.stringify(end)}`)));
  });

  const stop = (signal: NodeJS.Signals = 'SIGINT') => {
    child.kill(signal);
    return ended;
  };
  return { url, pid: child.pid!, printed: () => output.stdout, stop };
}

/** Runs a program of the repository until it ends. */
export async function runToEnd(
  command: [string, ...string[]],
  settings: Record<string, string> = {},
  meanwhile: (child: ChildProcess) => Promise<void> = async () => {},
): Promise<Ended> {
  const { child, ended } = launch(command, settings);
  await meanwhile(child);
  return ended;
}

/** A new, empty directory. */
export const givenDirectory = () => mkdtemp(join(workplace(), 'data-'));

export async function givenCopyOf(directory: string): Promise<string> {
  const copy = await givenDirectory();
  // Five times faster than the asynchronous one, which does each step of each file in JavaScript.
  cpSync(directory, copy, { recursive: true });
  return copy;
}

/** A data directory with all tables and no rows. Made once for the whole run and copied, which is far cheaper. */
export const givenMigratedDirectory = async () => givenCopyOf(await migratedDirectory());

/** The same with the demo data, which the first start would add. */
export const givenDemoDirectory = async () =>
  givenCopyOf(
    await madeOnce('demo', async (directory) => {
      await mkdir(directory, { mode: 0o700 });
      cpSync(await migratedDirectory(), directory, { recursive: true });
      const database = await connect(readSettings({ DATA_DIR: directory }));
      await fillWithDemoData(database);
      await database.close();
    }),
  );

/** The tables without rows as an archive, for an embedded database in memory. */
export const migratedArchive = async () => (await findPrepared()) ?? `${await migratedDirectory()}.tar`;

/** What `npm ci` prepared, if it fits the files of the checkout. */
const migratedDirectory = () =>
  madeOnce('migrated', async (directory) => {
    const prepared = await findPrepared();
    if (!prepared) return makeMigrated(directory, join(workplace(), 'migrated.tar'));
    await mkdir(directory, { mode: 0o700 });
    await unpack(await readArchive(prepared), embeddedDirectory(directory));
    await writeFile(join(embeddedDirectory(directory), FINISHED), '');
  });

/** Settings of a service with demo data, for tests to which its database does not matter. `removeProcesses` removes the database. */
export async function givenDemoSettings(): Promise<Record<string, string>> {
  const database = await givenDemoDatabase();
  databases.push(database);
  return database.settings;
}

/** New demo data: on the server, where a start takes a fifth of the time, if there is one. */
export async function givenDemoDatabase(): Promise<{
  settings: Record<string, string>;
  remove: () => Promise<unknown>;
}> {
  const server = await findTestServer();
  if (!server.url) return { settings: { DATA_DIR: await givenDemoDirectory() }, remove: async () => undefined };
  const { url, remove } = await givenFilledDatabase('demo', 'demo');
  return { settings: { DATABASE_URL: url, JWT_SECRET: 'a secret for tests that nobody else uses' }, remove };
}

const DIRECTORIES = { empty: givenDirectory, migrated: givenMigratedDirectory, demo: givenDemoDirectory };

/** Settings of a service on a new database, which `removeProcesses` removes. */
export async function givenSettings(
  contents: keyof typeof DIRECTORIES,
  { isEmbedded }: { isEmbedded: boolean },
): Promise<Record<string, string>> {
  if (isEmbedded) return { DATA_DIR: await DIRECTORIES[contents]() };
  const { url } = await findTestServer();
  if (!url) throw new Error('No PostgreSQL server is reachable.');
  const isEmpty = contents === 'empty';
  const database = await (isEmpty ? givenServerDatabase(url, contents) : givenFilledDatabase(contents, contents));
  databases.push(database);
  return { DATABASE_URL: database.url, JWT_SECRET: 'a secret for tests that nobody else uses' };
}

/** Reads from the database of these settings; an embedded one must not be in use. */
export async function readRows<Row>(settings: Record<string, string>, statement: RawBuilder<Row>): Promise<Row[]> {
  const database = await connect(readSettings(settings));
  try {
    return await query(database.db, statement);
  } finally {
    await database.close();
  }
}

/** For the end of a suite: kills all processes, and removes their databases. */
export async function removeProcesses(): Promise<void> {
  for (const child of running.keys()) child.kill('SIGKILL');
  await Promise.all(running.values());
  for (const { remove } of databases.splice(0)) await remove();
  if (!process.env.TEST_WORKPLACE) await removeTemplates();
}

const ROOT = join(import.meta.dirname, '../..');
const databases: Pick<ServerDatabase, 'remove'>[] = [];
const running = new Map<ChildProcess, Promise<Ended>>();

function launch([script, ...others]: [string, ...string[]], settings: Record<string, string>) {
  // In a directory without data and without `.env`.
  return launchWith(process.execPath, [resolve(ROOT, script), ...others], settings, workplace());
}

function launchWith(program: string, words: string[], settings: Record<string, string>, cwd: string) {
  const child = spawn(program, words, { cwd, env: { ...inherited(), PORT: '0', ...settings } });
  const output = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      output[stream] += text;
    });
  }
  const ended = new Promise<Ended>((resolve) => {
    child.on('close', (code, signal) => {
      running.delete(child);
      resolve({ code, signal, ...output });
    });
  });
  running.set(child, ended);
  return { child, output, ended };
}

/** The environment without settings of the service; with PostgreSQL's own defaults. */
export function inherited(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => /^(PATH|HOME|USER|PG[A-Z]+)$/.test(name)));
}

/** Signs in as a demo user. */
export async function signIn(url: string, email = 'member@demo.test'): Promise<TestCaller> {
  const { body } = await makeCaller(url).post('/v1/authenticate', { email, password: 'demo-password' });
  return makeCaller(url, body.data.token);
}

export const statusOf = async (url: string, path: string) => (await fetch(url + path)).status;
