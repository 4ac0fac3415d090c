import { describe, expect, it } from 'vitest';
import { makeReplacements } from '../../server/boot/workers/replacements.ts';

const MINUTE = 60_000;

describe('a worker that ends', () => {
  it('is replaced at once if it worked for a while, any number of times', () => {
    const { delayAfter } = makeReplacements();

    expect(Array.from({ length: 100 }, () => delayAfter(MINUTE, false))).toEqual(Array(100).fill(0));
  });

  it('soon after its start is replaced after a longer delay each time, and at last not any more', () => {
    const { delayAfter } = makeReplacements();

    const delays = Array.from({ length: 8 }, () => delayAfter(100, false));

    expect(delays).toEqual([0, 1000, 2000, 4000, 8000, 16_000, 30_000, undefined]);
  });

  it('soon after its start is replaced any number of times, after 30 seconds at most, while another one serves', () => {
    const { delayAfter } = makeReplacements();
    const isAnotherReady = true;

    const delays = Array.from({ length: 100 }, () => delayAfter(100, isAnotherReady));

    expect(delays).toEqual([0, 1000, 2000, 4000, 8000, 16_000, ...Array(94).fill(30_000)]);
    expect(delayAfter(MINUTE, false)).toBe(0);
  });

  it('after another that worked for a while is replaced at once again', () => {
    const { delayAfter } = makeReplacements();

    const delays = [100, 100, MINUTE, 100].map((lived) => delayAfter(lived, false));

    expect(delays).toEqual([0, 1000, 0, 0]);
  });
});
