import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { filesOfPage, readPage } from '../harness/builtPage.ts';
import { compile, givenTarball, strictly } from '../harness/packedClient.ts';
import {
  givenDirectory,
  readRows,
  removeProcesses,
  runToEnd,
  signIn,
  startProgram,
  statusOf,
} from '../harness/process.ts';

/** Another project, with the packed client and the packed service, and no file of this repository. */

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);

let project: string;
let examples: string[];

beforeAll(async () => {
  project = await givenProject('client', 'server');
  const guide = await readFile(join(project, 'node_modules/deckhand-client/testing.md'), 'utf8');
  examples = [...guide.matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code!);
});
afterAll(removeProcesses);

describe('the packed test kit', () => {
  it('has examples that compile in strict mode, declarations too, without the types of Node; misspelt settings and fields do not', async () => {
    const names = ['reminders.test.ts', 'clock.ts', 'deckhand.setup.ts', 'sharing.ts', 'builders.ts'];
    for (const [at, name] of names.entries()) await writeFile(join(project, name), examples[at]!);
    const { compilerOptions } = strictly('nodenext');

    await writeFile(join(project, 'misspelt.ts'), MISSPELT);

    const errors = await compile(project, { compilerOptions }, 'clock.ts', 'builders.ts', 'misspelt.ts');
    // The declarations of Vitest need those of Vite, which is not installed here.
    const skipping = { compilerOptions: { ...compilerOptions, skipLibCheck: true } };

    expect(errors.map((line) => line.split(',', 1)[0])).toEqual([2, 3, 4, 5, 6].map((line) => `misspelt.ts(${line}`));
    expect(await compile(project, skipping, 'reminders.test.ts', 'deckhand.setup.ts', 'sharing.ts')).toEqual([]);
  });

  it('has an example that fails when Deckhand answers something else; all workers share one Deckhand, which ends with their run', async () => {
    const [example, , setup, sharing] = examples;
    const place = await givenProject('client', 'server');
    await writeFile(join(place, 'deckhand.setup.ts'), setup!);
    for (const name of ['one', 'two']) await writeFile(join(place, `${name}.test.ts`), sharing! + RECORD_WORKER);
    await writeFile(join(place, 'failing.test.ts'), sharing!.replace("toEqual(['Launch'])", "toEqual(['Other'])"));
    await writeFile(join(place, 'reminders.test.ts'), example!);
    await writeFile(join(place, 'broken.test.ts'), example!.replace("'Late: Write the post'", "'Late: Some day'"));
    // On a busy machine the usual five seconds are not enough.
    const options = { globalSetup: ['./deckhand.setup.ts'], maxWorkers: 2, testTimeout: 60_000, hookTimeout: 60_000 };
    await writeFile(join(place, 'vitest.config.mjs'), `export default ${JSON.stringify({ test: options })};`);

    const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--reporter=json', '--outputFile=report.json'];
    const { code, stdout, stderr } = await runProgramIn(place, ...vitest);

    const report = JSON.parse(await readFile(join(place, 'report.json'), 'utf8'));
    const recorded = (await readFile(join(place, 'record'), 'utf8')).trim().split('\n');
    const [workers, [url, ...otherUrls]] = [0, 1].map((at) => [
      ...new Set(recorded.map((line) => line.split(' ')[at])),
    ]) as [string[], string[]];
    const resultsOf = (file: string) =>
      report.testResults.find(({ name }: any) => name.endsWith(`/${file}.test.ts`)).assertionResults;
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    expect(report).toMatchObject({ numTotalTests: 11, numFailedTests: 2 });
    expect(resultsOf('failing')).toMatchObject([{ status: 'failed' }]);
    expect(resultsOf('broken')).toContainEqual(
      expect.objectContaining({
        title: 'names the cards that are due',
        failureMessages: [expect.stringContaining("expected 'Late: Write the post' to be 'Late: Some day'")],
      }),
    );
    expect(stdout).not.toContain('"level"');
    expect({ workers: workers.length, otherUrls }).toEqual({ workers: 2, otherUrls: [] });
    await expect(fetch(url!)).rejects.toThrow('fetch failed');
  });

  it('ends with its process, logs if asked to, and writes nothing to disk', async () => {
    const empty = await givenDirectory();
    await writeFile(join(project, 'left.mjs'), LEFT_RUNNING);

    const { code, stdout, stderr } = await runProgram('left.mjs', empty);

    const lines = stdout.trim().split('\n');
    const logged = lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(lines).toContain('done');
    expect(new Set(logged.map(({ operation }) => operation))).toContain('platforms.create');
    expect(logged.map(({ time }) => time)).toContain(Date.parse('2020-02-29T12:00:00Z'));
    expect(await readdir(empty)).toEqual([]);
  });

  it('says what to install if the service is missing, and needs it for nothing else', async () => {
    const alone = await givenProject('client');
    await writeFile(
      join(alone, 'start.mjs'),
      `import { fakeClient, startDeckhand } from 'deckhand-client/testing';
       console.log(await fakeClient({ boards: { list: () => ({ boards: [] }) } }).boards.list.query());
       console.log((await startDeckhand().catch((error) => error)).message);`,
    );

    const { stdout } = await run(process.execPath, ['start.mjs'], { cwd: alone });

    expect(stdout).toContain('{ boards: [] }');
    expect(stdout).toContain('npm install --save-dev ./deckhand-<version>.tgz');
  });
});

describe('the packed service', () => {
  it('has only JavaScript, and names each package that it imports', async () => {
    const files = await readdir(join(project, 'node_modules/deckhand'), { recursive: true });

    expect(files.filter((name) => name.endsWith('.ts'))).toEqual([]);
    expect(files.filter((name) => /package\/|createMigration/.test(name))).toEqual([]);
  });

  it('starts with its pages and demo data on prepared tables, and has its command line', async () => {
    const service = join(project, 'node_modules/deckhand');
    const { bin } = JSON.parse(await readFile(join(service, 'package.json'), 'utf8'));
    const DATA_DIR = await givenDirectory();
    const startedAt = new Date();
    const { url, stop } = await startProgram([relative(ROOT, join(service, 'server/boot/main.js'))], {
      DATA_DIR,
      RATE_LIMIT_PER_MINUTE: '10000',
    });

    const paths = ['/', '/docs', '/pages/client.js', '/pages/api/main.js', '/docs/guides/rest', '/openapi.json'];
    const statuses = await Promise.all(paths.map((path) => statusOf(url, path)));
    const index = await (await fetch(`${url}/docs/guides`)).text();
    const page = await readPage(url);
    const { token } = await signIn(url, 'admin@demo.test');
    const program = relative(ROOT, join(service, bin.deckhand));
    // docs/commands.md also checks the calls that write, on the service from its sources.
    const writes = process.env.NIGHT ? ['--write'] : [];
    const checked = await runToEnd([program, 'contract', ...writes], { DECKHAND_URL: url, DECKHAND_KEY: token! });
    const compared = await runToEnd([program, 'diff', join(service, 'docs/openapi.json'), `${url}/openapi.json`]);
    const { code } = await stop();
    const { stdout } = await runToEnd([program, 'migrate'], { DATA_DIR });
    const migratedBefore = sql<{ is: boolean }>`select max(executed_at) < ${startedAt} as is from mikro_orm_migrations`;

    expect(checked.stdout).toMatch(/ requests: nothing differs\.\n$/);
    expect({ code: checked.code, compared: compared.code }, compared.stdout).toEqual({ code: 0, compared: 0 });
    expect(statuses).toEqual(paths.map(() => 200));
    expect(index).toContain('<h1>Guides</h1>');
    expect(page).toEqual(filesOfPage());
    expect(code).toBe(0);
    expect(stdout).toContain('The tables are up to date.');
    expect(await readRows({ DATA_DIR }, migratedBefore)).toEqual([{ is: true }]);
    // All checks of the contract, beside other suites.
  });
});

const MISSPELT = `import { aCard, startDeckhand } from 'deckhand-client/testing';
await startDeckhand({ settings: { RATE_LIMT_PER_MINUTE: '5' } });
await startDeckhand({ settings: { TEST_CHECKOUT: 'yes' } });
await startDeckhand({ settings: { PORT: '4000' } });
aCard({ titel: 'x' });
aCard({ priority: 'huge' });
`;

const RECORD_WORKER = `
import { appendFileSync } from 'node:fs';
appendFileSync('record', process.pid + ' ' + deckhand.url + '\\n');
`;

const LEFT_RUNNING = `import { startDeckhand } from 'deckhand-client/testing';
process.chdir(process.argv[2]);
const deckhand = await startDeckhand({ logLevel: 'info' });
for (const moment of ['2020-02-29T12:00:00Z', '2026-01-31T09:30:00Z']) {
  deckhand.clock.set(moment);
  await deckhand.givenBoard(await deckhand.givenProject(), { groups: [{ title: 'To do', cards: ['First'] }] });
}
console.log('done');
`;

/** Unpacked instead of installed, since there may be no network; with links to the dependencies that they name. */
async function givenProject(...kinds: ('client' | 'server')[]): Promise<string> {
  const directory = await givenDirectory();
  await writeFile(join(directory, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  const names = new Set(['vitest']);
  for (const kind of kinds) {
    const to = join(directory, 'node_modules', kind === 'client' ? 'deckhand-client' : 'deckhand');
    await mkdir(to, { recursive: true });
    await run('tar', ['-xzf', await givenTarball(kind), '-C', to, '--strip-components=1']);
    const { dependencies = {} } = JSON.parse(await readFile(join(to, 'package.json'), 'utf8'));
    for (const dependency of Object.keys(dependencies)) names.add(dependency);
  }
  for (const name of names) {
    const link = join(directory, 'node_modules', name);
    await mkdir(dirname(link), { recursive: true });
    await symlink(join(ROOT, 'node_modules', name), link);
  }
  return directory;
}

const runProgram = (...words: string[]) => runProgramIn(project, ...words);

const runProgramIn = (cwd: string, ...words: string[]) =>
  run(process.execPath, words, { cwd }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({ code, stdout, stderr }),
  );
