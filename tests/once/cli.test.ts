import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { answerTo } from '../../server/cli/answer.ts';
import { procedures } from '../../server/procedures.ts';
import { givenMigratedDirectory, removeProcesses, runToEnd } from '../harness/process.ts';
import { createDatabase, findTestServer, onServer } from '../harness/server.ts';

const server = await findTestServer();

/** For commands that must not open a database: reading the settings throws. */
const noSettings = () => {
  throw new Error('The settings were read.');
};

afterAll(removeProcesses);

describe('npm run deckhand', () => {
  it('--help lists all commands, or those of one noun', async () => {
    const { exitCode, printed } = await answerTo(['--help'], noSettings);

    expect(exitCode).toBe(0);
    expect(printed).toMatch(/^Usage: .*\n {2}migrate .*\n {2}demo /s);
    for (const { name, summary } of procedures) if (name !== 'auth.authenticate') expect(printed).toContain(summary);
    expect(await answerTo([], noSettings)).toEqual({ exitCode: 0, printed });
    expect((await answerTo(['users'], noSettings)).printed).toMatch(/users create .*users list /s);
  });

  it('COMMAND --help lists its options', async () => {
    const { printed } = await answerTo(['users', 'create', '--help'], noSettings);

    expect(printed).toContain('Usage: npm run deckhand -- users create --name TEXT --email TEXT [OPTIONS]');
    expect(printed).toMatch(/--\[no-\]superadmin +Let them/);
    expect(printed).toMatch(/--password +Their password\. Always prompted for/);
    expect((await answerTo(['members', 'set', '--help'], noSettings)).printed).toContain('--role viewer|member|owner');
  });

  it.each([
    [['remove'], 'There is no command remove.'],
    [['toString'], 'There is no command toString.'],
    [['users', 'remove'], 'There is no command users remove.'],
    [['demo', 'twice'], "Unexpected argument 'twice'"],
    [['users', 'list', '--frobnicate'], "Unknown option '--frobnicate'"],
    [['users', 'create', '--name', 'x'], '--email is missing.'],
    [['users', 'create', '--password', 'secret'], "Unexpected argument 'secret'"],
  ])('2 for %j, before the database is opened', async (words, message) => {
    const { exitCode, complaint } = await answerTo(words, noSettings);

    expect(exitCode).toBe(2);
    expect(complaint).toContain(message);
    expect(complaint).toMatch(/\nSee npm run deckhand -- (\w+ \w+ |demo )?--help$/);
  });

  it('1 for a setting with a wrong value, in one line', async () => {
    const ended = await runToEnd(['server/cli/main.ts', 'migrate'], { LOG_LEVEL: 'loud' });
    const { complaint } = await answerTo(['migrate', '--json'], () => ({ LOG_LEVEL: 'loud' }));

    expect(ended).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^LOG_LEVEL: .+\n$/) });
    expect(JSON.parse(String(complaint))).toEqual({ error: { message: ended.stderr.trimEnd() } });
  });
});

describe('on an embedded database', () => {
  it('a list with --json prints JSON and nothing else', async () => {
    const DATA_DIR = await givenMigratedDirectory();

    const ended = await runToEnd(['server/cli/main.ts', 'platforms', 'list', '--json'], { DATA_DIR });

    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(ended.stdout)).toEqual({ platforms: [], next_cursor: null });
  });
});

describe.skipIf(!server.url)('on a new PostgreSQL database', () => {
  const DATABASE_URL = Object.assign(new URL(server.url ?? 'postgresql://none/'), {
    pathname: `/deckhand_cli_${randomBytes(6).toString('hex')}`,
  }).href;
  const command = (...words: string[]) => answerTo(words, () => ({ DATABASE_URL, JWT_SECRET: '' }));
  beforeAll(() => createDatabase(DATABASE_URL));
  afterAll(() => onServer(server.url!, `drop database ${new URL(DATABASE_URL).pathname.slice(1)} with (force)`));

  it('creates the tables and the first superadmin, and explains errors', async () => {
    const create = (email: string, typed: string) =>
      runToEnd(
        ['server/cli/main.ts', 'users', 'create', '--name', 'First', '--email', email, '--superadmin', '--json'],
        { DATABASE_URL },
        async ({ stdin }) => void stdin!.end(typed),
      );

    expect(await command('users', 'list')).toEqual({
      exitCode: 1,
      complaint: 'The tables do not exist yet: create them with npm run deckhand -- migrate.',
    });
    expect((await command('migrate')).printed).toMatch(/^Applied: /);
    const created = await create('first@example.test', 'a good password\n');
    expect(created).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(created.stdout)).toMatchObject({
      user: { id: 1, email: 'first@example.test', superadmin: true },
    });
    const refused = await create('FIRST', 'short\n');
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(JSON.parse(refused.stderr).error).toMatchObject({ status: 422, reason: 'invalid_input' });
    expect(JSON.parse(refused.stderr).error.errors).toEqual({
      email: ['email must be an e-mail address.'],
      password: ['password must be at least 8 characters.'],
    });

    const common = await create('second@example.test', 'password1\n');
    expect(JSON.parse(common.stderr).error).toMatchObject({
      reason: 'password_weak',
      errors: { password: ['password is one of the most common passwords: choose one that nobody would guess.'] },
    });

    expect((await command('users', 'list')).printed).toMatch(/^id +name .*\n1 +First +first@example\.test /);
    expect(await command('users', 'sign-out', '--id', '99')).toEqual({
      exitCode: 1,
      complaint: 'There is no such user.',
    });
    expect(await command('users', 'sign-out', '--id', '1')).toEqual({ exitCode: 0, printed: 'Done.' });
    expect(await command('members', 'set', '--user-id', '1', '--project-id', '7', '--role', 'boss')).toMatchObject({
      exitCode: 2,
      complaint: expect.stringMatching(/^role must be one of viewer, member, owner\.\nSee /),
    });
    expect((await command('users', 'update', '--id', '1', '--no-superadmin', '--language', 'de')).printed).toMatch(
      /\nlanguage +de\nsuperadmin +no\n/,
    );
  });
});
