import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { runCommandLine } from '../../server/cli/run.ts';
import { connect } from '../../server/database/connect.ts';
import { lockDataDirectory } from '../../server/database/embedded/dataDirectory.ts';
import { query } from '../../server/database/query.ts';
import { createWithoutTables } from '../../server/database/snapshot.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { givenDemoDirectory, givenDirectory, givenMigratedDirectory } from '../harness/process.ts';
import { findTestServer, givenServerDatabase, onServer, type ServerDatabase } from '../harness/server.ts';
import { givenFilledDatabase } from '../harness/serverTemplates.ts';
import { failure, givenTerminal } from '../harness/terminal.ts';
import { startNode } from '../harness/usedService.ts';

// The first one makes templates of databases for all.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

/** Commands on a database. */

const server = await findTestServer();
const databases: ServerDatabase[] = [];
afterAll(async () => {
  for (const { remove } of databases) await remove();
});

const commandsOn =
  (settings: Record<string, string>) =>
  (words: string, ...typed: string[]) =>
    runCommandLine(words.split(' '), () => settings, givenTerminal(typed));

/** A new database; on a server, where commands take a tenth of the time. */
async function givenDatabase(contents?: 'migrated' | 'demo'): Promise<Record<string, string>> {
  if (!server.url) {
    const givenFilled = { migrated: givenMigratedDirectory, demo: givenDemoDirectory };
    return { DATA_DIR: await (contents ? givenFilled[contents] : givenDirectory)() };
  }
  const filled = contents && (await givenFilledDatabase('cli', contents));
  const database = filled ?? (await givenServerDatabase(server.url, 'cli'));
  databases.push(database);
  return { DATABASE_URL: database.url, JWT_SECRET: '' };
}

describe('on an embedded database', () => {
  it('1 without tables, with the command that creates them', async () => {
    const DATA_DIR = await givenDirectory();
    await createWithoutTables(DATA_DIR);

    const { complaint } = await commandsOn({ DATA_DIR })('boards list');

    expect(complaint).toMatch(/"projects" does not exist \(42P01\)\. .* with npx deckhand migrate\.$/);
  });

  it('1 while the service or another process uses it, with the address where it listens', async () => {
    const [served, locked] = [await givenMigratedDirectory(), await givenDirectory()];
    const listBoards = (DATA_DIR: string) => commandsOn({ DATA_DIR, PORT: '3456' })('boards list');
    const { url, stop } = await startNode({ DATA_DIR: served });
    const unlock = await lockDataDirectory(locked);

    const [whileServed, whileLocked] = [await listBoards(served), await listBoards(locked)];
    const withoutUrl = ['migrate', 'demo', 'database sizes', 'database verify', 'database backup --file never.tar.gz'];
    const refused = await Promise.all(withoutUrl.map((words) => commandsOn({ DATA_DIR: served })(words)));
    await stop();
    unlock();

    expect(whileServed.complaint).toContain(`with --url ${url} (sign in first: npx deckhand login --url ${url} `);
    expect(whileLocked).toEqual(
      failure(1, /^DATA_DIR: .* is in use by another process\..* --url http:\/\/127\.0\.0\.1:3456 /),
    );
    const complaint = `DATA_DIR: ${served} is in use by another process. If that is the service, stop it first.`;
    expect(refused).toEqual(withoutUrl.map(() => ({ exitCode: 1, complaint })));
  });
});

describe('database sizes', () => {
  it('shows the rows and bytes of each table, and what is due by the settings', async () => {
    const settings = await givenDatabase('demo');
    const command = commandsOn(settings);
    const database = await connect(readSettings({ ...settings, JWT_SECRET: 'x'.repeat(32) }));
    await query(database.db, sql`insert into sessions (user_id, expires_at) select id, now() from users limit 2`);
    await query(
      database.db,
      sql`update comments set deleted_at = now() - interval '91 days' where id = (select max(id) from comments)`,
    );
    await database.close();

    const { printed } = await command('database sizes');
    const json = JSON.parse((await command('database sizes --json')).printed!);
    const withSetting = commandsOn({ ...settings, DELETED_ROWS_KEPT_DAYS: '90' });
    const removing = JSON.parse((await withSetting('database sizes --json')).printed!);

    const of = (name: string, { tables }: typeof json) => tables.find(({ table }: { table: string }) => table === name);
    expect(printed).toMatch(/^table +rows +data +indexes +due\n/);
    expect(printed).toMatch(/^sessions +2 .* 2$/m);
    expect(printed).toContain('removes what is due: 2 rows');
    expect(printed).toContain('DELETED_ROWS_KEPT_DAYS is off. With 90, 1 deleted row would go, too');
    expect(of('sessions', json)).toMatchObject({ rows: 2, is_estimate: false, due_rows: 2 });
    expect(of('cards', json)).toMatchObject({ rows: 23, table_bytes: expect.any(Number), due_rows: 0 });
    expect(json.deleted_rows).toEqual({ kept_days: 90, rows: 1, bytes: expect.any(Number) });
    expect(removing.deleted_rows).toBeUndefined();
    expect(of('comments', removing)).toMatchObject({ due_rows: 1 });
  });
});

describe('on a new database', () => {
  it('creates the tables and the first superadmin, and explains errors', async () => {
    const command = commandsOn(await givenDatabase());
    const create = (email: string, ...typed: string[]) =>
      command(`users create --name First --email ${email} --superadmin --json`, ...typed, ...typed);

    expect((await command('users list')).complaint).toMatch(
      /^The database refused a statement: relation "users" does not exist \(42P01\)\. .* npx deckhand migrate\.$/,
    );
    expect((await command('migrate')).printed).toMatch(/^Applied: /);
    expect(JSON.parse((await create('first@example.test', 'a good password')).printed!)).toMatchObject({
      user: { id: 1, email: 'first@example.test', superadmin: true },
    });
    const refused = await create('FIRST', 'short');
    expect(refused).toMatchObject({ exitCode: 2 });
    expect(JSON.parse(refused.complaint!).error).toMatchObject({
      ...{ status: 422, reason: 'invalid_input' },
      errors: { email: ['email must be an e-mail address.'], password: ['password must be at least 8 characters.'] },
    });
    const common = await create('second@example.test', 'password1');
    expect(JSON.parse(common.complaint!).error).toMatchObject({
      ...{ reason: 'password_weak', errors: { password: [expect.stringContaining('most common passwords')] } },
    });

    expect((await command('users list')).printed).toMatch(/^id +name .*\n1 +First +first@example\.test /);
    expect(await command('users sign-out --id 99')).toEqual({ exitCode: 1, complaint: 'There is no such user.' });
    expect(await command('users sign-out --id 1')).toEqual({ exitCode: 0, printed: 'Done.' });
    expect(await command('members set --user-id 1 --project-id 7 --role boss')).toMatchObject(
      failure(2, /^role must be one of viewer, member, owner\.\nSee /),
    );
    expect(await command('users update --id 1 --no-superadmin')).toEqual({
      exitCode: 1,
      complaint: 'This is the last active superadmin with a password. Make somebody else a superadmin first.',
    });
    const { printed } = await command('users update --id 1 --language de --enable-ai');
    expect(printed).toMatch(/\nlanguage +de\nsuperadmin +yes\n/);
  });

  it('1 without a project, with the commands that create one; then it gets no demo data', async () => {
    const command = commandsOn(await givenDatabase('migrated'));

    for (const words of ['boards list', 'cards create --title x', 'boards list --project 1']) {
      expect(await command(words)).toEqual(
        failure(1, /^There is no project yet\. .* npx deckhand platforms create .* projects create/),
      );
    }
    await command('platforms create --name A');
    await command('projects create --platform-id 1 --name B');
    expect((await command('demo')).printed).toMatch(/^Nothing changed: the database is not empty\./);
    expect((await command('boards list')).complaint).toMatch(/^No project is selected, .* --project ID: /);
    expect(await command('boards list --project 1')).toEqual({ exitCode: 0, printed: 'None.' });
  });

  it.skipIf(!server.url)('waits with demo data for others that add rows, and explains refused statements', async () => {
    const settings = await givenDatabase('migrated');
    const command = commandsOn(settings);
    const database = await connect(readSettings({ ...settings, JWT_SECRET: 'x'.repeat(32) }));
    const waiting = sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;

    const { demo } = await database.db.transaction().execute(async (other) => {
      await query(other, sql`insert into platforms (name) values ('Added meanwhile')`);
      const demo = command('demo --json');
      await vi.waitUntil(async () => (await query(database.db, waiting)).length > 0, { interval: 20 });
      return { demo };
    });
    expect(await demo).toMatchObject({ exitCode: 0, printed: expect.stringContaining('"filled": false') });
    await database.close();

    await onServer(settings.DATABASE_URL!, 'alter table platforms add check (name > $$B$$) not valid');
    expect(await command('platforms create --name A')).toEqual(
      failure(1, /^The database refused a statement: .*"platforms_name_check" \(23514\)\.$/),
    );
    await onServer(settings.DATABASE_URL!, 'alter table platforms drop column updated_at');
    expect((await command('platforms list')).complaint).toMatch(
      /^The database refused a statement: column .*updated_at.* \(42703\)\. .* npx deckhand migrate\.$/,
    );
  });
});

describe('on the demo data', () => {
  let settings: Record<string, string>;
  let command: ReturnType<typeof commandsOn>;
  beforeAll(async () => {
    settings = await givenDatabase('demo');
    command = commandsOn(settings);
  });
  const jsonOf = async (words: string) => JSON.parse((await command(`${words} --json`)).printed!);

  it.each([
    ['boards list', 1, /^No project is selected, or .* --project ID: /],
    ['boards list --project 99', 1, /^No project is selected, /],
    ['boards list --project 1', 0, /Launch plan/],
    ['boards list --as outsider@demo.test', 0, /^(?!.*Launch plan)/s],
    ['subscriptions list', 0, /^id +platform_id +project_id +product /],
    ['cards create --title x --as viewer@demo.test', 1, /role member/],
    ['cards create --title x --project 1 --json', 0, /"created_by": null/],
    ['comments create --card-id 16 --comment x', 1, /^This needs an account\. Choose one with --as EMAIL\.$/],
    ['comments create --card-id 16 --comment x --json', 1, /"status": 403,\s+"reason": "no_account"/],
    ['comments create --card-id 16 --comment x --as Member@demo.test --json', 0, /"user_id": 3/],
    ['account who-am-i --as nobody@demo.test', 1, /^No active user has the e-mail address nobody@demo\.test\.$/],
    ['groups reorder --groups 7:x', 2, /^groups\.0\.position must be a whole number\.\n/],
  ])('%s exits with %i, and prints %s', async (words, exitCode, output) => {
    const { printed, complaint, ...ended } = await command(words);

    expect(ended).toEqual({ exitCode });
    expect(exitCode === 0 ? printed : complaint).toMatch(output);
  });

  it('creates a service without a prompt, and a key for it', async () => {
    const { user } = await jsonOf('users create --name Import --kind service');
    const key = `keys create --user-id ${user.id} --name x --scopes cards:read,tags:write`;

    expect(user).toMatchObject({ kind: 'service' });
    expect((await command(key)).complaint).toBe('This needs an account. Choose one with --as EMAIL.');
    expect((await command(`${key} --as admin@demo.test`)).printed).toMatch(
      /scopes +cards:read, tags:write\n(.*\n)*secret +dkh_\w{36}$/,
    );
  });

  it('takes positions, dates and empty values, and follows pages', async () => {
    const update = async (options: string) => (await jsonOf(`cards update --id 16 ${options}`)).card;

    expect(await command('groups reorder --groups 7:2,8:1')).toEqual({ exitCode: 0, printed: 'Done.' });
    expect((await command('boards get --id 2')).printed).toMatch(/ {2}8 .* {2}7 .* {2}9 /s);
    const due_date = '2026-01-31T00:00:00.000Z';
    expect(await update('--due-date 2026-01-31 --no-is-active')).toMatchObject({ due_date, is_active: false });
    expect(await update('--due-date= --owner-id=')).toMatchObject({ due_date: null, owner_id: null });
    expect((await jsonOf('cards move --id 16 --group-id=')).card).toMatchObject({ group_id: null });

    const { cards, next_cursor } = await jsonOf('cards list --project 1 --limit 3 --all');
    expect(next_cursor).toBeNull();
    expect(cards.length).toBeGreaterThan(9);
    expect(cards).toEqual((await jsonOf('cards list --project 1 --limit 200')).cards);
  });

  it.skipIf(!server.url)('prints what it prints on the service of the database', async () => {
    const { url, stop } = await startNode({ ...settings, JWT_SECRET: 'a secret for tests that nobody else uses' });
    const onService = commandsOn({ HOME: await givenDirectory(), DECKHAND_URL: url });
    await onService('login --email owner@demo.test', 'demo-password');

    for (const words of [
      ...['boards get --id 2', 'boards list', 'boards list --project 2', 'boards list --project 3'],
      ...['cards list --limit 2', 'cards list --limit 2 --all --priority normal', 'comments list --card-id 16'],
      ...['projects list-own', 'members list', 'boards get --id 999', 'boards get --id x', 'users list'],
      'groups reorder --groups 7:1,7:2',
    ]) {
      for (const how of ['', ' --json']) {
        expect(await onService(words + how)).toEqual(await command(`${words}${how} --as OWNER@demo.test`));
      }
    }
    await stop();
  });

  it('1 for what needs the secret of the service, and nothing changes', async () => {
    const start = (secret: string) =>
      commandsOn({ ...settings, JWT_SECRET: secret })(
        'account start-second-factor --as member@demo.test',
        'demo-password',
      );

    if (server.url) {
      expect(await start('')).toEqual(
        failure(1, /^JWT_SECRET: must be set to that of the service for this command\.$/),
      );
    }
    expect((await start('a secret for tests that nobody else uses')).printed).toMatch(/^secret .*\notpauth_uri /);
  });
});
