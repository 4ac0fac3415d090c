import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { sql } from 'kysely';
import { packTar } from 'modern-tar';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { runCommandLine } from '../../server/cli/run.ts';
import { connect } from '../../server/database/connect.ts';
import { lockDataDirectory } from '../../server/database/embedded/dataDirectory.ts';
import { query } from '../../server/database/query.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { makeCaller } from '../harness/caller.ts';
import { errorOf } from '../harness/client.ts';
import { holdTimeStep } from '../harness/codes.ts';
import {
  givenCopyOf,
  givenDemoDirectory,
  givenDirectory,
  removeProcesses,
  signIn,
  startService,
} from '../harness/process.ts';
import { givenTerminal } from '../harness/terminal.ts';
import { everythingOf, expectStillUsed, startNode, type Used, useService } from '../harness/usedService.ts';

// The first one makes templates of databases for all.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

holdTimeStep();

/** A stopped service with demo data that was used, and its backup. */
let directory: string;
let used: Used;
let file: string;
/** The last event before, and a cursor behind it. */
let before: { after: string; id: number };

const run = (verb: string, path: string, settings: Record<string, string>) =>
  runCommandLine(
    ['database', verb, '--file', path, ...(verb === 'restore' ? ['--without-erasures'] : [])],
    () => settings,
  );
const givenPath = async () => join(await givenDirectory(), 'deckhand.tar.gz');

beforeAll(async () => {
  directory = await givenDemoDirectory();
  const service = await startNode({ DATA_DIR: directory });
  used = await useService(service.url);
  const [owner, member] = [await signIn(service.url, 'owner@demo.test'), await signIn(service.url)];
  await owner.rpc.webhooks.create.mutate({ project_id: 1, url: 'https://example.com/hook' });
  const { events, cursor: after } = await member.rpc.events.list.query({});
  before = { after, id: Number(events.at(-1)!.id) };
  await service.stop();
  file = await givenPath();
  expect(await run('backup', file, { DATA_DIR: directory })).toMatchObject({ exitCode: 0 });
});
afterAll(removeProcesses);

describe('deckhand database backup', () => {
  it('writes a file that only its owner can read, and nothing else', async () => {
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(join(file, '..'))).toEqual(['deckhand.tar.gz']);
  });

  it('1 if the file exists, which is kept', async () => {
    const path = await givenPath();
    await writeFile(path, 'an earlier backup');

    expect(await run('backup', path, { DATA_DIR: directory })).toEqual({
      exitCode: 1,
      complaint: `--file: ${path} can't be written: it exists already.`,
    });
    expect(await readFile(path, 'utf8')).toBe('an earlier backup');
  });

  it('replaces what an interrupted one left, whoever could read that', async () => {
    const path = await givenPath();
    await writeFile(`${path}.partial`, 'x');
    await chmod(`${path}.partial`, 0o644);

    expect((await run('backup', path, { DATA_DIR: directory })).printed).toMatch(
      /^Wrote .* \(\d+\.\d MiB\)\. It contains the generated secret: /,
    );

    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readdir(join(path, '..'))).toEqual(['deckhand.tar.gz']);
  });

  it('1 while the service runs', async () => {
    const DATA_DIR = await givenDemoDirectory();
    const unlock = await lockDataDirectory(DATA_DIR);
    const path = await givenPath();

    expect((await run('backup', path, { DATA_DIR })).complaint).toMatch(/^DATA_DIR: .* is in use by another process/);
    expect(await readdir(join(path, '..'))).toEqual([]);
    unlock();
  });

  it.each([
    ['without an embedded database', { DATA_DIR: '/proc/nothing' }, /^DATA_DIR: there is no embedded database in /],
    [
      'with DATABASE_URL',
      { DATABASE_URL: 'postgresql://host/name' },
      /^DATABASE_URL: is set, .* Use pg_dump for a server\.$/,
    ],
  ])('1 %s', async (_case, settings, complaint) => {
    expect(await run('backup', '/proc/nothing/x', settings as Record<string, string>)).toEqual({
      exitCode: 1,
      complaint: expect.stringMatching(complaint),
    });
  });

  it('1 if the file can not be written', async () => {
    expect((await run('backup', '/proc/nothing/x', { DATA_DIR: directory })).complaint).toMatch(
      /^--file: \/proc\/nothing\/x can't be written: ENOENT/,
    );
  });

  it('2 without a file', async () => {
    expect((await run('backup', '', {})).complaint).toMatch(/^--file must be the path of a file\.\nSee /);
    expect((await runCommandLine(['database', 'backup'], () => ({}))).complaint).toMatch(/^--file is missing\.\nSee /);
  });
});

/** A cursor of before the restore is refused, and events get ids that no event had. */
async function expectNewIds(url: string): Promise<void> {
  const { events, cards } = (await signIn(url)).rpc;
  expect(await errorOf(events.list.query({ after: before.after }))).toMatchObject({ reason: 'cursor_too_old' });
  const { cursor } = await events.list.query({ after: 'latest' });
  await cards.create.mutate({ title: 'After' });
  const next = await events.list.query({ after: cursor });
  expect(Number(next.events.at(-1)!.id)).toBeGreaterThan(before.id + 1_000_000_000);
}

/** Webhooks go on once an operator says so. */
async function expectPaused(DATA_DIR: string): Promise<void> {
  const resume = () => runCommandLine(['webhooks', 'resume'], () => ({ DATA_DIR }));
  expect([(await resume()).printed, (await resume()).printed]).toEqual([
    expect.stringMatching(/^Webhooks go on, /),
    `Nothing changed: webhooks were not paused (DATA_DIR ${DATA_DIR}).`,
  ]);
}

/** An empty directory `database` and a `jwt-secret`, as version 1.0 wrote them. */
const OF_EARLIER_VERSION = Buffer.from(
  'H4sIAAAAAAACA+3RsQ2AMAxEUY+SBRCHgHgeA2koYyMYH4kSEF1o4tfc9X8Rk0k0tVQOADBwLZ778nlgpjDSDzY1yQRQndbdGk1zTla2f/zs3937cx8pwPsXd5BzzrkanepVyRsACgAA',
  'base64',
);

describe('deckhand database restore', () => {
  it('brings back all rows, and the service goes on: tokens, keys and second factors work', async () => {
    const DATA_DIR = join(await givenDirectory(), 'new');

    const restored = await run('restore', file, { DATA_DIR });

    expect(restored.printed).toBe(
      `Restored ${file} into ${DATA_DIR}. If the service was started with JWT_SECRET, it needs the same one again. Webhooks are paused, and mails are held, until npx deckhand webhooks resume.`,
    );
    expect(await readdir(DATA_DIR)).toEqual(['database', 'jwt-secret', 'lock']);
    expect(await everythingOf({ DATA_DIR })).toEqual(await everythingOf({ DATA_DIR: directory }));
    const terminal = givenTerminal();
    expect(await runCommandLine(['database', 'verify'], () => ({ DATA_DIR }), terminal)).toEqual({
      exitCode: 0,
      printed: expect.stringMatching(/^Nothing wrong: \d+ rows of \d+ tables were checked\.$/),
    });
    expect(terminal.shown).toContainEqual(expect.stringMatching(/^progress: Checked \d+ rows \(cards\)$/));
    const service = await startNode({ DATA_DIR });
    await expectStillUsed(service.url, used);
    await expectNewIds(service.url);
    await service.stop();
    await expectPaused(DATA_DIR);
  });

  it('pauses webhooks, refuses cursors of before, and gives out no id again, also from a backup of an earlier version', async () => {
    const [earlier, path, DATA_DIR] = [await givenCopyOf(directory), await givenPath(), await givenDirectory()];
    const database = await connect(readSettings({ DATA_DIR: earlier }));
    await query(database.db, sql`drop table incarnations, database_state`);
    await query(
      database.db,
      sql`delete from mikro_orm_migrations where name in ('Migration20261117040000_database_state', 'Migration20261117100000_incarnations',
        'Migration20261118050000_erasures_and_exports', 'Migration20261119020000_level_version')`,
    );
    await database.close();

    await run('backup', path, { DATA_DIR: earlier });
    await run('restore', path, { DATA_DIR });

    const restored = await startNode({ DATA_DIR });
    await expectNewIds(restored.url);
    await restored.stop();
    await expectPaused(DATA_DIR);
  });

  it('brings back what a killed service had acknowledged', async () => {
    const DATA_DIR = await givenDemoDirectory();
    const service = await startService({ DATA_DIR });
    const { token, rpc } = await signIn(service.url);
    const { card } = await rpc.cards.create.mutate({ title: 'Acknowledged' });
    await service.stop('SIGKILL');
    const [path, restored] = [await givenPath(), await givenDirectory()];

    await run('backup', path, { DATA_DIR });
    await run('restore', path, { DATA_DIR: restored });

    const again = await startNode({ DATA_DIR: restored });
    expect(await makeCaller(again.url, token).rpc.cards.get.query({ id: card.id })).toMatchObject({
      card: { id: card.id, title: 'Acknowledged' },
    });
    await again.stop();
  });

  it('1 if there is a database or another secret, which are kept', async () => {
    const DATA_DIR = await givenDirectory();
    await writeFile(join(DATA_DIR, 'jwt-secret'), 'another secret');

    expect((await run('restore', file, { DATA_DIR: directory })).complaint).toBe(
      `DATA_DIR: ${directory} already has a database. Choose another directory.`,
    );
    expect((await run('restore', file, { DATA_DIR })).complaint).toMatch(
      /jwt-secret exists, and the backup has another/,
    );
    expect(await readdir(DATA_DIR)).toEqual(['jwt-secret', 'lock']);
    expect(await readFile(join(DATA_DIR, 'jwt-secret'), 'utf8')).toBe('another secret');
  });

  it('1 for a file that is cut off, wherever, or damaged, and nothing is restored', async () => {
    const whole = await readFile(file);
    const damaged = Buffer.from(whole);
    damaged[whole.length - 8]! ^= 1;
    const cases: [Buffer, string][] = [
      [whole.subarray(0, 0), 'it is incomplete'],
      [whole.subarray(0, 5), 'it is incomplete'],
      [whole.subarray(0, whole.length / 2), 'it is incomplete'],
      [whole.subarray(0, -1), 'it is incomplete'],
      [damaged, 'it is damaged, or not a backup'],
      [Buffer.from('something else'), 'it is damaged, or not a backup'],
      [gzipSync('something else'), 'it is incomplete'],
      [gzipSync('something else'.repeat(100)), 'it is not a backup'],
    ];
    const path = await givenPath();

    for (const [content, reason] of cases) {
      await writeFile(path, content);
      const DATA_DIR = await givenDirectory();
      expect(await run('restore', path, { DATA_DIR })).toEqual({
        exitCode: 1,
        complaint: `--file: ${path} can't be restored: ${reason}. Nothing was restored.`,
      });
      expect(await readdir(DATA_DIR)).toEqual(['lock']);
    }
  });

  const archive = async (name: string) => gzipSync(await packTar([{ header: { name, size: 1 }, body: 'x' }]));
  const archivedLink = async () =>
    gzipSync(await packTar([{ header: { name: 'database/link', size: 0, type: 'symlink', linkname: 'x' } }]));

  it('1 for an archive with other names, or without a database', async () => {
    const path = await givenPath();

    const leadingOut = [
      '../outside',
      '/outside',
      'database/../../outside',
      'database/..',
      'database/./x',
      'database//x',
    ];
    // The long one took for ever, when each way to divide it was tried.
    const others = ['database', 'other', 'database/a!', `database/${'a'.repeat(90)}!`];
    const archives = await Promise.all([...leadingOut, ...others].map(archive));
    for (const content of [...archives, await archivedLink()]) {
      await writeFile(path, content);
      expect((await run('restore', path, { DATA_DIR: await givenDirectory() })).complaint).toMatch(
        /it is not a backup/,
      );
    }
    for (const content of [await archive('jwt-secret'), OF_EARLIER_VERSION]) {
      await writeFile(path, content);
      const DATA_DIR = await givenDirectory();
      expect((await run('restore', path, { DATA_DIR })).complaint).toMatch(/^--file: .* has no usable database: /);
      expect(await readdir(DATA_DIR)).toEqual(['lock']);
    }
  });

  it('1 leaves no directory that it made, and keeps those that were there', async () => {
    const place = await givenDirectory();
    const path = await givenPath();
    await writeFile(path, await archive('jwt-secret'));

    for (const name of ['new', 'new/inner']) {
      expect((await run('restore', path, { DATA_DIR: join(place, name) })).exitCode).toBe(1);
      expect(await readdir(place)).toEqual([]);
    }
  });

  it('1 if there is no such file, and no directory is made', async () => {
    const DATA_DIR = join(await givenDirectory(), 'new');

    expect((await run('restore', '/proc/nothing', { DATA_DIR })).complaint).toMatch(
      /^--file: \/proc\/nothing can't be read: ENOENT/,
    );
    await expect(stat(DATA_DIR)).rejects.toThrow('ENOENT');
  });
});
