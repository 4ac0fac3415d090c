/** How many calls one RPC request may carry. */
export const LARGEST_BATCH = 50;

/** The maximum size of a request body. */
export const LARGEST_BODY_BYTES = 1024 * 1024;

/** The maximum number of fields in a request body: parsing more distinct names would block the event loop for too long. */
export const MOST_BODY_FIELDS = 30_000;

/** The maximum of PostgreSQL's `integer`: ids and positions. */
export const LARGEST_INTEGER = 2_147_483_647;
