import { LARGEST_PAGE } from '../../shared/paging.ts';
import type { Call, Where } from './command.ts';
import { misuse } from './misuse.ts';
import { chosenUrl } from './url.ts';

/** Lets commands call procedures: over RPC on the service of `--url` or `DECKHAND_URL`, else on the database of the settings. */
export async function withCalls<Result>(
  where: Where,
  isQuery: (procedure: string) => boolean,
  work: (call: Call) => Promise<Result>,
): Promise<Result> {
  const url = chosenUrl(where);
  if (url === undefined) return (await import('./onDatabase.ts')).callOnDatabase(where, work);

  if (where.chosen.as !== undefined) {
    throw misuse(`--as is for the database; on ${url} you act as the user who signed in. --url '' is the database.`);
  }
  return work(await (await import('./onService.ts')).callsOnService(url, where, isQuery));
}

/** Follows `next_cursor` to the end, from the start or from a cursor, and returns all rows as one page. */
export async function callAll(call: Call, procedure: string, input: unknown, start?: string): Promise<unknown> {
  const rows: unknown[] = [];
  for (let cursor: unknown = start; ; ) {
    const sent = { limit: LARGEST_PAGE, ...(input as object), ...(cursor ? { cursor } : {}) };
    const page = (await call(procedure, sent)) as { next_cursor: string | null; [rows: string]: unknown };
    const [name, found] = Object.entries(page).find((entry): entry is [string, unknown[]] => Array.isArray(entry[1]))!;
    rows.push(...found);
    if (page.next_cursor === null) return { [name]: rows, next_cursor: null };
    cursor = page.next_cursor;
  }
}

/** Completes the threads of a list of comments, which has only the first replies of each. */
export async function withAllReplies(call: Call, result: unknown): Promise<unknown> {
  const threads: Thread[] = [];
  // One after the other, so that the rate limit lasts.
  for (const thread of (result as { threads: Thread[] }).threads) {
    const { id, replies_next_cursor: cursor } = thread;
    const rest = cursor && (await callAll(call, 'comments.listReplies', { id }, cursor));
    const { replies } = (rest || { replies: [] }) as Pick<Thread, 'replies'>;
    threads.push({ ...thread, replies: [...thread.replies, ...replies], replies_next_cursor: null });
  }
  return { ...(result as object), threads };
}

type Thread = { id: number; replies: unknown[]; replies_next_cursor: string | null };
