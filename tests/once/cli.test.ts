import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { procedures } from '../../server/http/procedures.ts';
import { givenDirectory, removeProcesses, runToEnd } from '../harness/process.ts';
import { createDatabase, findTestServer, onServer } from '../harness/server.ts';

const server = await findTestServer();

afterAll(removeProcesses);

describe.concurrent('npm run deckhand', () => {
  it('--help tells of every command', async () => {
    const ended = await run(['--help']);

    expect(ended).toEqual({ ...done, stdout: expect.stringMatching(/^Usage: .*\n {2}migrate .*\n {2}demo /s) });
    for (const { command } of procedures) if (command) expect(ended.stdout).toContain(command);
  });

  it('COMMAND --help tells of its options', async () => {
    const { stdout } = await run(['users', 'create', '--help']);

    expect(stdout).toContain('Usage: npm run deckhand -- users create --name TEXT --email TEXT [OPTIONS]');
    expect(stdout).toMatch(/--\[no-\]superadmin +Let them/);
    expect(stdout).toMatch(/--password +Their password\. Always asked for/);
    expect((await run(['members', 'set', '--help'])).stdout).toContain('--role viewer|member|owner');
  });

  it.each([
    [['remove'], 'There is no command remove.'],
    [['toString'], 'There is no command toString.'],
    [['users', 'remove'], 'There is no command users remove.'],
    [['demo', 'twice'], "Unexpected argument 'twice'"],
    [['users', 'list', '--frobnicate'], "Unknown option '--frobnicate'"],
    [['users', 'create', '--name', 'x'], '--email is missing.'],
    [['users', 'create', '--password', 'secret'], "Unexpected argument 'secret'"],
  ])('2 for %j, and touches nothing', async (words, message) => {
    const DATA_DIR = await givenDirectory();

    const ended = await run(words, { DATA_DIR });

    expect(ended).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(message) });
    expect(ended.stderr).toMatch(/\nSee npm run deckhand -- (\w+ \w+ |demo )?--help\n$/);
    expect(await readdir(DATA_DIR)).toEqual([]);
  });

  it('1 for a setting with a wrong value, in one line', async () => {
    const ended = await run(['migrate'], { LOG_LEVEL: 'loud' });

    expect(ended).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^LOG_LEVEL: .+\n$/) });
  });
});

describe.skipIf(!server.url)('on a new PostgreSQL database', () => {
  const DATABASE_URL = Object.assign(new URL(server.url ?? 'postgresql://none/'), {
    pathname: `/deckhand_cli_${randomBytes(6).toString('hex')}`,
  }).href;
  const onDatabase = (words: string[], typed?: string) => run(words, { DATABASE_URL }, typed);
  beforeAll(() => createDatabase(DATABASE_URL));
  afterAll(() => onServer(server.url!, `drop database ${new URL(DATABASE_URL).pathname.slice(1)} with (force)`));

  it('makes the tables, the first superadmin, and says what is wrong on the way', async () => {
    const create = (email: string, typed: string) =>
      onDatabase(['users', 'create', '--name', 'First', '--email', email, '--superadmin', '--json'], typed);

    const tooEarly = await create('first@example.test', 'a good password\n');
    await onDatabase(['migrate']);
    const created = await create('first@example.test', 'a good password\n');
    const [again, short, listed, unknown] = await Promise.all([
      create('FIRST@example.test', 'a good password\n'),
      onDatabase(['users', 'create', '--name', 'x', '--email', 'x'], 'short\n'),
      onDatabase(['users', 'list']),
      onDatabase(['users', 'sign-out', '--id', '99']),
    ]);

    expect(tooEarly).toMatchObject({ code: 1, stdout: '' });
    expect(created).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(created.stdout)).toMatchObject({
      user: { id: 1, email: 'first@example.test', superadmin: true },
    });
    expect(again).toMatchObject({ code: 2, stdout: '' });
    expect(JSON.parse(again.stderr)).toMatchObject({
      error: { status: 422, errors: { email: ['email belongs to another user.'] } },
    });
    expect(short).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /^email must be an e-mail address\.\npassword must be at least 8 characters\.\nSee npm run deckhand/,
      ),
    });
    expect(listed.stdout).toMatch(/^id +name .*\n1 +First +first@example\.test /);
    expect(unknown).toMatchObject({ code: 1, stdout: '', stderr: 'There is no such user.\n' });
  });
});

const done = { code: 0, signal: null, stderr: '' };

const run = (words: string[], settings?: Record<string, string>, typed = '') =>
  runToEnd(['server/cli/main.ts', ...words], settings, async ({ stdin }) => void stdin!.end(typed));
