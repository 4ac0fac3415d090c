import { vi } from 'vitest';

/** Runs before every suite: waits end at once when their condition holds, but only then. A busy machine needs more than a second. */
const LONGEST_WAIT_MILLISECONDS = 60_000;

/** Longer than a wait, so that a test fails with what the wait has seen last. */
const testTimeout = 180_000;
vi.setConfig({ testTimeout, hookTimeout: testTimeout });
// `setConfig` takes all settings, but its type lacks this one.
vi.setConfig({ expect: { poll: { timeout: LONGEST_WAIT_MILLISECONDS } } } as object);

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
