import { vi } from 'vitest';
import { LONGEST_WAIT_MILLISECONDS } from './longestWait.ts';

/** Runs before every suite. */
type Options = { timeout?: number; interval?: number } | number;

const patient = (options: Options = {}) => ({
  timeout: LONGEST_WAIT_MILLISECONDS,
  ...(typeof options === 'number' ? { timeout: options } : options),
});

/** The suites of a worker share `vi`. */
const patched = globalThis as typeof globalThis & { waitsAreLong?: boolean };
if (!patched.waitsAreLong) {
  const { waitFor, waitUntil } = vi;
  vi.waitFor = (work, options) => waitFor(work, patient(options));
  vi.waitUntil = (work, options) => waitUntil(work, patient(options));
  patched.waitsAreLong = true;
}
