import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { procedures } from '../../server/api/procedures.ts';
import { COMMANDS } from '../../server/cli/commands.ts';
import { COMMON, kebab, optionsOf } from '../../server/cli/options.ts';
import { runCommandLine } from '../../server/cli/run.ts';
import { connect } from '../../server/database/connect.ts';
import { lockDataDirectory } from '../../server/database/embedded/dataDirectory.ts';
import { query } from '../../server/database/query.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { givenDirectory, givenMigratedDirectory, removeProcesses, runToEnd } from '../harness/process.ts';
import { createDatabase, findTestServer, onServer } from '../harness/server.ts';
import { givenTerminal } from '../harness/terminal.ts';
import { startNode } from '../harness/usedService.ts';

const server = await findTestServer();

/** For commands that must not open a database: reading the settings throws. */
const noSettings = () => {
  throw new Error('The settings were read.');
};

afterAll(removeProcesses);

describe('npx deckhand', () => {
  it('--help lists every procedure by its noun, and NOUN --help what its commands do', async () => {
    const { exitCode, printed } = await runCommandLine(['--help'], noSettings);

    expect(exitCode).toBe(0);
    expect(printed).toMatch(/^Usage: .*\n {2}migrate +Run .*\n {2}demo .*\n {2}login .*\n {2}boards +get, list/s);
    expect(await runCommandLine([], noSettings)).toEqual({ exitCode: 0, printed });
    for (const [noun, verbs] of Map.groupBy(procedures, ({ name }) => kebab(name.split('.')[0]!))) {
      if (noun === 'auth') continue;
      const help = (await runCommandLine([noun, '--help'], noSettings)).printed;
      expect(printed).toContain(`\n  ${noun} `);
      for (const { name, summary } of verbs) {
        expect(help).toMatch(new RegExp(`\\n  ${noun} ${kebab(name.split('.')[1]!)} +${summary}`));
      }
    }
    expect(Math.max(...printed!.split('\n').map((line) => line.length))).toBeLessThanOrEqual(120);
  });

  it('has no option that means two things', () => {
    const names = Object.keys(COMMON);

    for (const [name, { input }] of COMMANDS) {
      expect(
        optionsOf(input).filter(({ flag }) => names.includes(flag)),
        name,
      ).toEqual([]);
    }
  });

  it('COMMAND --help speaks of options and empty values, not of sent fields and null', async () => {
    const { printed } = await runCommandLine(['users', 'update', '--help'], noSettings);

    expect(printed).toMatch(/--name TEXT +Their name\. Not changed if not given\.\n/);
    expect(printed).toMatch(/--language TEXT +Their language\. Not changed if not given; '' clears it\.\n/);
    for (const [name, { input }] of COMMANDS) {
      if (!input) continue;
      const options = (await runCommandLine([...name.split(' '), '--help'], noSettings)).printed!.split('Usage:')[1];
      expect(options, name).not.toMatch(/not\s+sent|\bnull\b|X-Project-Id/);
    }
  });

  it('COMMAND --help names the default and the maximum of a page', async () => {
    const { printed } = await runCommandLine(['tags', 'list', '--help'], noSettings);

    expect(printed!.replaceAll(/\s+/g, ' ')).toContain(
      '--limit N The maximum number of rows, 1 to 200; 50 if not given.',
    );
  });

  it('COMMAND --help lists its options', async () => {
    const { printed } = await runCommandLine(['users', 'create', '--help'], noSettings);

    expect(printed).toContain('Usage: npx deckhand users create --name TEXT --email TEXT [OPTIONS]');
    expect(printed).toMatch(/--\[no-\]superadmin +Whether they/);
    expect(printed).toMatch(
      /--password +Their password; services have none\. Prompted for, except with --kind\s+service/,
    );
    expect((await runCommandLine(['account', 'change-password', '--help'], noSettings)).printed).toMatch(
      /Always prompted for/,
    );
    expect(printed).toMatch(
      /^Create a user\.\n\nCreates a person with a password, or a service, which calls with API keys\. For\s+superadmins\.\n\nUsage: /,
    );
    expect((await runCommandLine(['master-boards', 'push', '--help'], noSettings)).printed).toContain(
      'Like a sync, but without cards',
    );
    expect((await runCommandLine(['members', 'set', '--help'], noSettings)).printed).toContain(
      '--role viewer|member|owner',
    );
  });

  it.each([
    [['remove'], 'There is no command remove.\n'],
    [['bords'], 'There is no command bords. Did you mean boards?\n'],
    [['board', 'lsit'], 'There is no command board lsit. Did you mean boards list?\n'],
    [['lgoin', '--email', 'x'], 'There is no command lgoin. Did you mean login?\n'],
    [['toString'], 'There is no command toString.'],
    [['users', 'remove'], 'There is no command users remove.'],
    [['demo', 'twice'], "Unexpected argument 'twice'"],
    [['users', 'list', '--frobnicate'], 'There is no option --frobnicate.\n'],
    [['users', 'list', '--serach', 'x'], 'There is no option --serach. Did you mean --search?\n'],
    [['boards', 'get', '2'], "Unexpected argument '2'. Did you mean --id 2?\n"],
    [['boards', 'get', '--id'], '--id needs a value'],
    [['boards', 'get', '--id', '-1'], '--id needs a value; one that begins with a dash is written as --id=-1.'],
    [['cards', 'list', '--all=yes'], '--all takes no value.'],
    [['cards', 'list', '--json=yes'], '--json takes no value.'],
    [['users', 'create', '--name', 'x'], '--email is missing.'],
    [
      ['users', 'create', '--password', 'secret'],
      "Unexpected argument 'secret': --password is prompted for, or read from standard input.",
    ],
    [['boards', 'list', '--project', 'x'], '--project must be the id of a project.'],
    [['users', 'list', '--project', '1'], 'There is no option --project.'],
    [['groups', 'reorder', '--groups', '7'], '--groups must be ids with their positions, such as 7:2,8:1.'],
    [['groups', 'reorder', '--groups', '7:1:2'], '--groups must be ids with their positions, such as 7:2,8:1.'],
    [['boards', 'get', '--id', '1', '--all'], 'There is no option --all.'],
  ])('2 for %j, before the database is opened', async (words, message) => {
    const { exitCode, complaint } = await runCommandLine(words, noSettings);

    expect(exitCode).toBe(2);
    expect(complaint).toContain(message);
    expect(complaint).toMatch(/\nSee npx deckhand (\w+ \w+ |demo |users )?--help$/);
  });

  it('1 for a setting with a wrong value, in one line', async () => {
    const ended = await runToEnd(['server/cli/deckhand.js', 'migrate'], { LOG_LEVEL: 'loud' });
    const { complaint } = await runCommandLine(['migrate', '--json'], () => ({ LOG_LEVEL: 'loud' }));

    expect(ended).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^LOG_LEVEL: .+\n$/) });
    expect(JSON.parse(String(complaint))).toEqual({ error: { message: ended.stderr.trimEnd() } });
  });
});

describe('on an embedded database', () => {
  it('a list with --json prints JSON and nothing else', async () => {
    const DATA_DIR = await givenMigratedDirectory();

    const ended = await runToEnd(['server/cli/deckhand.js', 'platforms', 'list', '--json'], { DATA_DIR });

    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(ended.stdout)).toEqual({ platforms: [], next_cursor: null });
  });

  it('1 without a project, with the commands that create one; then it gets no demo data', async () => {
    const settings = { DATA_DIR: await givenMigratedDirectory() };
    const command = (...words: string[]) => runCommandLine(words, () => settings, givenTerminal());

    for (const words of [
      ['boards', 'list'],
      ['cards', 'create', '--title', 'x'],
      ['boards', 'list', '--project', '1'],
    ]) {
      expect(await command(...words)).toEqual({
        exitCode: 1,
        complaint:
          'There is no project yet. Create a platform and a project first: npx deckhand platforms create --name NAME, then npx deckhand projects create --platform-id ID --name NAME.',
      });
    }
    await command('platforms', 'create', '--name', 'A');
    await command('projects', 'create', '--platform-id', '1', '--name', 'B');
    expect(await command('demo')).toEqual({
      exitCode: 0,
      printed:
        'Nothing changed: the database is not empty. For the demo data, choose another DATA_DIR or DATABASE_URL.',
    });
    expect((await command('boards', 'list')).complaint).toMatch(/^No project is selected, .* --project ID: /);
    expect(await command('boards', 'list', '--project', '1')).toEqual({ exitCode: 0, printed: 'None.' });
  });

  it('1 without tables, with the command that creates them', async () => {
    const DATA_DIR = await givenDirectory();

    const { complaint } = await runCommandLine(['boards', 'list'], () => ({ DATA_DIR }), givenTerminal());

    expect(complaint).toMatch(/"projects" does not exist \(42P01\)\. .* with npx deckhand migrate\.$/);
  });

  it('1 while the service uses it, with the address where it listens', async () => {
    const DATA_DIR = await givenMigratedDirectory();
    const { url, stop } = await startNode({ DATA_DIR });

    const { complaint } = await runCommandLine(['boards', 'list'], () => ({ DATA_DIR }));
    await stop();

    expect(complaint).toContain(`act on it with --url ${url} (sign in first: npx deckhand login --url ${url} `);
  });

  it('1 while another process uses it, with the address of the settings', async () => {
    const DATA_DIR = await givenMigratedDirectory();
    const unlock = await lockDataDirectory(DATA_DIR);

    const { exitCode, complaint } = await runCommandLine(['boards', 'list'], () => ({ DATA_DIR, PORT: '3456' }));
    unlock();

    expect(exitCode).toBe(1);
    expect(complaint).toBe(
      `DATA_DIR: ${DATA_DIR} is in use by another process. If that is the service, act on it with --url http://127.0.0.1:3456 (sign in first: npx deckhand login --url http://127.0.0.1:3456 --email EMAIL), or stop it.`,
    );
  });
});

describe.skipIf(!server.url)('on a new PostgreSQL database', () => {
  const DATABASE_URL = Object.assign(new URL(server.url ?? 'postgresql://none/'), {
    pathname: `/deckhand_cli_${randomBytes(6).toString('hex')}`,
  }).href;
  const command = (...words: string[]) => runCommandLine(words, () => ({ DATABASE_URL, JWT_SECRET: '' }));
  beforeAll(() => createDatabase(DATABASE_URL));
  afterAll(() => onServer(server.url!, `drop database ${new URL(DATABASE_URL).pathname.slice(1)} with (force)`));

  it('creates the tables and the first superadmin, and explains errors', async () => {
    const create = (email: string, typed: string) =>
      runToEnd(
        ['server/cli/deckhand.js', 'users', 'create', '--name', 'First', '--email', email, '--superadmin', '--json'],
        { DATABASE_URL },
        async ({ stdin }) => void stdin!.end(typed),
      );

    expect(await command('users', 'list')).toEqual({
      exitCode: 1,
      complaint:
        'The database refused a statement: relation "users" does not exist (42P01). The tables are missing or those of another version: bring them up to date with npx deckhand migrate.',
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

  it('demo waits for another command that adds rows, and then changes nothing', async () => {
    const onNew = await givenCommands();
    await onNew('migrate');
    const database = await connect(readSettings({ DATABASE_URL: onNew.url, JWT_SECRET: 'x'.repeat(32) }));
    const isWaiting = async () =>
      (
        await query(
          database.db,
          sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        )
      ).length > 0;

    const demo = await database.db.transaction().execute(async (other) => {
      await query(other, sql`insert into platforms (name) values ('Added meanwhile')`);
      const answer = onNew('demo', '--json');
      await vi.waitUntil(isWaiting, { timeout: 20_000, interval: 20 });
      return { answer };
    });

    expect(await demo.answer).toMatchObject({ exitCode: 0, printed: expect.stringContaining('"filled": false') });
    await database.close();
  });

  it('1 with one line if the database refuses a statement', async () => {
    const onNew = await givenCommands();
    await onNew('migrate');
    await onServer(onNew.url, 'alter table platforms add check (false), drop column updated_at');

    expect((await onNew('platforms', 'list')).complaint).toMatch(
      /^The database refused a statement: column .*updated_at.* \(42703\)\. .* npx deckhand migrate\.$/,
    );
    await onServer(onNew.url, 'alter table platforms add column updated_at timestamptz not null default now()');
    expect(await onNew('platforms', 'create', '--name', 'x')).toEqual({
      exitCode: 1,
      complaint: expect.stringMatching(/^The database refused a statement: .*"platforms_check" \(23514\)\.$/),
    });
  });

  it('acts as the operator, as a user, and in the chosen project', async () => {
    const onDemo = await givenDemo();

    expect((await onDemo('boards', 'list')).complaint).toBe(
      'No project is selected, or you have no access to it. Choose one with --project ID: npx deckhand projects list-own lists yours, npx deckhand projects list all.',
    );
    expect((await onDemo('boards', 'list', '--project', '99')).exitCode).toBe(1);
    expect((await onDemo('subscriptions', 'list')).printed).toMatch(/^id +platform_id +project_id +product /);
    expect((await onDemo('boards', 'list', '--project', '1')).printed).toContain('Launch plan');
    expect((await onDemo('boards', 'list', '--as', 'outsider@demo.test')).printed).not.toContain('Launch plan');
    expect((await onDemo('cards', 'create', '--title', 'x', '--as', 'viewer@demo.test')).complaint).toBe(
      'This requires the role member; yours in this project is viewer.',
    );
    expect((await onDemo('cards', 'create', '--title', 'x', '--project', '1', '--json')).printed).toContain(
      '"created_by": null',
    );

    const comment = ['comments', 'create', '--card-id', '16', '--comment', 'x', '--json'];
    expect(JSON.parse(String((await onDemo(...comment)).complaint)).error).toEqual({
      message: 'This needs an account. Choose one with --as EMAIL.',
      status: 403,
      reason: 'no_account',
    });
    expect((await onDemo(...comment, '--as', 'Member@demo.test')).printed).toContain('"user_id": 3');
    expect((await onDemo('account', 'who-am-i', '--as', 'nobody@demo.test')).complaint).toBe(
      'No active user has the e-mail address nobody@demo.test.',
    );
  });

  it('creates a service without a prompt, and a key for it', async () => {
    const onDemo = await givenDemo();

    const { printed } = await onDemo('users', 'create', '--name', 'Import', '--kind', 'service', '--json');
    const { user } = JSON.parse(printed!);
    const key = ['keys', 'create', '--user-id', `${user.id}`, '--name', 'x', '--scopes', 'cards:read,tags:write'];

    expect(user).toMatchObject({ kind: 'service' });
    expect((await onDemo(...key)).complaint).toBe('This needs an account. Choose one with --as EMAIL.');
    expect((await onDemo(...key, '--as', 'admin@demo.test')).printed).toMatch(
      /scopes +cards:read, tags:write\n(.*\n)*secret +dkh_\w{36}$/,
    );
  });

  it('takes positions, dates and empty values, and follows pages', async () => {
    const onDemo = await givenDemo();
    const card = async (...words: string[]) => JSON.parse((await onDemo(...words, '--json')).printed!).card;

    expect(await onDemo('groups', 'reorder', '--groups', '7:2, 8:1')).toEqual({ exitCode: 0, printed: 'Done.' });
    expect((await onDemo('boards', 'get', '--id', '2')).printed).toMatch(/ {2}8 .* {2}7 .* {2}9 /s);
    expect(await onDemo('groups', 'reorder', '--groups', '7:x')).toMatchObject({
      exitCode: 2,
      complaint: expect.stringMatching(/^groups\.0\.position must be a whole number\.\n/),
    });
    expect(await card('cards', 'update', '--id', '16', '--due-date', '2026-01-31', '--no-is-active')).toMatchObject({
      due_date: '2026-01-31T00:00:00.000Z',
      is_active: false,
    });
    expect(await card('cards', 'update', '--id', '16', '--due-date', '', '--owner-id', '')).toMatchObject({
      due_date: null,
      owner_id: null,
    });
    expect(await card('cards', 'move', '--id', '16', '--group-id', '')).toMatchObject({ group_id: null });

    const all = await onDemo('cards', 'list', '--project', '1', '--limit', '3', '--all', '--json');
    const { cards, next_cursor } = JSON.parse(all.printed!);
    expect({ count: cards.length, next_cursor }).toEqual({ count: 13, next_cursor: null });
  });

  it('1 for what needs the secret of the service, and nothing changes', async () => {
    const onDemo = await givenDemo();
    const words = ['account', 'start-second-factor', '--as', 'member@demo.test'];
    const start = (secret: string) => onDemo.with({ JWT_SECRET: secret }, ['demo-password'], ...words);

    expect(await start('')).toEqual({
      exitCode: 1,
      complaint: 'JWT_SECRET: must be set to that of the service for this command.',
    });
    expect((await start('a secret for tests that nobody else uses')).printed).toMatch(/^secret .*\notpauth_uri /);
  });
});

/** Commands on a new database. */
async function givenCommands() {
  const name = `deckhand_cli_${randomBytes(6).toString('hex')}`;
  const DATABASE_URL = Object.assign(new URL(server.url!), { pathname: `/${name}` }).href;
  await createDatabase(DATABASE_URL);
  databases.push(name);
  const onNew = (...words: string[]) => runCommandLine(words, () => ({ DATABASE_URL }), givenTerminal());
  return Object.assign(onNew, {
    url: DATABASE_URL,
    with: (settings: Record<string, string>, answers: string[], ...words: string[]) =>
      runCommandLine(words, () => ({ DATABASE_URL, ...settings }), givenTerminal(answers)),
  });
}

/** The same with the demo data. */
async function givenDemo() {
  const onDemo = await givenCommands();
  await onDemo('demo');
  return onDemo;
}

const databases: string[] = [];
afterAll(async () => {
  for (const name of databases) await onServer(server.url!, `drop database ${name} with (force)`);
});
