/** Waits end at once when their condition holds, but only then: a busy machine needs more than a second. */
export const LONGEST_WAIT_MILLISECONDS = 60_000;
