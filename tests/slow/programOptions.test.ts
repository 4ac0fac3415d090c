import { afterAll, describe, expect, it } from 'vitest';
import { removeProcesses, runToEnd } from '../harness/process.ts';

afterAll(removeProcesses);

describe.each([
  ['tests/fuzz/run.ts', /^Usage: npm run fuzz -- \[--requests 100000\] \[--seed \d+\] .*\[--mix fuzz\]\n$/],
  ['tests/faults/main.ts', /^Usage: npm run test:faults -- \[--kills 100\] .*\[--only TEXT\]\n$/],
  ['tests/benchmarks/requests.ts', /^Usage: npm run bench -- .*\n$/],
])('%s', (program, usage) => {
  it('--help prints how to use it', async () => {
    expect(await runToEnd([program, '--help'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(usage),
      stderr: '',
    });
  });

  it('2 for an option that it does not have, without a stack', async () => {
    const { code, stdout, stderr } = await runToEnd([program, '--frobnicate']);

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^Unknown option '--frobnicate'\.\nUsage: .*\n$/);
  });
});
