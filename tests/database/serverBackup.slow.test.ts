import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { runCommandLine } from '../../server/cli/run.ts';
import { holdTimeStep } from '../harness/codes.ts';
import { givenDirectory, removeProcesses } from '../harness/process.ts';
import { findDumpTools, findTestServer, onServer } from '../harness/server.ts';
import { givenFilledDatabase } from '../harness/serverTemplates.ts';
import { everythingOf, expectStillUsed, signInWithCode, startNode, useService } from '../harness/usedService.ts';

// The first one makes templates of databases for all.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

const run = promisify(execFile);
const server = await findTestServer();
const JWT_SECRET = 'the secret of the service on the server';

const hasTools = await findDumpTools(server.url);
if (!hasTools)
  console.log('\nSKIPPED: the test of pg_dump. It needs a PostgreSQL server, and the tools of its version.\n');

/** The commands of the guide. */
const COMMANDS = [
  ...readFileSync(join(import.meta.dirname, '../../docs/data.md'), 'utf8').matchAll(/^```sh\n(.*?)^```$/gms),
]
  .map(([, code]) => code!)
  .filter((code) => /^pg_dump|^pg_restore/m.test(code));

holdTimeStep();
afterAll(removeProcesses);

describe.skipIf(!hasTools)('pg_dump and pg_restore, as docs/data.md says', () => {
  const role = `deckhand_dump_${randomBytes(6).toString('hex')}`;
  const restored = `${role}_restored`;
  const password = randomBytes(12).toString('hex');
  const addressOf = (name: string) =>
    Object.assign(new URL(server.url!), { username: role, password, pathname: `/${name}` }).href;
  afterAll(async () => {
    for (const name of [role, restored]) await onServer(server.url!, `drop database if exists ${name} with (force)`);
    await onServer(server.url!, `drop role ${role}`);
  });

  it('bring back all rows, and the service goes on: tokens, keys and second factors work', async () => {
    await onServer(server.url!, `create role ${role} login createdb password '${password}'`);
    await onServer(server.url!, `create database ${role} owner ${role}`);
    const settings = { DATABASE_URL: addressOf(role), JWT_SECRET };
    await runCommandLine(['demo'], () => settings);
    const service = await startNode(settings);
    const used = await useService(service.url);

    const { hostname, port } = new URL(server.url!);
    const env = { PGHOST: hostname, PGPORT: port || '5432', PGUSER: role, PGPASSWORD: password, PGDATABASE: role };
    const script = COMMANDS.join('\n').replaceAll('deckhand_restored', restored);
    const options = { cwd: await givenDirectory(), env: { ...process.env, ...env } };
    await run('bash', ['-e', '-o', 'pipefail', '-c', script], options);
    await service.stop();

    expect(COMMANDS).toHaveLength(2);
    const moved = { ...settings, DATABASE_URL: addressOf(restored) };
    expect(await everythingOf(moved)).toEqual(await everythingOf(settings));
    expect(await verify(moved)).toMatchObject({ exitCode: 0, printed: expect.stringMatching(/^Nothing wrong: /) });
    const again = await startNode(moved);
    expect((await fetch(`${again.url}/health/ready`)).status).toBe(503);
    const told = await runCommandLine(['erasures', 'none'], () => moved);
    expect(told).toMatchObject({
      exitCode: 0,
      printed: expect.stringMatching(/^Erased 0 persons again\. The service may/),
    });
    await vi.waitFor(async () => expect((await fetch(`${again.url}/health/ready`)).status).toBe(200), 60_000);
    await vi.waitFor(async () => expect((await signInWithCode(again.url)).status).toBe(200), 60_000);
    await expectStillUsed(again.url, used);
    await again.stop();
  });

  it('of the cards alone are checked, unless a superuser disables the checks: then database verify finds the orphans', async () => {
    const [from, to] = [await givenDemo(), await givenDemo()];
    const onTarget = (statement: string) => onServer(to.url, statement);
    await onTarget('delete from tour_dismissals; delete from comments; delete from template_runs; delete from cards');
    const restore = (before: string) =>
      run(
        'bash',
        [
          '-o',
          'pipefail',
          '-c',
          `(echo "${before}"; pg_dump -a -t cards "$FROM") | psql -q -1 -v ON_ERROR_STOP=1 "$TO"`,
        ],
        {
          env: { ...process.env, FROM: from.url, TO: to.url },
        },
      );
    const isCopied = 'select count(*)::int as count, min(group_id) as group from cards';

    await restore('');
    const expected = await onServer(from.url, isCopied);
    expect(await onTarget(isCopied)).toEqual(expected);
    expect(await verify({ DATABASE_URL: to.url, JWT_SECRET })).toMatchObject({ exitCode: 0 });

    await onTarget('delete from cards; delete from groups where not is_master');
    await expect(restore('')).rejects.toThrow('violates foreign key constraint');
    await restore('set session_replication_role = replica;');
    const { exitCode, printed } = await verify({ DATABASE_URL: to.url, JWT_SECRET });
    expect(exitCode).toBe(1);
    expect(printed).toMatch(
      /^cards\.group_id refers to groups that do not exist: \d+ rows \(\d+, .*\)\.\n {2}Bring the missing groups back/m,
    );
    expect(printed).toMatch(/Nothing was changed\.$/);
    for (const { remove } of [from, to]) await remove();
  });
});

async function givenDemo() {
  const database = await givenFilledDatabase('dump', 'migrated');
  await runCommandLine(['demo'], () => ({ DATABASE_URL: database.url, JWT_SECRET }));
  return database;
}

const verify = (settings: Record<string, string>) => runCommandLine(['database', 'verify'], () => settings);
