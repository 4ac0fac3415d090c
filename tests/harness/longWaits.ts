import { vi } from 'vitest';

/** Runs before every suite: waits end at once when their condition holds, but only then. A busy machine needs more than a second. */
const LONGEST_WAIT_MILLISECONDS = 15_000;

type Options = { timeout?: number; interval?: number } | number;

const { waitFor, waitUntil } = vi;
const patient = (options: Options = {}) => ({
  timeout: LONGEST_WAIT_MILLISECONDS,
  ...(typeof options === 'number' ? { timeout: options } : options),
});
vi.waitFor = (work, options) => waitFor(work, patient(options));
vi.waitUntil = (work, options) => waitUntil(work, patient(options));
