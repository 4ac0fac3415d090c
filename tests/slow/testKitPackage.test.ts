import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compile, givenTarball, strictly } from '../harness/packedClient.ts';
import { givenDirectory, removeProcesses, runToEnd, startProgram, statusOf } from '../harness/process.ts';

/** Another project, with the packed client and the packed service, and no file of this repository. */

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);

let project: string;
let examples: string[];

beforeAll(async () => {
  project = await givenProject('client', 'server');
  const guide = await readFile(join(project, 'node_modules/deckhand-client/testing.md'), 'utf8');
  examples = [...guide.matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code!);
}, 120_000);
afterAll(removeProcesses);

describe('the packed test kit', () => {
  it('has examples that compile in strict mode, declarations too, without the types of Node', async () => {
    const [example, clock] = examples;
    await writeFile(join(project, 'reminders.test.ts'), example!);
    await writeFile(join(project, 'clock.ts'), clock!);
    const { compilerOptions } = strictly('nodenext');

    expect(await compile(project, { compilerOptions }, 'clock.ts')).toEqual([]);
    // The declarations of Vitest need those of Vite, which is not installed here.
    const skipping = { compilerOptions: { ...compilerOptions, skipLibCheck: true } };
    expect(await compile(project, skipping, 'reminders.test.ts')).toEqual([]);
  });

  it('has an example that passes, and that fails when Deckhand answers something else', async () => {
    const [example] = examples;
    const broken = example!.replace("'Late: Write the post'", "'Late: Some day'");
    await writeFile(join(project, 'reminders.test.ts'), example!);
    await writeFile(join(project, 'broken.test.ts'), broken);

    const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--reporter=json', '--outputFile=report.json'];
    // On a busy machine the usual five seconds are not enough.
    const { code, stdout, stderr } = await runProgram(...vitest, '--testTimeout=60000', '--hookTimeout=60000');

    const report = JSON.parse(await readFile(join(project, 'report.json'), 'utf8'));
    const { assertionResults } = report.testResults.find(({ name }: any) => name.endsWith('broken.test.ts'));
    expect(assertionResults).toContainEqual(
      expect.objectContaining({
        title: 'names the cards that are due',
        failureMessages: [expect.stringContaining("expected 'Late: Write the post' to be 'Late: Some day'")],
      }),
    );
    expect(report).toMatchObject({ numTotalTests: 8, numFailedTests: 1 });
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    expect(stdout).not.toContain('"level"');
  }, 120_000);

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

  it('starts with its pages and demo data, and has its command line', async () => {
    const service = join(project, 'node_modules/deckhand');
    const { bin } = JSON.parse(await readFile(join(service, 'package.json'), 'utf8'));
    const DATA_DIR = await givenDirectory();
    const { url, stop } = await startProgram([relative(ROOT, join(service, 'server/boot/main.js'))], { DATA_DIR });

    const paths = [
      '/',
      '/docs',
      '/pages/board/main.js',
      '/pages/client.js',
      '/pages/api/main.js',
      '/docs/guides/rest',
      '/openapi.json',
    ];
    const statuses = await Promise.all(paths.map((path) => statusOf(url, path)));
    const index = await (await fetch(`${url}/docs/guides`)).text();
    const { code } = await stop();
    const { stdout } = await runToEnd([relative(ROOT, join(service, bin.deckhand)), 'migrate'], { DATA_DIR });

    expect(statuses).toEqual(paths.map(() => 200));
    expect(index).toContain('<h1 id="deckhand">');
    expect(code).toBe(0);
    expect(stdout).toContain('The tables are up to date.');
  });
});

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

const runProgram = (...words: string[]) =>
  run(process.execPath, words, { cwd: project }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({ code, stdout, stderr }),
  );
