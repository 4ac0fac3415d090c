import { execFileSync } from 'node:child_process';
import { chmod, cp, readdir, rm, stat, statfs, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { connect } from '../../server/database/connect.ts';
import { query } from '../../server/database/query.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { toFailure } from '../../shared/errors.ts';
import { makeCaller } from '../harness/caller.ts';
import {
  givenCopyOf,
  givenDemoDirectory,
  givenDirectory,
  removeProcesses,
  runToEnd,
  signIn,
  startService,
} from '../harness/process.ts';

const open = (DATA_DIR: string) => connect(readSettings({ DATA_DIR }));
const modeOf = async (...path: string[]) => ((await stat(join(...path))).mode & 0o777).toString(8);
const CREATE = '/services/operations/v1/operations/cards/create';
const LIST = '/services/operations/v1/operations/boards/list';

/** A directory that was opened once; tests use copies of it. */
let first: string;
/** The file of an index of a catalog table, in its database directory. */
let indexFile: string;

beforeAll(async () => {
  first = join(await givenDirectory(), 'made', 'here');
  const database = await open(first);
  const [index] = await query(
    database.db,
    sql<{ path: string }>`select pg_relation_filepath('pg_description_o_c_o_index') as path`,
  );
  indexFile = index!.path;
  await database.close();
});
afterAll(removeProcesses);

describe('a data directory', () => {
  it('that is new is readable only by its owner, including its files', async () => {
    const modes = await Promise.all(['', 'lock', 'database', 'database/PG_VERSION'].map((name) => modeOf(first, name)));

    expect(modes).toEqual(['700', '600', '700', '600']);
  });

  it('that other users can read gets mode 700, with a warning', async () => {
    const directory = await givenCopyOf(first);
    await chmod(directory, 0o755);
    const warn = vi.spyOn(console, 'warn').mockReturnValue();

    await (await open(directory)).close();

    expect(warn.mock.calls).toEqual([[expect.stringMatching(/^DATA_DIR: .* its mode is now 700\.$/)]]);
    expect(await modeOf(directory)).toBe('700');
    warn.mockRestore();
  });

  const RESTORE =
    /is damaged, or was copied only in part: .* DATA_DIR=NEW npx deckhand database restore --file BACKUP --without-erasures \(or --erasures FILE\)$/;

  type Damage = [string, (database: string) => Promise<unknown>, RegExp];
  const kinds: Damage[] = [
    ['lost its version', (database) => rm(join(database, 'PG_VERSION')), RESTORE],
    ['lost its control file', (database) => rm(join(database, 'global/pg_control')), RESTORE],
    ['lost the file of an index', (database) => rm(join(database, indexFile)), RESTORE],
    ['is of another PostgreSQL', (database) => writeFile(join(database, 'PG_VERSION'), '15\n'), /of PostgreSQL 15, /],
  ];
  /** In the night: in CI, one of each way to notice damage is enough. */
  const moreKinds: Damage[] = [
    ['lost its tables', (database) => rm(join(database, 'base'), { recursive: true }), RESTORE],
    ['lost its log', (database) => rm(join(database, 'pg_wal'), { recursive: true }), RESTORE],
    ['has a short control file', (database) => truncate(join(database, 'global/pg_control'), 100), RESTORE],
    ['has no version in its file', (database) => writeFile(join(database, 'PG_VERSION'), '\0'), RESTORE],
    ['has an empty file of an index', (database) => truncate(join(database, indexFile), 0), RESTORE],
  ];

  it.each(process.env.NIGHT ? [...kinds, ...moreKinds] : kinds)(
    'that %s says so, and what to do',
    async (_, damage, expected) => {
      const directory = await givenCopyOf(first);
      await damage(join(directory, 'database'));

      await expect(open(directory)).rejects.toThrow(expected);
    },
  );

  it('that is damaged does not start a service, which says what to do', async () => {
    const directory = await givenCopyOf(first);
    await rm(join(directory, 'database', indexFile));

    const { code, stderr } = await runToEnd(['server/boot/main.js'], { DATA_DIR: directory });

    expect({ code, stderr: stderr.trim() }).toEqual({ code: 1, stderr: expect.stringMatching(RESTORE) });
    expect(stderr).toMatch(/^Deckhand did not start\. DATA_DIR: /m);
  });

  it('of a service that was copied only in part is refused, instead of starting over', async () => {
    const directory = await givenCopyOf(first);
    await writeFile(join(directory, 'address'), 'http://127.0.0.1:3000');
    await rm(join(directory, 'database/deckhand-finished'));

    await expect(open(directory)).rejects.toThrow(RESTORE);

    expect(await readdir(join(directory, 'database'))).toContain('base');
  });

  it('that other users can read and that has other files is refused and not changed', async () => {
    const directory = await givenDirectory();
    await writeFile(join(directory, 'something-else'), '');
    await chmod(directory, 0o755);

    await expect(open(directory)).rejects.toThrow(
      /^DATA_DIR: .*other users can read it.*use a new directory inside it/,
    );

    expect([await modeOf(directory), await readdir(directory)]).toEqual(['755', ['something-else']]);
  });

  it.each(['/proc/nothing/data', '/proc/self/data', '/proc', '/dev/null', '/dev/null/data'])(
    'is refused at once as %s',
    async (directory) => {
      await expect(open(directory)).rejects.toMatchObject({
        name: 'StartFailure',
        message: expect.stringMatching(`^DATA_DIR: ${directory} can't be written to: .+\\.$`),
      });
    },
  );

  it('is refused if it is a file or a broken link', async () => {
    const directory = await givenDirectory();
    await writeFile(join(directory, 'file'), '');
    await symlink(join(directory, 'nothing'), join(directory, 'link'));

    for (const name of ['file', 'link', 'link/data']) {
      await expect(open(join(directory, name))).rejects.toMatchObject({
        name: 'StartFailure',
        message: expect.stringContaining("can't be written to"),
      });
    }
  });
});

describe('errors of the database', () => {
  it('the embedded database keeps working after a failed statement', async () => {
    const database = await open(await givenCopyOf(first));

    await expect(query(database.db, sql`select 1 / 0`)).rejects.toThrow('division by zero');

    expect(await query(database.db, sql`select 1 as one`)).toEqual([{ one: 1 }]);
    await database.close();
  });

  it('500 with a message about the full disk, also for a PostgreSQL server', () => {
    const full = Object.assign(new Error('could not extend file "base/5/1"'), { code: '53100' });

    expect(toFailure(full)).toEqual({
      code: 'INTERNAL_SERVER_ERROR',
      status: 500,
      reason: 'disk_full',
      message: 'Nothing can be saved at the moment: the disk of the service is full. Reads still work.',
    });
  });
});

/** A separate file system that can be filled; undefined if this user may not mount one. */
async function givenDisk(mebibytes: number): Promise<string | undefined> {
  const directory = await givenDirectory();
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m,mode=700`, 'tmpfs', directory], { stdio: 'pipe' });
    return directory;
  } catch {
    console.log('\nSKIPPED: the test on a full disk. This user may not mount a file system.\n');
    return undefined;
  }
}

const disk = await givenDisk(192);
afterAll(() => {
  if (disk) execFileSync('umount', ['-l', disk]);
});

describe.skipIf(!disk)('a full disk', () => {
  it('500 for writes while reads still work, also after a kill; a start needs 32 MiB; writes work once there is space', async () => {
    const DATA_DIR = join(disk!, 'data');
    await cp(await givenDemoDirectory(), DATA_DIR, { recursive: true });
    const service = await startService({ DATA_DIR });
    const caller = await signIn(service.url);
    const written = await caller.post(CREATE, { title: 'Before' });
    await fill(disk!);

    const refused = await caller.post(CREATE, { title: 'Too late' });
    const listed = await caller.post(LIST);
    const live = await fetch(`${service.url}/health/live`);

    expect(refused).toMatchObject({
      status: 500,
      body: { message: expect.stringContaining('the disk of the service') },
    });
    expect([listed.status, live.status]).toEqual([200, 200]);
    await expect(caller.rpc.cards.update.mutate({ id: written.body.data.card.id, title: 'x' })).rejects.toThrow(
      'Nothing can be saved',
    );

    await service.stop('SIGKILL');
    await expect(open(DATA_DIR)).rejects.toThrow(/^DATA_DIR: the disk of .* has 0 MiB left, and 32 are needed/);
    // The lock takes a few kilobytes.
    await fill(disk!, 31.1);
    await expect(open(DATA_DIR)).rejects.toThrow(/^DATA_DIR: the disk of .* has 31 MiB left, and 32 are needed/);

    await fill(disk!, 32.1);
    const full = await startService({ DATA_DIR });
    const reader = makeCaller(full.url, caller.token);
    expect((await reader.post(LIST)).status).toBe(200);
    expect((await reader.post(CREATE, { title: 'Too late' })).status).toBe(500);
    expect(await full.stop('SIGTERM')).toMatchObject({ code: 0, stderr: '' });

    await rm(join(disk!, 'filler'));
    const again = await startService({ DATA_DIR });
    const { rpc } = makeCaller(again.url, caller.token);
    expect(await rpc.cards.get.query({ id: written.body.data.card.id })).toMatchObject({ card: { title: 'Before' } });
    expect(await rpc.cards.create.mutate({ title: 'After' })).toMatchObject({ card: { title: 'After' } });
    await again.stop();
  });

  /** Leaves some space, in MiB. The service may write meanwhile: then the disk is full earlier. */
  const fill = async (directory: string, left = 0) => {
    await rm(join(directory, 'filler'), { force: true });
    const { bavail, bsize } = await statfs(directory);
    const filler = Buffer.alloc(Math.floor(bavail * bsize - left * 1024 * 1024));
    await writeFile(join(directory, 'filler'), filler).catch((error) => {
      if (left > 0 || error.code !== 'ENOSPC') throw error;
    });
  };
});
