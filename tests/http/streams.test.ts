import { randomUUID } from 'node:crypto';
import { createTRPCClient, httpBatchStreamLink } from '@trpc/client';
import superjson from 'superjson';
import { beforeAll, describe, expect, it } from 'vitest';
import type { AppRouter } from '../../client/router.ts';
import type { FairQueue } from '../../server/runtime/fairQueue.ts';
import { tooManyRequests } from '../../shared/errors.ts';
import { LARGEST_BATCH } from '../../shared/limits.ts';
import { givenService, scrape, testService } from '../harness/service.ts';
import { explain } from '../harness/stockClient.ts';
import { givenBoard, givenCard, givenGroup, givenWorld, type World } from '../harness/world.ts';

const LOAD = { load: () => ({ running: 0, waiting: 0 }) };

let world: World;
let url: string;
beforeAll(async () => {
  ({ url } = await testService());
  world = await givenWorld();
});

type Given = { url?: string; token?: string | undefined; headers?: Record<string, string>; streamHeader?: 'accept' };

/** The stock client, whose responses are kept. */
function givenClient(given: Given = {}) {
  const token = 'token' in given ? given.token : world.asMember.token;
  const responses: Response[] = [];
  const link = httpBatchStreamLink({
    url: `${given.url ?? url}/trpc`,
    transformer: superjson,
    headers: { ...(token && { authorization: `Bearer ${token}` }), ...given.headers },
    ...(given.streamHeader && { streamHeader: given.streamHeader }),
    fetch: async (address, request) => {
      const response = await fetch(address, request as RequestInit);
      responses.push(response);
      return response;
    },
  });
  return { client: createTRPCClient<AppRouter>({ links: [link] }), responses };
}

const errorOf = (call: Promise<unknown>) => call.then(() => 'no error', explain);

/** A service whose first call in the queue waits for `open`. */
async function givenGate(settings: Record<string, string> = {}) {
  const gate = Promise.withResolvers<void>();
  const signals: (AbortSignal | undefined)[] = [];
  const run: FairQueue['run'] = async (_key, work, options) => {
    signals.push(options?.leaving?.signal);
    if (signals.length === 1) await gate.promise;
    return work();
  };
  const service = await givenService(settings, { queue: { run, ...LOAD } });
  return { ...service, open: gate.resolve, signals };
}

describe('a streamed batch', () => {
  it.each([undefined, 'accept' as const])('has fast results before slow ones (header %s)', async (streamHeader) => {
    const { url, open, logged } = await givenGate();
    const { client, responses } = givenClient({ url, ...(streamHeader && { streamHeader }) });
    const done: string[] = [];
    const note = (name: string) => () => void done.push(name);

    const slow = client.boards.list.query().then(note('slow'));
    await client.tags.list.query().then(note('fast'));
    open();
    await slow;

    expect(done).toEqual(['fast', 'slow']);
    expect(responses).toHaveLength(1);
    expect(responses[0]!.headers.get('cache-control')).toBe('no-store');
    expect(responses[0]!.headers.get('x-ratelimit-remaining')).not.toBeNull();
    await expect.poll(() => logged.at(-1)).toMatchObject({ msg: 'answered', operation: 'batch', status: 200 });
  });

  it('has the same values as other responses', async () => {
    const due_date = new Date('2026-01-31T09:30:00Z');
    const id = await givenBoard(world.project, { title: 'Launch' });
    await givenCard(world.project, { group_id: await givenGroup(world.project, id), due_date });
    const { client } = givenClient({ headers: { 'accept-encoding': 'gzip' } });

    const [{ board }, { card }] = await Promise.all([
      client.boards.get.query({ id }),
      client.cards.create.mutate({ title: 'Typed', due_date }),
    ]);
    await client.cards.delete.mutate({ id: card.id });

    expect(board).toEqual((await world.asMember.rpc.boards.get.query({ id })).board);
    expect(board.groups[0]!.cards[0]!.due_date).toEqual(due_date);
    expect(card.due_date).toEqual(due_date);
  });

  it('has an error for each call that fails, as in other responses', async () => {
    const { client, responses } = givenClient();
    const other = client as unknown as { no: { such: { query: () => Promise<unknown> } } };

    const calls = [
      client.boards.list.query(),
      client.boards.get.query({ id: 2_000_000_000 }),
      client.boards.get.query({ id: 'x' as unknown as number }),
      client.users.list.query({}),
      other.no.such.query(),
    ];

    expect(await Promise.all(calls.map(errorOf))).toEqual([
      'no error',
      '404 not_found: ',
      '422 invalid_input: id',
      '403 not_a_superadmin: ',
      '404 unknown_procedure: ',
    ]);
    expect(responses.map(({ status }) => status)).toEqual([200]);
  });

  it('401 for each call without a token', async () => {
    const { client } = givenClient({ token: undefined });

    expect(await Promise.all([client.boards.list.query(), client.tags.list.query()].map(errorOf))).toEqual([
      '401 not_signed_in: ',
      '401 not_signed_in: ',
    ]);
  });

  it('500 is logged once, and counted', async () => {
    const run = () => Promise.reject(new Error('hunter2'));
    const { url, logged } = await givenService({}, { queue: { run, ...LOAD } });
    const { client } = givenClient({ url });

    expect(await errorOf(client.boards.list.query())).toBe('500 fault: ');
    expect(logged.filter(({ level }) => level === 50)).toMatchObject([{ err: { message: 'hunter2' } }]);
    const metrics = await scrape(url);
    expect(metrics).toContain('deckhand_errors_total{surface="rpc",reason="fault"} 1');
  });

  it('429 for calls above the rate limit, and for all of the next request', async () => {
    const { url } = await givenService({ RATE_LIMIT_PER_MINUTE: '2' });
    const { client, responses } = givenClient({ url });
    const three = () => Promise.all([1, 2, 3].map(() => errorOf(client.boards.list.query())));

    expect(await three()).toEqual(['no error', 'no error', '429 over_rate_limit: ']);
    expect(await three()).toEqual(Array(3).fill('429 over_rate_limit: '));
    expect(responses.map(({ status }) => status)).toEqual([200, 429]);
    expect(responses[0]!.headers.get('retry-after')).not.toBeNull();
  });

  it('does not count calls that are refused as busy', async () => {
    const run = () => Promise.reject(tooManyRequests('Busy.', 1, 'service_busy'));
    const { url } = await givenService({ RATE_LIMIT_PER_MINUTE: '2' }, { queue: { run, ...LOAD } });
    const { client } = givenClient({ url });

    // Given back after the response has ended: the next call may come before that.
    for (let call = 0; call < 4; call++)
      await expect.poll(() => errorOf(client.boards.list.query())).toBe('429 service_busy: ');
  });

  it('400 for a whole request that is too large, has too many calls, or mixes queries and mutations', async () => {
    const { client } = givenClient();
    const many = Array.from({ length: LARGEST_BATCH + 1 }, () => errorOf(client.cards.create.mutate({ title: 'x' })));
    const headers = { 'content-type': 'application/json', 'trpc-accept': 'application/jsonl' };
    const mixed = await fetch(`${url}/trpc/boards.list,cards.create?batch=1&kind=query`, {
      method: 'POST',
      headers,
      body: '{}',
    });

    expect(new Set(await Promise.all(many))).toEqual(new Set(['400 batch_invalid: ']));
    const title = 'x'.repeat(1024 * 1024);
    expect(await errorOf(client.cards.create.mutate({ title }))).toBe('400 body_too_large: ');
    expect(mixed.status).toBe(400);
  });

  it('405 for a mutation by GET', async () => {
    const response = await fetch(`${url}/trpc/cards.create?batch=1`, {
      headers: { 'trpc-accept': 'application/jsonl' },
    });

    expect(response.status).toBe(405);
  });

  it('400 for inputs with other types than JSON and dates, for that call alone', async () => {
    const headers = {
      'content-type': 'application/json',
      'trpc-accept': 'application/jsonl',
      authorization: `Bearer ${world.asMember.token}`,
    };
    const body = { 0: { json: { id: [1] }, meta: { values: { id: ['set'] } } }, 1: { json: {} } };

    const response = await fetch(`${url}/trpc/boards.get,boards.list?batch=1`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    const text = await response.text();

    expect(text).toContain('input_unreadable');
    expect(text).toContain('"boards":');
  });

  it('uses the idempotency key of each call', async () => {
    const title = randomUUID();
    const { client } = givenClient({ headers: { 'idempotency-key': randomUUID() } });

    const first = await client.cards.create.mutate({ title });
    const again = await client.cards.create.mutate({ title });

    expect(again).toEqual(first);
    expect(await errorOf(client.cards.create.mutate({ title: 'Other' }))).toBe(
      '422 idempotency_key_reused: Idempotency-Key',
    );
  });

  it('aborts its calls when the caller leaves', async () => {
    const { url, signals, open } = await givenGate();
    const { client } = givenClient({ url });
    const leaving = new AbortController();

    const call = client.boards.list.query(undefined, { signal: leaving.signal }).catch((error) => error.name);
    await expect.poll(() => signals).toHaveLength(1);
    leaving.abort();

    expect(await call).toBe('TRPCClientError');
    await expect.poll(() => signals[0]?.aborted).toBe(true);
    open();
  });
});
