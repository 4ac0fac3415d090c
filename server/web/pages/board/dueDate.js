const DAY_MILLISECONDS = 24 * 60 * 60_000;

/**
 * The day of a due date, for people. A date without a time is sent as midnight UTC: it is the same day in every time zone.
 * @param {Date} due
 */
export function dayOf(due) {
  const isWholeDay = due.getTime() % DAY_MILLISECONDS === 0;
  return due.toLocaleDateString(undefined, { dateStyle: 'medium', ...(isWholeDay && { timeZone: 'UTC' }) });
}
