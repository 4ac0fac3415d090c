/** How many calls one RPC request may carry. */
export const LARGEST_BATCH = 50;

/** The maximum of PostgreSQL's `integer`: ids and positions. */
export const LARGEST_INTEGER = 2_147_483_647;
