import { beforeEach, describe, expect, it, vi } from 'vitest';
import { type NextLook, startLooks } from '../../server/domain/event/webhookLooks.ts';
import { fakeTimers } from '../harness/timers.ts';

const NOTHING: NextLook = { isWaiting: false, dueInMilliseconds: null, seen: 0 };

beforeEach(() => void fakeTimers('performance'));

/** Looks that find this, and when they were. */
async function givenLooks(found: () => NextLook = () => NOTHING) {
  const start = performance.now();
  const at: number[] = [];
  const looks = startLooks(async () => {
    at.push(Math.round(performance.now() - start));
    return found();
  });
  await vi.advanceTimersByTimeAsync(0);
  return { ...looks, at };
}

describe('looks for due webhooks', () => {
  it('are one in five seconds while nothing happens', async () => {
    const { at } = await givenLooks();

    await vi.advanceTimersByTimeAsync(60_000);

    expect(at).toEqual(Array.from({ length: 13 }, (_, look) => look * 5000));
  });

  it.each([
    [0, [0, 1000, 1050, 1100]],
    [500, [0, 1000, 1100]],
  ])(
    'follow a change at once, and many changes with pauses, longer ones with many webhooks: %i',
    async (seen, expected) => {
      const { wake, at } = await givenLooks(() => ({ ...NOTHING, seen }));
      await vi.advanceTimersByTimeAsync(1000);

      for (let change = 0; change < 25; change++) {
        wake();
        await vi.advanceTimersByTimeAsync(5);
      }

      expect(at).toEqual(expected);
    },
  );

  it('follow when the next attempt is due', async () => {
    const { at } = await givenLooks(() => ({ ...NOTHING, dueInMilliseconds: 1234 }));

    await vi.advanceTimersByTimeAsync(2500);

    expect(at).toEqual([0, 1234, 2468]);
  });

  it('follow after longer and longer pauses while an event waits for an older transaction', async () => {
    const { wake, at } = await givenLooks(() => ({ ...NOTHING, isWaiting: true }));

    await vi.advanceTimersByTimeAsync(4000);
    expect(at).toEqual([0, 50, 150, 350, 750, 1550, 2550, 3550]);
    wake();
    await vi.advanceTimersByTimeAsync(100);

    expect(at.slice(-2)).toEqual([4000, 4050]);
  });

  it('end with a stop', async () => {
    const { wake, stop, at } = await givenLooks();

    await stop();
    wake();
    await vi.advanceTimersByTimeAsync(10_000);

    expect(at).toEqual([0]);
  });
});
