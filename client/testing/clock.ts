/** The clock of a Deckhand: what the service and its database take for the current time. Timers keep the real one. */
export type Clock = {
  /** Stops the clock at a timestamp: `clock.set('2026-01-31T09:30:00Z')`. */
  set: (timestamp: string | Date) => void;
  /** Moves the clock, backward with negative numbers; it stands still from then on. */
  advance: (by: Duration) => void;
  /** Back to the real time. */
  reset: () => void;
  now: () => Date;
};

export type Duration = Partial<Record<keyof typeof MILLISECONDS, number>>;

const MILLISECONDS = { days: 86_400_000, hours: 3_600_000, minutes: 60_000, seconds: 1000, milliseconds: 1 };

/** Memory that both threads see, so that a change counts for the next call without waiting. */
export type ClockMemory = BigInt64Array;

const END = Date.UTC(2200, 0);

/** A number of milliseconds that no date has. */
const REAL_TIME = -(2n ** 63n);

export function makeClock(): { clock: Clock; memory: ClockMemory } {
  const memory = new BigInt64Array(new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT)).fill(REAL_TIME);
  const now = () => readClock(memory) ?? Date.now();
  const set = (timestamp: string | Date) => {
    const milliseconds = new Date(timestamp).getTime();
    if (Number.isNaN(milliseconds)) throw new RangeError(`The clock can't be set to ${timestamp}: that is no date.`);
    if (milliseconds < 0 || milliseconds >= END) throw new RangeError('The clock takes the years 1970 to 2199.');
    Atomics.store(memory, 0, BigInt(milliseconds));
  };

  return {
    memory,
    clock: {
      set,
      // Within what a date can hold, so that a number that is far too large is refused for its range.
      advance: (by) => set(new Date(Math.max(-1, Math.min(now() + millisecondsOf(by), END)))),
      reset: () => void Atomics.store(memory, 0, REAL_TIME),
      now: () => new Date(now()),
    },
  };
}

/** The time that the clock was set to; undefined for the real time. */
export function readClock(memory: ClockMemory): number | undefined {
  const milliseconds = Atomics.load(memory, 0);
  return milliseconds === REAL_TIME ? undefined : Number(milliseconds);
}

function millisecondsOf(by: Duration): number {
  const units = Object.keys(MILLISECONDS);
  const parts = Object.entries(by);
  const unknown = parts.find(([unit]) => !units.includes(unit));
  if (unknown) throw new RangeError(`advance knows ${units}, not ${unknown[0]}.`);
  if (parts.length === 0 || !parts.every(([, count]) => Number.isFinite(count)))
    throw new RangeError(`advance takes numbers of ${units}.`);
  return parts.reduce((sum, [unit, count]) => sum + MILLISECONDS[unit as keyof Duration] * count, 0);
}
