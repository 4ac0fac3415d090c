import { execFile } from 'node:child_process';
import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { givenDirectory, removeProcesses } from '../harness/process.ts';

/** The file that `bin` in package.json names. */

const ROOT = join(import.meta.dirname, '../..');
const LAUNCHER = join(ROOT, 'server/cli/deckhand.js');
const run = promisify(execFile);

/** Makes a process believe that its Node is this version. */
const asNode = (version: string) => [
  '--import',
  `data:text/javascript,Object.defineProperty(process.versions,'node',{value:'${version}'})`,
];

afterAll(removeProcesses);

describe('npx deckhand', () => {
  it('prints the result alone on standard output', async () => {
    const npm_config_cache = await givenDirectory();
    const DATA_DIR = join(await givenDirectory(), 'data');

    const { stdout } = await run('npx', ['deckhand', 'migrate', '--json'], {
      cwd: ROOT,
      env: { ...process.env, npm_config_cache, DATA_DIR },
    });

    expect(JSON.parse(stdout)).toEqual({ applied: expect.arrayContaining([expect.stringMatching(/^Migration/)]) });
  });
});

describe('the launcher', () => {
  it.each(['20.1.0', '22.17.9', '22.18.0', '24.0.0'])('runs on Node %s, with its exit codes', async (version) => {
    const start = (...words: string[]) => run(process.execPath, [...asNode(version), LAUNCHER, ...words]);

    expect((await start('--help')).stdout).toMatch(/^Usage: npx deckhand /);
    await expect(start('nonsense')).rejects.toMatchObject({ code: 2, stdout: '' });
  });

  it('1 on an older Node without the one of the project, with what to do', async () => {
    const directory = join(await givenDirectory(), 'server/cli');
    await mkdir(directory, { recursive: true });
    await cp(LAUNCHER, join(directory, 'deckhand.js'));
    await cp(join(ROOT, 'package.json'), join(directory, 'package.json'));

    const start = run(process.execPath, [...asNode('20.1.0'), join(directory, 'deckhand.js')]);

    await expect(start).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(/npm ci brings Node 24\.\n$/) });
  });
});
