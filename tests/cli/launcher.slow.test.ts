import { execFile } from 'node:child_process';
import { cp, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { givenDirectory, givenMigratedDirectory, removeProcesses } from '../harness/process.ts';

/** The command line as a process: the file that `bin` in package.json names. */

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);

/** Makes a process believe that its Node is this version. */
const asNode = (version: string) => [
  '--import',
  `data:text/javascript,Object.defineProperty(process.versions,'node',{value:'${version}'})`,
];

afterAll(removeProcesses);

describe('npx deckhand', () => {
  it('reads secrets from standard input, and prints the result alone on standard output', async () => {
    const [npm_config_cache, DATA_DIR] = await Promise.all([givenDirectory(), givenMigratedDirectory()]);
    const words = ['deckhand', 'users', 'create', '--name', 'A', '--email', 'a@example.test', '--json'];

    const running = run('npx', words, { cwd: ROOT, env: { ...process.env, npm_config_cache, DATA_DIR } });
    running.child.stdin!.end('a good password\n');
    const { stdout, stderr } = await running;

    expect(JSON.parse(stdout)).toMatchObject({ user: { email: 'a@example.test' } });
    expect(stderr.replaceAll(/^npm warn .*\n/gm, '')).toBe('');
  });

  it.each([
    ['22.17.9', 'server/cli/deckhand.js', { code: 2, stdout: '', stderr: expect.stringMatching(/^There is no/) }],
    ['20.1.0', 'server/boot/main.js', { code: 1, stderr: expect.stringContaining('PORT: must be') }],
  ])('on Node %s, %s runs with the Node of the project', async (version, program, ended) => {
    const env = { ...process.env, PORT: 'none' };

    const start = run(process.execPath, [...asNode(version), join(ROOT, program), 'nonsense'], { env });

    await expect(start).rejects.toMatchObject(ended);
  });

  it('1 on an older Node without the one of the project, with what to do', async () => {
    const directory = await givenDirectory();
    await cp(join(ROOT, 'package.json'), join(directory, 'package.json'));
    const runtime = ['bundle', 'compileCache', 'ownNode'].map((name) => `server/runtime/${name}.js`);
    const programs = ['server/cli/deckhand.js', 'server/boot/main.js'];
    for (const file of [...runtime, ...programs]) {
      await mkdir(dirname(join(directory, file)), { recursive: true });
      await cp(join(ROOT, file), join(directory, file));
    }

    for (const program of programs) {
      const start = run(process.execPath, [...asNode('20.1.0'), join(directory, program)]);
      const stderr = expect.stringMatching(/npm ci brings Node 24\.\n$/);
      await expect(start).rejects.toMatchObject({ code: 1, stderr });
    }
  });
});
