import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { connect } from '../../server/database/connect.ts';
import { query } from '../../server/database/query.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { makeCaller } from '../harness/caller.ts';
import {
  type Ended,
  givenCopyOf,
  givenDirectory,
  givenMigratedDirectory,
  readRows,
  removeProcesses,
  runToEnd,
  signIn,
  startService,
  statusOf,
} from '../harness/process.ts';
import { createDatabase, findTestServer, onServer } from '../harness/server.ts';

const server = await findTestServer();
const SERVICE = 'server/boot/main.js';
const COMMAND_LINE = 'server/cli/deckhand.js';
const CREATE = '/services/operations/v1/operations/cards/create';
const JWT_SECRET = 'a secret for tests that nobody else uses';

/** A directory that the command line prepared; tests use copies of it. */
let first: { directory: string; migrated: Ended; filled: Ended };

beforeAll(async () => {
  const directory = await givenDirectory();
  const migrated = await runToEnd([COMMAND_LINE, 'migrate'], { DATA_DIR: directory });
  const filled = await runToEnd([COMMAND_LINE, 'demo'], { DATA_DIR: directory });
  first = { directory, migrated, filled };
}, 60_000);

afterAll(removeProcesses);

describe.concurrent('npx deckhand', () => {
  const done = { code: 0, signal: null, stderr: '' };

  it('migrate creates the tables in a new directory, and demo fills it', () => {
    // Those that `npm ci` prepared, unless files of the database have changed since.
    const created = expect.stringMatching(/^(The tables are up to date\.|Applied: Migration\w+(, Migration\w+)*)\n$/);
    expect(first.migrated).toEqual({ ...done, stdout: created });
    expect(first.filled).toEqual({ ...done, stdout: 'Filled with the demo data.\n' });
  });

  it('demo changes nothing in a database with users', async () => {
    const ended = await runToEnd([COMMAND_LINE, 'demo'], { DATA_DIR: await givenCopyOf(first.directory) });

    expect(ended).toEqual({ ...done, stdout: expect.stringMatching(/^Nothing changed: the database is not empty\./) });
  });
});

describe.concurrent('an interrupted start', () => {
  it('starts over after an unfinished first start, and names the file with the password of the first superadmin', async () => {
    const DATA_DIR = await givenDirectory();
    await mkdir(join(DATA_DIR, 'database'));
    await writeFile(join(DATA_DIR, 'database', 'PG_VERSION'), '');

    const service = await startService({ DATA_DIR, DEMO_DATA: 'off' });

    const [, email, file] = /"email":"(.+?)","file":"(.+?)"/.exec(service.printed())!;
    const password = /password +(\S+)/.exec(await readFile(file!, 'utf8'))![1]!;
    const answer = await makeCaller(service.url).post('/v1/authenticate', { email, password });
    expect(answer).toMatchObject({ status: 200, body: { data: { superadmin: true, superadmin_billing: true } } });
    expect(await readdir(join(DATA_DIR, 'database.unfinished'))).toEqual(['PG_VERSION']);
    const { stdout } = await service.stop();
    expect(stdout).not.toContain('demo');
    expect(stdout).not.toContain(password);
  });

  it('creates a new signing secret if only half of one was written', async () => {
    const DATA_DIR = await givenCopyOf(first.directory);
    await writeFile(join(DATA_DIR, 'jwt-secret'), 'half');

    const service = await startService({ DATA_DIR });

    expect((await signIn(service.url)).token).toBeDefined();
    expect((await readFile(join(DATA_DIR, 'jwt-secret'), 'utf8')).length).toBeGreaterThanOrEqual(32);
    await service.stop();
  });

  it('exits with 0 on a signal before it listens, even if the signal comes twice', async () => {
    const DATA_DIR = await givenCopyOf(first.directory);

    const ended = await runToEnd([SERVICE], { DATA_DIR }, async (child) => {
      await untilLocked(DATA_DIR);
      child.kill('SIGINT');
      child.kill('SIGINT');
    });

    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(ended.stdout).toContain('Stopping');
    expect(ended.stdout).not.toContain('listens');
  });

  it('leaves no process behind when npm is stopped', async () => {
    const DATA_DIR = await givenCopyOf(first.directory);
    const service = await startService({ DATA_DIR }, 'npm');

    await service.stop('SIGTERM');

    await vi.waitUntil(() => !isLocked(DATA_DIR), { timeout: 20_000, interval: 20 });
    await expect(fetch(`${service.url}/health/live`)).rejects.toThrow();
  });

  it.skipIf(!server.url)('waits while another node runs migrations, says so, and SIGTERM ends it', async () => {
    const pathname = `/deckhand_waiting_${randomBytes(6).toString('hex')}`;
    const settings = { DATABASE_URL: Object.assign(new URL(server.url!), { pathname }).href, JWT_SECRET };
    await createDatabase(settings.DATABASE_URL);
    const other = await connect(readSettings(settings));

    const ended = await other.db.transaction().execute(async (db) => {
      await query(db, sql`select pg_advisory_xact_lock(3735928559)`);
      return runToEnd([SERVICE], settings, async (child) => {
        await once(child.stdout!, 'data');
        child.kill('SIGTERM');
      });
    });

    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(ended.stdout).toContain('Another node is running migrations: waiting for up to 10 minutes.');
    await other.close();
    await onServer(server.url!, `drop database ${pathname.slice(1)}`);
  });

  const untilLocked = (directory: string) => vi.waitUntil(() => isLocked(directory), { timeout: 40_000, interval: 20 });
});

function isLocked(directory: string): boolean {
  const lock = new DatabaseSync(join(directory, 'lock'));
  try {
    lock.exec('begin exclusive; rollback');
    return false;
  } catch {
    return true;
  } finally {
    lock.close();
  }
}

describe.concurrent('a failed start', () => {
  it('1 for a second process on a data directory, and the first keeps working', async () => {
    const DATA_DIR = await givenCopyOf(first.directory);
    const service = await startService({ DATA_DIR });
    const caller = await signIn(service.url);

    const second = await runToEnd([SERVICE], { DATA_DIR });

    expect(exitOf(second)).toEqual([1, expect.stringContaining(`DATA_DIR: ${DATA_DIR} is in use by another process`)]);
    expect(await caller.post(CREATE, { title: 'Still here' })).toMatchObject({ status: 201 });
    expect(await service.stop()).toMatchObject({ code: 0 });
  });

  it('1 in one line if the database refuses a statement of the start', async () => {
    const DATA_DIR = await givenMigratedDirectory();
    await readRows({ DATA_DIR }, sql`alter table users add check (superadmin is false)`);

    const ended = await runToEnd([SERVICE], { DATA_DIR });

    expect(exitOf(ended)).toEqual([
      1,
      expect.stringMatching(
        /^Deckhand did not start\. The database refused a statement: .*"users.*check" \(23514\)\.$/,
      ),
    ]);
  });

  it("1 for a data directory that can't be written", async () => {
    const file = join(await givenDirectory(), 'file');
    await writeFile(file, '');

    const ended = await runToEnd([SERVICE], { DATA_DIR: join(file, 'data') });

    expect(exitOf(ended)).toEqual([1, expect.stringContaining(`DATA_DIR: ${join(file, 'data')} can't be written to`)]);
  });

  it('1 for a port in use, and a start on another one succeeds', async () => {
    const DATA_DIR = await givenCopyOf(first.directory);
    const { port, close } = await givenListener();

    const ended = await runToEnd([SERVICE], { DATA_DIR, PORT: String(port) });
    await close();
    const service = await startService({ DATA_DIR });

    expect(exitOf(ended)).toEqual([1, expect.stringContaining(`PORT: ${port} is in use on 127.0.0.1`)]);
    expect(await statusOf(service.url, '/health/ready')).toBe(200);
    await service.stop();
  });

  it('1 for an unreachable database server, without printing its password', async () => {
    const { port, close } = await givenListener();
    await close();
    const DATABASE_URL = `postgresql://deckhand:hunter2@127.0.0.1:${port}/boards`;

    const ended = await runToEnd([SERVICE], { DATABASE_URL, JWT_SECRET });

    expect(exitOf(ended)).toEqual([
      1,
      expect.stringContaining(`DATABASE_URL: can't use the database boards on 127.0.0.1:${port}`),
    ]);
    expect(ended.stdout + ended.stderr).not.toContain('hunter2');
  });

  it('1 for a server without TLS if sslmode requires it', async () => {
    const { port, close } = await givenListener((socket) => socket.once('data', () => socket.end('N')));
    const DATABASE_URL = `postgresql://deckhand@127.0.0.1:${port}/boards?sslmode=verify-full`;

    const ended = await runToEnd([SERVICE], { DATABASE_URL, JWT_SECRET });
    await close();

    expect(exitOf(ended)).toEqual([1, expect.stringContaining('does not support SSL')]);
  });

  it('1 for a server that accepts the login and then never answers', async () => {
    const letIn = Buffer.from([...Buffer.from('R'), 0, 0, 0, 8, 0, 0, 0, 0, ...Buffer.from('Z'), 0, 0, 0, 5, 73]);
    const { port, close } = await givenListener((socket) => socket.once('data', () => socket.write(letIn)));
    const DATABASE_URL = `postgresql://deckhand@127.0.0.1:${port}/boards`;

    const [ended, command] = await Promise.all([
      runToEnd([SERVICE], { DATABASE_URL, JWT_SECRET }),
      runToEnd([COMMAND_LINE, 'users', 'list'], { DATABASE_URL }),
    ]);
    void close();

    expect(exitOf(ended)).toEqual([1, expect.stringContaining('the database did not answer in time.')]);
    expect(exitOf(command)).toEqual([1, expect.stringContaining('the database did not answer in time.')]);
  });

  it('1 for a setting with a wrong value', async () => {
    const ended = await runToEnd([SERVICE], { PORT: 'abc' });

    expect(exitOf(ended)).toEqual([1, expect.stringContaining('PORT: must be a whole number from 0 to 65535.')]);
  });

  /** The exit code, and each line on stderr. */
  const exitOf = ({ code, stderr }: Ended) => [code, ...stderr.trimEnd().split('\n')];
});

/** A server that occupies a port. */
async function givenListener(onConnection: (socket: Socket) => void = () => {}) {
  const listener = createServer(onConnection).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  return { port, close: () => promisify(listener.close.bind(listener))() };
}
