import superjson from 'superjson';
import { expect, vi } from 'vitest';
import { type ClientOptions, createClient, DeckhandError } from '../../client/client.ts';
import { realSetTimeout, replaceTimers } from './timers.ts';

/** A client that records its requests. */
export function givenClient(options: ClientOptions) {
  const requests: { path: string; inputs: Record<string, { json: unknown }>; headers: Headers }[] = [];
  const client = createClient({
    ...options,
    fetch: (address, request) => {
      const headers = new Headers(request!.headers);
      requests.push({
        path: new URL(String(address)).pathname,
        inputs: JSON.parse(String(request!.body ?? '{}')),
        headers,
      });
      return (options.fetch ?? fetch)(address, request);
    },
  });
  return {
    client,
    /** The procedures of each request. */
    called: () => requests.map(({ path }) => path.replace('/trpc/', '')),
    /** The idempotency keys of each request. */
    keys: () => requests.map(({ headers }) => headers.get('idempotency-key')),
    /** A header of each request. */
    header: (name: string) => requests.map(({ headers }) => headers.get(name)),
    /** The first input of each request. */
    sent: () => requests.map(({ inputs }) => inputs[0]?.json),
  };
}

/** What a request is answered with. */
export type GivenAnswer = (address?: unknown, request?: RequestInit) => Promise<Response>;

/** A client without a service: its requests get these answers, in this order. */
export function givenAnswers(options: Partial<ClientOptions>, ...answers: GivenAnswer[]) {
  return givenClient({
    url: 'http://service.test',
    ...options,
    fetch: (address, request) => answers.shift()!(address, request),
  });
}

/** The same, but pauses pass at once and have no jitter. Time-outs are longer than any pause. */
export function givenFastRetries(options: Partial<ClientOptions>, ...answers: GivenAnswer[]) {
  const pauses: number[] = [];
  vi.spyOn(Math, 'random').mockReturnValue(0);
  replaceTimers((work, milliseconds) => {
    if (milliseconds > LONGEST_PAUSE) return realSetTimeout(work, milliseconds);
    if (milliseconds > 0) pauses.push(milliseconds);
    return realSetTimeout(work, 0);
  });
  return { ...givenAnswers(options, ...answers), pauses: () => pauses };
}
const LONGEST_PAUSE = 50_000;

/** A successful answer to all calls of one request. */
export const success =
  (...results: unknown[]): GivenAnswer =>
  async () =>
    Response.json(results.map((result) => ({ result: { data: superjson.serialize(result) } })));

export function refusal(httpStatus: number, more: object = {}, message = 'Refused.'): GivenAnswer {
  const data = { code: 'REFUSED', httpStatus, ...more };
  return async () =>
    Response.json([{ error: superjson.serialize({ message, code: -1, data }) }], { status: httpStatus });
}

/** The answer of a proxy. */
export const page =
  (status: number, headers: Record<string, string> = {}): GivenAnswer =>
  async () =>
    new Response('<h1>A page</h1>', { status, headers: { 'content-type': 'text/html', ...headers } });

export const networkFailure: GivenAnswer = () => Promise.reject(new TypeError('fetch failed'));

/** A connection that failed with this code of Node. */
export const broken =
  (code: string): GivenAnswer =>
  async () => {
    throw new TypeError('fetch failed', { cause: Object.assign(new Error('wrong version\nnumber:\n'), { code }) });
  };

/** The error of a call. */
export async function errorOf(call: Promise<unknown>): Promise<DeckhandError> {
  const error: any = await call.catch((thrown) => thrown);
  expect(error).toBeInstanceOf(DeckhandError);
  return error;
}

/** The status and the reason of the error of a call: `404 not_found`. */
export async function reasonOf(call: Promise<unknown>): Promise<string> {
  const { status, reason } = await errorOf(call);
  return `${status} ${reason}`;
}
