/** The maximum number of calls in an RPC batch. */
export const LARGEST_BATCH = 50;

/** The maximum size of a request body. */
export const LARGEST_BODY_BYTES = 1024 * 1024;

/** Parsing more distinct field names would block the event loop for too long. */
export const MOST_BODY_FIELDS = 30_000;

/** The range of PostgreSQL's `integer`: ids and positions. */
export const LARGEST_INTEGER = 2_147_483_647;
export const SMALLEST_INTEGER = -2_147_483_648;

/** The maximum number of rows in one call. */
export const MOST_ROWS = 1000;

/** What a call with many rows counts as in the rate limit, as a number and in words. */
const ROWS_PER_CALL = 20;
export const callsFor = (rows: number) => Math.max(1, Math.ceil(rows / ROWS_PER_CALL));
export const COUNTS_AS = `counts as one call for every ${ROWS_PER_CALL} of them, rounded up`;
