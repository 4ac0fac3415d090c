import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { reservePort } from '../harness/port.ts';
import { onServer } from '../harness/server.ts';
import { madeOnce } from '../harness/workplace.ts';

const run = promisify(execFile);

/** Private servers that may be killed and frozen, each with a free local port and its own data directory. */

export type PrivateServer = {
  url: string;
  /** `kill -9` of all its processes; resolves when they are gone. */
  kill: () => Promise<void>;
  /** Restarts it, and waits until it answers. */
  start: () => Promise<void>;
  freeze: () => void;
  thaw: () => void;
  /** Kills it and deletes its data. */
  remove: () => Promise<void>;
};

/** A PostgreSQL cluster with fsync on, as in production; undefined if no server is installed. */
export async function givenCluster(): Promise<PrivateServer | undefined> {
  const binaries = findBinaries();
  if (!binaries) return undefined;
  const directory = givenOwnDirectory();
  const cluster = join(directory, 'cluster');
  await run('cp', ['-a', await madeOnce('cluster', (path) => initialize(binaries, path)), cluster]);
  await giveIdentifier(binaries, cluster);
  return startCluster(binaries, directory, await reservePort());
}

type ServerSettings = Record<string, string | number>;

/** A cluster of other programs than the installed ones; `initdb` and `postgres` are enough. It knows letters of all languages. */
export async function givenClusterOf(binaries: string, settings: ServerSettings = {}): Promise<PrivateServer> {
  const directory = givenOwnDirectory();
  await initialize(binaries, join(directory, 'cluster'), 'C.UTF-8');
  return startCluster(binaries, directory, await reservePort(), settings);
}

async function initialize(binaries: string, path: string, locale = 'C'): Promise<void> {
  const directory = givenOwnDirectory();
  const made = join(directory, 'cluster');
  const initdb = ['-D', made, '-U', 'postgres', '-A', 'trust', '--no-sync', '-E', 'UTF8', '--locale', locale];
  await run(join(binaries, 'initdb'), initdb, { ...unprivileged(), cwd: directory });
  await run('mv', [made, path]);
  await rm(directory, { recursive: true });
}

/** The service knows servers by their identifier, so that a copy needs its own. */
async function giveIdentifier(binaries: string, cluster: string): Promise<void> {
  const control = await open(join(cluster, 'global/pg_control'), 'r+');
  await control.write(randomBytes(4), 0, 4, 0);
  await control.close();
  // Writes the checksum and the log that fit.
  await run(join(binaries, 'pg_resetwal'), ['-f', '-D', cluster], { ...unprivileged(), cwd: dirname(cluster) });
}

/** A streaming replica of a cluster. */
export type Replica = PrivateServer & {
  /** Makes it a primary, and waits until it accepts writes. */
  promote: () => Promise<void>;
  /** It still receives writes, and so acknowledges those of a synchronous replica, but no longer shows them. */
  pause: () => Promise<void>;
  resume: () => Promise<void>;
};

/**
 * A hot standby of a cluster that `givenCluster` started, which has caught up with it. While it is synchronous, no commit of
 * the primary is acknowledged before the replica has stored it. Give the port of a removed server to take its place.
 */
export async function givenReplica(
  primary: PrivateServer,
  { synchronous = false, port }: { synchronous?: boolean; port?: number } = {},
): Promise<Replica> {
  const binaries = findBinaries()!;
  const directory = givenOwnDirectory();
  const name = `replica_${randomBytes(4).toString('hex')}`;
  const source = `${primary.url}?application_name=${name}`;
  const copy = ['-D', join(directory, 'cluster'), '-d', source, '-R', '-X', 'stream', '-c', 'fast', '--no-sync'];
  await run(join(binaries, 'pg_basebackup'), copy, { ...unprivileged(), cwd: directory });
  const server = await startCluster(binaries, directory, port ?? (await reservePort()));
  const onItself = (statement: string) => onServer(server.url, statement);

  await waitFor(async () => {
    const streams = `select 1 from pg_stat_replication where application_name = '${name}' and state = 'streaming'`;
    return (await onServer(primary.url, streams)).length > 0;
  });
  if (synchronous) await requireReplica(primary, name);
  return {
    ...server,
    promote: async () => {
      await onItself('select pg_promote()');
    },
    pause: async () => {
      await onItself('select pg_wal_replay_pause()');
      const paused = `select 1 where pg_get_wal_replay_pause_state() = 'paused'`;
      await waitFor(async () => (await onItself(paused)).length > 0);
    },
    resume: async () => {
      await onItself('select pg_wal_replay_resume()');
    },
  };
}

/** From now on, each commit of the primary waits for this replica. */
async function requireReplica(primary: PrivateServer, name: string): Promise<void> {
  await onServer(primary.url, `alter system set synchronous_standby_names = '${name}'`);
  await onServer(primary.url, 'select pg_reload_conf()');
  const isRequired = `select 1 from pg_stat_replication where application_name = '${name}' and sync_state = 'sync'`;
  await waitFor(async () => (await onServer(primary.url, isRequired)).length > 0);
}

function startCluster(
  binaries: string,
  directory: string,
  port: number,
  more: ServerSettings = {},
): Promise<PrivateServer> {
  const settings = { port, listen_addresses: '127.0.0.1', unix_socket_directories: '', max_connections: 200, ...more };
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const url = `postgresql://postgres@127.0.0.1:${port}/postgres`;
  return startServer(join(binaries, 'postgres'), ['-D', join(directory, 'cluster'), ...options], directory, url, () =>
    onServer(url, 'select 1'),
  );
}

async function waitFor(isDone: () => Promise<boolean>): Promise<void> {
  for (const limit = performance.now() + 30_000; !(await isDone()); await setTimeout(20)) {
    if (performance.now() > limit) throw new Error('The replica is not in the wanted state after 30 s.');
  }
}

export const hasServerPrograms = () => findBinaries() !== undefined;

/** The directory of the PostgreSQL server programs. */
function findBinaries(): string | undefined {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).sort((one, other) => Number(other) - Number(one)) : [];
  const places = [
    ...(process.env.PATH ?? '').split(delimiter),
    ...versions.map((version) => join(debian, version, 'bin')),
  ];
  try {
    places.push(execFileSync('pg_config', ['--bindir'], { encoding: 'utf8', stdio: 'pipe' }).trim());
  } catch {
    // pg_config is part of the development package only.
  }
  // Without links, since often only some of the programs are linked into the PATH.
  return places
    .filter((place) => existsSync(join(place, 'initdb')))
    .map((place) => dirname(realpathSync(join(place, 'initdb'))))
    .find((place) => ['postgres', 'pg_basebackup'].every((program) => existsSync(join(place, program))));
}

/** A Redis without persistence; undefined if none is installed. */
export async function givenRedis(): Promise<PrivateServer | undefined> {
  const program = (process.env.PATH ?? '')
    .split(delimiter)
    .map((place) => join(place, 'redis-server'))
    .find(existsSync);
  if (!program) return undefined;
  const { Redis } = await import('ioredis');
  const port = await reservePort();
  const url = `redis://127.0.0.1:${port}`;
  const options = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  return startServer(program, options, givenOwnDirectory(), url, async () => {
    const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
    client.on('error', () => undefined);
    await client.connect().finally(() => client.disconnect());
  });
}

export const hasPgBouncer = () => findPgBouncer() !== undefined;

const findPgBouncer = () =>
  ['/usr/sbin', '/usr/bin', '/usr/local/bin'].map((place) => join(place, 'pgbouncer')).find(existsSync);

/** PgBouncer in transaction mode in front of a PostgreSQL server; undefined if none is installed. */
export async function givenPgBouncer(serverUrl: string): Promise<PrivateServer | undefined> {
  const program = findPgBouncer();
  if (!program) return undefined;
  const { hostname, port: serverPort, username, pathname } = new URL(serverUrl);
  const port = await reservePort();
  const directory = givenOwnDirectory();
  const settings = `
[databases]
* = host=${hostname} port=${serverPort || 5432} user=${username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 5
ignore_startup_parameters = statement_timeout, lock_timeout, idle_in_transaction_session_timeout
`;
  const file = join(directory, 'pgbouncer.ini');
  writeFileSync(file, settings);
  // Whatever the umask is, since it runs as another user.
  chmodSync(file, 0o644);
  const url = `postgresql://${username}@127.0.0.1:${port}${pathname}`;
  return startServer(program, [file], directory, url, () => onServer(url, 'select 1'));
}

async function startServer(
  program: string,
  options: string[],
  directory: string,
  url: string,
  ask: () => Promise<unknown>,
): Promise<PrivateServer> {
  let child: ChildProcess;
  let ended: Promise<unknown>;
  const signal = (name: NodeJS.Signals) => {
    // The parent first, since it would restart killed children.
    for (const pid of [child.pid!, ...childrenOf(child.pid!)]) tryToSignal(pid, name);
  };
  const kill = async () => {
    signal('SIGKILL');
    await ended;
  };
  let errors = '';
  const launch = () => {
    child = spawn(program, options, { ...unprivileged(), cwd: directory, stdio: ['ignore', 'ignore', 'pipe'] });
    child.stderr!.on('data', (text) => (errors = `${errors}${text}`.slice(-1000)));
    ended = new Promise((resolve) => child.once('close', resolve));
  };
  const start = async () => {
    launch();
    for (const limit = performance.now() + 30_000; ; await setTimeout(20)) {
      const answer = await ask().then(
        () => undefined,
        (error) => error,
      );
      if (answer === undefined) return;
      if (performance.now() > limit) throw new Error(`${program} does not start. ${errors}`, { cause: answer });
      if (child.exitCode !== null)
        throw new Error(`${program} ended with ${child.exitCode}. ${errors}`, { cause: answer });
    }
  };
  const endNow = () => {
    signal('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  };
  process.once('exit', endNow);
  await start();
  return {
    url,
    kill,
    start,
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    remove: async () => {
      process.off('exit', endNow);
      await kill();
      await rm(directory, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

function tryToSignal(pid: number, name: NodeJS.Signals) {
  try {
    process.kill(pid, name);
  } catch {
    // The process has already ended.
  }
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && parentOf(pid) === parent);
}

function parentOf(pid: number): number | undefined {
  try {
    // The program name is in parentheses and may contain any characters.
    return Number(
      readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ')[1],
    );
  } catch {
    return undefined;
  }
}

/** PostgreSQL refuses to run as root. */
function unprivileged(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const [, , uid, gid] = ['postgres', 'nobody'].map(accountOf).find((account) => account !== undefined) ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

const accountOf = (name: string) =>
  readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .find(([found]) => found === name);

function givenOwnDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'deckhand-server-'));
  const { uid, gid } = unprivileged();
  if (uid !== undefined) chownSync(directory, uid, gid!);
  return directory;
}
