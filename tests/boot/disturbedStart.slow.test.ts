import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { sql } from 'kysely';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { runCommandLine } from '../../server/cli/run.ts';
import { connect } from '../../server/database/connect.ts';
import { query } from '../../server/database/query.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { makeCaller } from '../harness/caller.ts';
import {
  givenDemoDirectory,
  givenDirectory,
  givenMigratedDirectory,
  readRows,
  removeProcesses,
  runToEnd,
  signIn,
  startService,
  statusOf,
} from '../harness/process.ts';
import { findTestServer, givenServerDatabase } from '../harness/server.ts';
import { startNode } from '../harness/usedService.ts';

const server = await findTestServer();
const SERVICE = 'server/boot/main.js';
const CREATE = '/services/operations/v1/operations/cards/create';
const JWT_SECRET = 'a secret for tests that nobody else uses';

afterAll(removeProcesses);

const run = (words: string, settings: Record<string, string>) => runCommandLine(words.split(' '), () => settings);

describe('npx deckhand', () => {
  it('migrate creates the tables in a new directory, demo fills it, and a second one changes nothing', async () => {
    const settings = { DATA_DIR: await givenDirectory() };

    // Those that `npm ci` prepared, unless files of the database have changed since.
    const created = expect.stringMatching(/^(The tables are up to date\.|Applied: Migration\w+(, Migration\w+)*)$/);
    expect(await run('migrate', settings)).toEqual({ exitCode: 0, printed: created });
    expect(await run('demo', settings)).toEqual({ exitCode: 0, printed: 'Filled with the demo data.' });
    const again = expect.stringMatching(/^Nothing changed: the database is not empty\./);
    expect(await run('demo', settings)).toEqual({ exitCode: 0, printed: again });
  });
});

describe.concurrent('a failed start', () => {
  /** The message of its error, which the process prints in one line. */
  const failureOf = (settings: Record<string, string>): Promise<string> =>
    startNode(settings).then(
      () => expect.unreachable(),
      ({ message }: Error) => message,
    );
  const onPort = (port: number, more = '') => ({
    DATABASE_URL: `postgresql://deckhand:hunter2@127.0.0.1:${port}/boards${more}`,
    JWT_SECRET,
  });

  // First, since it waits the longest.
  it('for a server that accepts the login and then never answers', async () => {
    const letIn = Buffer.from([...Buffer.from('R'), 0, 0, 0, 8, 0, 0, 0, 0, ...Buffer.from('Z'), 0, 0, 0, 5, 73]);
    const { port, close } = await givenListener((socket) => socket.once('data', () => socket.write(letIn)));

    const [failure, command] = await Promise.all([failureOf(onPort(port)), run('users list', onPort(port))]);
    void close();

    expect(failure).toContain('the database did not answer in time.');
    expect(command).toEqual({
      exitCode: 1,
      complaint: expect.stringContaining('the database did not answer in time.'),
    });
  });

  it('1 with one line, without the password of the database', async () => {
    const { port, close } = await givenListener();
    await close();

    const unreachable = await runToEnd([SERVICE], onPort(port));
    const wrong = await runToEnd([SERVICE], { PORT: 'abc' });

    expect(unreachable).toMatchObject({
      ...{ code: 1, stdout: expect.not.stringContaining('hunter2') },
      stderr: expect.stringMatching(
        new RegExp(`^Deckhand did not start\\. DATABASE_URL: can't use the database boards on 127.0.0.1:${port}.*\n$`),
      ),
    });
    expect(unreachable.stderr).not.toContain('hunter2');
    expect(wrong).toMatchObject({
      ...{ code: 1, stdout: '' },
      stderr: 'Deckhand did not start. PORT: must be a whole number from 0 to 65535.\n',
    });
  });

  it('for a second process on a data directory, and the first keeps working', async () => {
    const DATA_DIR = await givenDemoDirectory();
    const service = await startNode({ DATA_DIR });
    const caller = await signIn(service.url);

    expect(await failureOf({ DATA_DIR })).toContain(`DATA_DIR: ${DATA_DIR} is in use by another process`);
    expect(await caller.post(CREATE, { title: 'Still here' })).toMatchObject({ status: 201 });
    await service.stop();
  });

  it('if the database refuses a statement of the start', async () => {
    const DATA_DIR = await givenMigratedDirectory();
    await readRows({ DATA_DIR }, sql`alter table users add check (superadmin is false)`);

    expect(await failureOf({ DATA_DIR })).toMatch(/^The database refused a statement: .*"users.*check" \(23514\)\.$/);
  });

  it("for a data directory that can't be written", async () => {
    const file = join(await givenDirectory(), 'file');
    await writeFile(file, '');
    const DATA_DIR = join(file, 'data');

    expect(await failureOf({ DATA_DIR })).toContain(`DATA_DIR: ${DATA_DIR} can't be written to`);
  });

  it('for a port in use, and a start on another one succeeds', async () => {
    const DATA_DIR = await givenDemoDirectory();
    const { port, close } = await givenListener();

    expect(await failureOf({ DATA_DIR, PORT: String(port) })).toContain(`PORT: ${port} is in use on 127.0.0.1`);
    await close();
    const service = await startNode({ DATA_DIR });
    expect(await statusOf(service.url, '/health/ready')).toBe(200);
    await service.stop();
  });

  it('for a server without TLS if sslmode requires it', async () => {
    const { port, close } = await givenListener((socket) => socket.once('data', () => socket.end('N')));

    expect(await failureOf(onPort(port, '?sslmode=verify-full'))).toContain('does not support SSL');
    await close();
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
    const DATA_DIR = await givenDemoDirectory();
    await writeFile(join(DATA_DIR, 'jwt-secret'), 'half');

    const service = await startNode({ DATA_DIR });

    expect((await signIn(service.url)).token).toBeDefined();
    expect((await readFile(join(DATA_DIR, 'jwt-secret'), 'utf8')).length).toBeGreaterThanOrEqual(32);
    await service.stop();
  });

  it('exits with 0 on a signal before it listens, even if the signal comes twice', async () => {
    const DATA_DIR = await givenDemoDirectory();

    const ended = await runToEnd([SERVICE], { DATA_DIR, NODE_OPTIONS: INTERRUPTED });

    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(ended.stdout).toContain('Stopping');
    expect(ended.stdout).not.toContain('listens');
  });

  it('leaves no process behind when npm is stopped', async () => {
    const DATA_DIR = await givenDemoDirectory();
    const service = await startService({ DATA_DIR }, 'npm');

    await service.stop('SIGTERM');

    await vi.waitUntil(() => !isLocked(DATA_DIR), { interval: 20 });
    await expect(fetch(`${service.url}/health/live`)).rejects.toThrow();
  });

  it.skipIf(!server.url)('waits while another node runs migrations, says so, and SIGTERM ends it', async () => {
    const { url, remove } = await givenServerDatabase(server.url!, 'waiting');
    const settings = { DATABASE_URL: url, JWT_SECRET };
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
    await remove();
  });
});

/** The service gets the signal twice when it is about to listen, and only then goes on. */
const INTERRUPTED = `--import=data:text/javascript,${encodeURIComponent(`
  import { Server } from 'node:net';
  const { listen } = Server.prototype;
  Server.prototype.listen = function (...options) {
    Server.prototype.listen = listen;
    const waiting = setInterval(() => undefined, 1000);
    process.once('SIGINT', () => {
      clearInterval(waiting);
      listen.apply(this, options);
    });
    for (let times = 0; times < 2; times++) process.kill(process.pid, 'SIGINT');
    return this;
  };
`)}`;

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

/** A server that occupies a port. */
async function givenListener(onConnection: (socket: Socket) => void = () => {}) {
  const listener = createServer(onConnection).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  return { port, close: () => promisify(listener.close.bind(listener))() };
}
