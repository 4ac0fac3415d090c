import { LARGEST_PAGE } from '../../shared/paging.ts';
import { isLoopback } from '../host.ts';
import { startFailure } from '../startFailure.ts';
import type { Call, Where } from './command.ts';
import { misuse } from './options.ts';

/** Lets commands call procedures: over RPC on the service of `--url` or `DECKHAND_URL`, else on the database of the settings. */
export async function withCalls<Result>(where: Where, work: (call: Call) => Promise<Result>): Promise<Result> {
  const url = chosenUrl(where);
  if (url === undefined) return (await import('./onDatabase.ts')).callOnDatabase(where, work);

  if (where.chosen.as !== undefined) {
    throw misuse(`--as is for the database; on ${url} you act as the user who signed in. --url '' is the database.`);
  }
  return work(await (await import('./onService.ts')).callsOnService(url, where));
}

/** The address of the service without a trailing slash; undefined for the database of the settings. */
export function chosenUrl({ chosen, environment }: Where): string | undefined {
  const given = chosen.url ?? environment().DECKHAND_URL ?? '';
  if (given === '') return undefined;
  const url = URL.parse(given);
  if (url && /^https?:$/.test(url.protocol) && !url.username && !/[?#]/.test(given)) {
    return url.href.replace(/\/+$/, '');
  }
  const refusal = 'must be an address such as https://deckhand.example.com';
  throw chosen.url === undefined ? startFailure(`DECKHAND_URL: ${refusal}.`) : misuse(`--url ${refusal}.`);
}

/** Whether others in the network can read what is sent to this address. */
export function isOpenToOthers(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !isLoopback(hostname.replace(/^\[|\]$/g, ''));
}

/** Follows `next_cursor` to the end, and returns all rows as one page. */
export async function callAll(call: Call, procedure: string, input: unknown): Promise<unknown> {
  const rows: unknown[] = [];
  for (let cursor: unknown; ; ) {
    const page = (await call(procedure, {
      limit: LARGEST_PAGE,
      ...(input as object),
      ...(cursor ? { cursor } : {}),
    })) as Page;
    const [name, found] = Object.entries(page).find((entry): entry is [string, unknown[]] => Array.isArray(entry[1]))!;
    rows.push(...found);
    if (page.next_cursor === null) return { [name]: rows, next_cursor: null };
    cursor = page.next_cursor;
  }
}

type Page = { next_cursor: string | null; [rows: string]: unknown };
