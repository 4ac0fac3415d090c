import { readdir } from 'node:fs/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { givenDirectory, removeProcesses, runToEnd } from '../harness/process.ts';

afterAll(removeProcesses);

describe.concurrent('npm run deckhand', () => {
  it('--help tells of every command', async () => {
    const ended = await run(['--help']);

    expect(ended).toEqual({ ...done, stdout: expect.stringMatching(/^Usage: .*\n {2}migrate .*\n {2}demo /s) });
  });

  it.each([
    [['remove'], 'There is no command remove.'],
    [['toString'], 'There is no command toString.'],
    [['demo', 'twice'], 'demo takes nothing else.'],
  ])('2 for %j, and touches nothing', async (words, message) => {
    const DATA_DIR = await givenDirectory();

    const ended = await run(words, { DATA_DIR });

    expect(ended).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(`${message}\n\nUsage: `) });
    expect(await readdir(DATA_DIR)).toEqual([]);
  });

  it('1 for a setting with a wrong value, in one line', async () => {
    const ended = await run(['migrate'], { LOG_LEVEL: 'loud' });

    expect(ended).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^LOG_LEVEL: .+\n$/) });
  });
});

const done = { code: 0, signal: null, stderr: '' };

const run = (words: string[], settings?: Record<string, string>) =>
  runToEnd(['server/cli/main.ts', ...words], settings);
