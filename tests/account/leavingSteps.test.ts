import { describe, expect, it, vi } from 'vitest';
import { Leaving } from '../../server/runtime/leaving.ts';

describe('Leaving', () => {
  it('calls back everybody who still waits, and aborts the signal', () => {
    const leaving = new Leaving();
    const [one, other, removed] = [vi.fn(), vi.fn(), vi.fn()];
    for (const callback of [one, other, removed]) leaving.add(callback);
    leaving.remove(removed);
    const { signal } = leaving;
    expect([leaving.isGone, signal.aborted]).toEqual([false, false]);

    leaving.leave();

    expect([leaving.isGone, signal.aborted]).toEqual([true, true]);
    expect([one, other, removed].map(({ mock }) => mock.calls.length)).toEqual([1, 1, 0]);
  });

  it('has an aborted signal for those who ask after the caller left', () => {
    const leaving = new Leaving();
    leaving.leave();

    expect(leaving.signal.aborted).toBe(true);
  });
});
