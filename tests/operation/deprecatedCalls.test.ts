import { describe, expect, it } from 'vitest';
import { firstOnes, oncePerHour } from '../../server/http/deprecation.ts';

describe('what operators are told of deprecated calls is bounded', () => {
  it('to the first keys: all others are one', () => {
    const label = firstOnes(2);

    expect(['7', '8', '9', '7', '10'].map(label)).toEqual(['7', '8', 'other', '7', 'other']);
  });

  it('to one line an hour for each caller, and not too many callers', () => {
    let now = 0;
    const isFirst = oncePerHour(2, () => now);

    expect(['a', 'a', 'b', 'c'].map(isFirst)).toEqual([true, false, true, false]);
    now = 3_599_999;
    expect(isFirst('a')).toBe(false);
    now = 3_600_000;
    expect(['c', 'a', 'b'].map(isFirst)).toEqual([true, true, false]);
  });
});
