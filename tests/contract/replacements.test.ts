import { expect, it } from 'vitest';
import { makeReplacements } from '../../server/boot/workers/replacements.ts';

const MINUTE = 60_000;
const GROWING = [0, 1000, 2000, 4000, 8000, 16_000, 30_000];

it.each<[string, lived: number[], isAnotherReady: boolean, delays: (number | undefined)[]]>([
  ['at once if each worked for a while', Array(100).fill(MINUTE), false, Array(100).fill(0)],
  ['later each time if it ends soon, and at last not any more', Array(8).fill(100), false, [...GROWING, undefined]],
  ['again and again while another one serves', Array(20).fill(100), true, [...GROWING, ...Array(13).fill(30_000)]],
  ['at once again after one that worked for a while', [100, 100, MINUTE, 100], false, [0, 1000, 0, 0]],
])('a worker is replaced %s', (_, lived, isAnotherReady, delays) => {
  const { delayAfter } = makeReplacements();

  expect(lived.map((milliseconds) => delayAfter(milliseconds, isAnotherReady))).toEqual(delays);
});
