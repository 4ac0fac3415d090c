import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { makeOutput } from '../../server/runtime/log.ts';
import { reservePort } from '../harness/port.ts';
import { givenDemoSettings, givenDirectory, removeProcesses, statusOf } from '../harness/process.ts';

afterAll(removeProcesses);

describe.concurrent('a service whose output fails', () => {
  it.each<[string, () => number | 'pipe', (child: ChildProcess, url: string) => unknown]>([
    ['its disk is full', () => openSync('/dev/full', 'w'), () => undefined],
    ['the reader of its output is gone', () => 'pipe', ({ stdout }) => stdout!.destroy()],
    // One log line each, with its path: 2 MiB in all; a pipe buffers some hundred KiB.
    [
      'nobody reads its output, however much it logs',
      () => 'pipe',
      (_, url) => Promise.all(Array.from({ length: 250 }, () => statusOf(url, `/${'x'.repeat(8000)}`))),
    ],
  ])('answers and exits with 0 when %s', async (_, open, disturb) => {
    const output = open();
    const { child, url } = await startWith(output);
    if (output !== 'pipe') closeSync(output);

    await disturb(child, url);

    for (const _ of ['first', 'second']) expect(await statusOf(url, '/health/ready')).toBe(200);
    expect(await end(child)).toBe(0);
  });
});

describe('the output', () => {
  it('writes buffered lines in order once it can, and reports how many were lost', async () => {
    let isFull = true;
    let written = '';
    const output = makeOutput((text) => {
      if (isFull) throw new Error('ENOSPC');
      // In parts, as a nearly full pipe accepts it.
      const part = text.subarray(0, 100_000);
      written += part;
      return part.length;
    });
    const lines = ['first\n', `${'x'.repeat(1024 * 1024)}\n`, 'lost\n', 'lost too\n'];
    for (const line of lines) output.write(line);

    isFull = false;
    await vi.waitUntil(() => written.includes('could not'));

    const [first, second, report] = written.trimEnd().split('\n');
    expect([first, second]).toEqual(lines.slice(0, 2).map((line) => line.trimEnd()));
    expect(JSON.parse(report!)).toMatchObject({ level: 40, msg: '2 lines of this log could not be written.' });
  });
});

const started = new Set<ChildProcess>();
afterAll(() => {
  for (const child of started) child.kill('SIGKILL');
});

async function startWith(stdout: number | 'pipe') {
  const port = await reservePort();
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../server/boot/main.js')], {
    cwd: await givenDirectory(),
    env: { PATH: process.env.PATH, PORT: `${port}`, ...(await givenDemoSettings()) },
    stdio: ['ignore', stdout, 'inherit'],
  });
  started.add(child);
  const url = `http://127.0.0.1:${port}`;
  await vi.waitUntil(async () => {
    if (child.exitCode !== null) throw new Error(`The service ended with ${child.exitCode}.`);
    return (await statusOf(url, '/health/live').catch(() => 0)) === 200;
  });
  return { child, url };
}

async function end(child: ChildProcess) {
  child.kill('SIGTERM');
  const [code] = await once(child, 'exit');
  return code;
}
