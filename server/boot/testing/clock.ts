import { type ClockMemory, readClock } from '../../../client/testing/clock.ts';

/** Lets `Date` in this thread follow the clock, and with it the `now()` of PGlite, which asks `Date.now`. */
export function followClock(memory: ClockMemory): void {
  const RealDate = Date;
  const realNow = Date.now;
  const now = () => readClock(memory) ?? realNow();

  RealDate.now = now;
  const FollowingDate = new Proxy(RealDate, {
    construct: (_, parts, target) => Reflect.construct(RealDate, parts.length === 0 ? [now()] : parts, target),
    apply: () => new RealDate(now()).toString(),
  });
  RealDate.prototype.constructor = FollowingDate;
  globalThis.Date = FollowingDate;
  limitTimers();
}

/** The most milliseconds that Node allows; a timer for more would fire at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** PGlite sets timers until a time of the clock: after this was set back, that may be months away. */
function limitTimers(): void {
  globalThis.setTimeout = new Proxy(setTimeout, {
    apply: (set, self, [work, milliseconds, ...parts]) =>
      Reflect.apply(set, self, [work, Math.min(milliseconds, LONGEST_TIMER), ...parts]),
  });
}
