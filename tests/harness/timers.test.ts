import { AsyncResource } from 'node:async_hooks';
import { expect, it, vi } from 'vitest';
import { fakeTimers } from './timers.ts';

/** What runs beside the tests, such as a service of the same process. */
const service = new AsyncResource('service');

it('faked timers are those of the test: a service keeps its own, which are not counted', async () => {
  fakeTimers('performance');
  let isOver = false;
  setTimeout(() => {
    isOver = true;
  }, 1);

  const served = service.runInAsyncScope(() => {
    clearTimeout(setTimeout(() => undefined, 60_000));
    return new Promise<void>((resolve) => setTimeout(resolve, 5));
  });

  expect(vi.getTimerCount()).toBe(1);
  await served;
  expect(isOver).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(isOver).toBe(true);
});
