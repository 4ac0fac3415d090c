import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

it('timers take any delay without a warning, also one that a moved clock made negative', () => {
  const file = new URL('../../server/boot/testing/clock.ts', import.meta.url).href;
  const program = `
    import { followClock } from '${file}';
    followClock(new BigInt64Array(new SharedArrayBuffer(8)));
    for (const delay of [-5, undefined, 0]) setTimeout((sent) => console.log(sent), delay, 'fired');
    setTimeout(() => undefined, 2 ** 40).unref();`;

  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    encoding: 'utf8',
  });

  expect({ stdout, stderr }).toEqual({ stdout: 'fired\nfired\nfired\n', stderr: '' });
});
