import { lstat, mkdir, readdir, readFile, rmdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { runCommandLine } from '../../server/cli/run.ts';
import { connect, type Database } from '../../server/database/connect.ts';
import { IN_MEMORY } from '../../server/database/embedded/location.ts';
import { query } from '../../server/database/query.ts';
import { addFirstUsers, warnOfUsers } from '../../server/database/seed/firstUsers.ts';
import { readSettings } from '../../server/runtime/env.ts';
import type { Announce, Log } from '../../server/runtime/log.ts';
import { hashPassword, isPassword } from '../../server/security/passwords.ts';
import { givenDemoDatabase, givenDirectory, migratedArchive, readRows } from '../harness/process.ts';
import { givenTerminal } from '../harness/terminal.ts';

type UserRow = {
  id: number;
  email: string;
  password_hash: string;
  superadmin: boolean;
  superadmin_billing: boolean;
} & {
  email_confirmed_at: Date | null;
};

let database: Database;
beforeAll(async () => {
  database = await connect(readSettings({ DATA_DIR: IN_MEMORY + (await migratedArchive()) }));
});
beforeEach(() => rows(sql`truncate users, platforms, plans, boards restart identity cascade`));
afterAll(() => database.close());

const rows = <Row>(statement: ReturnType<typeof sql<Row>>) => query(database.db, statement);
const users = () => rows(sql<UserRow>`select * from users order by id`);

/** Starts on a terminal, unless a directory for the password is given. */
const start = async (settings: Record<string, string>) => {
  const printed: string[] = [];
  const announce: Announce = ({ text }) => void printed.push(text);
  announce.isOnTerminal = settings.DATA_DIR === undefined;
  const warnings: string[] = [];
  const log = { warn: (text: string) => void warnings.push(text) } as Pick<Log, 'warn'>;
  const { demoUser } = await addFirstUsers(database, readSettings(settings), announce, log);
  return { demoUser, printed, warnings };
};

describe('an empty embedded database', () => {
  it.each<Record<string, string>>([{ HOST: '::1' }, { HOST: '0.0.0.0', DEMO_DATA: 'on' }])(
    'gets the demo data with %o',
    async (settings) => {
      const { demoUser, printed } = await start(settings);

      expect(demoUser).toEqual({ email: 'member@demo.test', password: 'demo-password' });
      expect(printed).toEqual([]);
      expect((await users()).length).toBe(6);
    },
  );

  it.each<Record<string, string>>([
    ...[{ HOST: '0.0.0.0' }, { HOST: 'boards.example.com' }, { DEMO_DATA: 'off' }],
    ...[{ PUBLIC_URL: 'https://boards.example.com' }, { TRUST_PROXY: '1' }],
  ])('gets one superadmin, whose random password is printed once, with %o', async (settings) => {
    const { demoUser, printed } = await start(settings);

    const password = /password {2}(\S+)/.exec(printed.join())![1]!;
    const [admin, ...others] = await users();
    expect(demoUser).toBeUndefined();
    expect(printed).toEqual([expect.stringContaining('admin@deckhand.local')]);
    expect(admin).toMatchObject({ email: 'admin@deckhand.local', superadmin: true, superadmin_billing: true });
    expect(admin!.email_confirmed_at).toBeNull();
    expect(others).toEqual([]);
    expect(password.length).toBeGreaterThanOrEqual(24);
    expect(await isPassword(password, admin!.password_hash, 'test')).toBe(true);
    for (const again of [settings, {}])
      expect(await start(again)).toEqual({ demoUser: undefined, printed: [], warnings: [] });
    expect(await users()).toEqual([admin]);
  });

  it('does not keep the superadmin if printing the password fails', async () => {
    const failing: Announce = () => {
      throw new Error('cut off');
    };
    failing.isOnTerminal = true;

    await expect(addFirstUsers(database, readSettings({ HOST: '0.0.0.0' }), failing, console)).rejects.toThrow(
      'cut off',
    );

    expect(await users()).toEqual([]);
    expect((await start({ HOST: '0.0.0.0' })).printed).toHaveLength(1);
  });
});

describe('an embedded database with rows, but without users', () => {
  const provisioned = [
    sql`insert into platforms (name) values ('Main')`,
    sql`insert into plans (product, plan, period, price_cents) values ('websites', 'pro', 'month', 1900)`,
    sql`insert into boards (is_master, title, position) values (true, 'Template', 1)`,
  ];

  it.each(provisioned)('gets the first superadmin, and no demo data (%#)', async (statement) => {
    await rows(statement);

    const { demoUser, printed } = await start({});

    expect(demoUser).toBeUndefined();
    expect(printed).toEqual([expect.stringContaining('admin@deckhand.local')]);
    expect(await users()).toMatchObject([{ email: 'admin@deckhand.local', superadmin: true }]);
    expect(await rows(sql`select from projects`)).toEqual([]);
    expect(await start({ DEMO_DATA: 'on' })).toEqual({ demoUser: undefined, printed: [], warnings: [] });
  });
});

describe('the password of the first superadmin, without a terminal', () => {
  const settings = (DATA_DIR: string) => ({ HOST: '0.0.0.0', DATA_DIR });

  it('is in a file that only its owner can read, not in the log, and follows no link', async () => {
    const DATA_DIR = await givenDirectory();
    const file = join(DATA_DIR, 'first-superadmin');
    const elsewhere = join(await givenDirectory(), 'elsewhere');
    await writeFile(elsewhere, 'not ours');
    for (const left of [file, `${file}.new`]) await symlink(elsewhere, left);

    const { printed } = await start(settings(DATA_DIR));

    const password = /^ {2}password {2}(\S+)$/m.exec(await readFile(file, 'utf8'))![1]!;
    expect(await isPassword(password, (await users())[0]!.password_hash, 'test')).toBe(true);
    expect([(await lstat(file)).isFile(), (await lstat(file)).mode & 0o777]).toEqual([true, 0o600]);
    expect(printed).toEqual([expect.stringContaining(`The password is in ${file}: sign in, change it, and delete`)]);
    expect(printed.join()).not.toContain(password);
    expect(await readdir(DATA_DIR)).toEqual(['first-superadmin']);
    expect(await readFile(elsewhere, 'utf8')).toBe('not ours');
  });

  it('is made anew if it could not be written, and then there is no superadmin yet', async () => {
    const DATA_DIR = await givenDirectory();
    await mkdir(join(DATA_DIR, 'first-superadmin'));

    await expect(start(settings(DATA_DIR))).rejects.toMatchObject({
      name: 'StartFailure',
      message: expect.stringMatching(/^DATA_DIR: .*first-superadmin can't be written: /),
    });

    expect(await users()).toEqual([]);
    await rmdir(join(DATA_DIR, 'first-superadmin'));
    await start(settings(DATA_DIR));
    expect(await users()).toHaveLength(1);
  });
});

describe('a database with demo data', () => {
  const warningsOf = async (...hosts: string[]) => {
    const warnings: string[] = [];
    const log = { ...console, warn: (text: string) => void warnings.push(text) } as unknown as Log;
    for (const HOST of hosts) await warnOfUsers(database, readSettings({ HOST }), log);
    return warnings;
  };

  it('is refused, in one line, on a reachable address or without DEMO_DATA=on', async () => {
    await start({});

    await expect(start({ HOST: '0.0.0.0' })).rejects.toMatchObject({
      name: 'StartFailure',
      message: expect.stringMatching(/^HOST: on 0\.0\.0\.0 .*admin@demo\.test.*otp@demo\.test.*DEMO_DATA=on.*\.$/),
    });
    await expect(start({ DEMO_DATA: 'off' })).rejects.toThrow('demo password is public');
    expect((await start({ HOST: '0.0.0.0', DEMO_DATA: 'on' })).demoUser).toBeDefined();
    expect(await warningsOf('127.0.0.1', '0.0.0.0')).toEqual([
      expect.stringMatching(/^Anybody who reaches 0\.0\.0\.0 can sign in as admin@demo\.test, .*lock-demo-users\.$/),
    ]);
  });

  it.each<Record<string, string>>([{ PUBLIC_URL: 'https://boards.example.com' }, { TRUST_PROXY: '127.0.0.1' }])(
    'says at each start who can sign in, with %o',
    async (settings) => {
      await start({});

      for (const given of [settings, { ...settings, DEMO_DATA: 'on' }])
        expect((await start(given)).warnings).toEqual([
          expect.stringMatching(/can sign in as admin@demo\.test, .*: npx deckhand database lock-demo-users\.$/),
        ]);
      expect((await start({ PUBLIC_URL: 'http://localhost:3000' })).warnings).toEqual([]);
    },
  );

  it('is refused until every demo user has another password or is deactivated', async () => {
    await start({});
    const other = await hashPassword('another password', 'test');
    await rows(sql`update users set password_hash = ${other} where id <= 3`);
    await rows(sql`update users set is_active = false where id > 3 and email <> 'viewer@demo.test'`);

    await expect(start({ HOST: '0.0.0.0' })).rejects.toThrow('as viewer@demo.test,');
    await rows(sql`update users set is_active = false where email = 'viewer@demo.test'`);
    expect(await start({ HOST: '0.0.0.0' })).toEqual({ demoUser: undefined, printed: [], warnings: [] });
  });

  it('is locked by one command, which leaves a superadmin who can sign in', async () => {
    const { settings, remove } = await givenDemoDatabase();
    const terminal = givenTerminal();
    const lock = () => runCommandLine(['database', 'lock-demo-users'], () => settings, terminal);
    const users = () =>
      readRows(
        settings,
        sql<{ email: string; password_hash: string; is_active: boolean }>`select * from users order by id`,
      );

    const { printed } = await lock();

    expect(printed).toMatch(/^Got random passwords .*: admin@demo\.test, .*otp@demo\.test \(/);
    const password = /^The superadmin is admin@deckhand\.local now, with the password (\S+): /m.exec(
      terminal.shown.join(''),
    )![1]!;
    const [admin, ...others] = (await users()).toReversed();
    expect(await isPassword(password, admin!.password_hash, 'test')).toBe(true);
    expect(others.map(({ is_active }) => is_active)).toEqual(Array(6).fill(false));
    for (const { password_hash } of others)
      expect(await isPassword('demo-password', password_hash, 'test')).toBe(false);
    expect((await lock()).printed).toMatch(/^Nothing changed: no user has the demo password/);
    expect(await users()).toHaveLength(7);

    // Once more, beside the first superadmin of before, who is not active.
    const publicHash = await hashPassword('demo-password', 'test');
    await readRows(
      settings,
      sql`update users set is_active = email = 'admin@demo.test', password_hash = case when email = 'admin@demo.test' then ${publicHash} else password_hash end returning id`,
    );
    await lock();
    expect(terminal.shown.join('')).toContain('The superadmin is admin-2@deckhand.local now');
    await remove();
  });

  it('is not there on a new server: it says how to create the first superadmin', async () => {
    expect(await warningsOf('127.0.0.1')).toEqual([
      expect.stringMatching(/^There are no users yet\. .*npx deckhand users create --name /),
    ]);
  });
});
