import { afterAll, expect, it } from 'vitest';
import { givenDemoSettings, removeProcesses, startService, statusOf } from '../harness/process.ts';

afterAll(removeProcesses);

/** Errors that no request handler sees, caused by signals. */
const FAULTS = `process.on('SIGUSR2', () => { throw new Error('outside any request') });
process.on('SIGHUP', () => { Promise.reject(new Error('forgotten')) });`;

it('an error outside any request is logged, and the process stops gracefully with exit code 1', async () => {
  const service = await startService({
    ...(await givenDemoSettings()),
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(FAULTS)}`,
  });

  void service.stop('SIGHUP');
  await expect.poll(service.printed).toContain('A rejected promise was not handled.');
  expect(await statusOf(service.url, '/health/ready')).toBe(200);
  const { code, stdout } = await service.stop('SIGUSR2');

  expect(code).toBe(1);
  const fatal = stdout.split('\n').find((line) => line.includes('"level":60'));
  expect(JSON.parse(fatal!)).toMatchObject({
    msg: 'An error outside any request: this process stops.',
    err: { message: 'outside any request' },
  });
});
