import { setImmediate as turn } from 'node:timers/promises';
import superjson from 'superjson';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Client, ClientOptions } from '../../client/client.ts';
import { LARGEST_BODY_BYTES, MOST_BODY_FIELDS } from '../../shared/limits.ts';
import {
  type GivenAnswer as Answer,
  errorOf,
  givenAnswers,
  givenClient,
  givenFastRetries,
  networkFailure,
  refusal,
  success,
} from '../harness/client.ts';

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const create = (client: Client, title: string) => client.cards.create.mutate({ title });
const createAll = (client: Client, count: number) => Promise.all(titlesOf(count).map((title) => create(client, title)));
const titlesOf = (count: number) => Array.from({ length: count }, (_, index) => `Card ${index}`);
const useFakeTimers = () => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });

describe('a batch', () => {
  it('has at most 1 MiB, in UTF-8 as sent', async () => {
    const { client, bodies, sizes } = givenEcho();
    const description = 'é'.repeat(32_000);

    const created = await Promise.all([
      ...Array.from({ length: 17 }, (_, index) => client.cards.create.mutate({ title: `${index}`, description })),
      create(client, 'tiny'),
    ]);

    expect(created.map(({ card }) => card.title)).toEqual([...Array(17).keys(), 'tiny'].map(String));
    expect(sizes()).toEqual([16, 2]);
    expect(bodies.filter((body) => Buffer.byteLength(body) > LARGEST_BODY_BYTES)).toEqual([]);
  });

  it('may have exactly 1 MiB', async () => {
    const { client, sizes } = givenEcho();
    const envelope = '{"0":{"json":{"title":""}},"1":{"json":{"title":""}}}'.length;
    // The client counts two digits for each index, and a comma behind the last one.
    const title = 'x'.repeat((LARGEST_BODY_BYTES - envelope - 3) / 2);

    await Promise.all([create(client, title), create(client, title)]);
    await Promise.all([create(client, title), create(client, `${title}x`)]);

    expect(sizes()).toEqual([2, 1, 1]);
  });

  it('has at most as many fields as the service reads', async () => {
    const { client, bodies, sizes } = givenEcho();
    const groups = Array.from({ length: 1000 }, (_, index) => ({ id: index + 1, position: index }));

    await Promise.all(Array.from({ length: 20 }, () => client.groups.reorder.mutate({ groups })));

    expect(sizes()).toEqual([9, 9, 2]);
    expect(bodies.filter((body) => body.split(':').length - 1 > MOST_BODY_FIELDS)).toEqual([]);
  });

  it('with a call that is too large has this call alone, and only this one is refused', async () => {
    const { client, sizes } = givenEcho();
    const tooLarge = 'x'.repeat(LARGEST_BODY_BYTES);

    const settled = await Promise.allSettled(['first', tooLarge, 'last'].map((title) => create(client, title)));

    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(sizes()).toEqual([1, 1, 1]);
  });

  it('of lost calls waits once, and is sent again as one, with the same keys', async () => {
    const { client, keys, called, pauses } = givenFastRetries({}, networkFailure, networkFailure, echo);

    const created = await createAll(client, 50);

    expect(created.map(({ card }) => card.title)).toEqual(titlesOf(50));
    expect(called().map((names) => names.split(',').length)).toEqual([50, 50, 50]);
    expect(new Set(keys()).size).toBe(1);
    expect(pauses()).toEqual([250, 500]);
  });

  it('of which some calls are refused as busy sends only these again', async () => {
    const busy = refusing('service_busy', (index) => index % 10 === 0);
    const { client, called } = givenFastRetries({}, busy, echo);

    const created = await createAll(client, 50);

    expect(created.map(({ card }) => card.title)).toEqual(titlesOf(50));
    expect(called().map((names) => names.split(',').length)).toEqual([50, 5]);
  });

  it('whose answers are too large is continued until all calls are answered, however often that takes', async () => {
    const large = refusing('batch_answers_too_large', (index) => index >= 8);
    const { client, called } = givenFastRetries({}, ...Array(20).fill(large));

    await createAll(client, 50);

    expect(called().map((names) => names.split(',').length)).toEqual([50, 42, 34, 26, 18, 10, 2]);
  });
});

describe('a burst', () => {
  it('keeps at most maxInFlight calls in flight, 100 by default', async () => {
    for (const [options, most] of [
      [{}, 100],
      [{ maxInFlight: 7 }, 7],
    ] as const) {
      const { client, seen } = givenService(1_000_000, options);

      await createAll(client, 300);

      expect(seen.mostInFlight).toBe(most);
    }
  });

  it('beyond the rate limit waits for the next windows, and succeeds', async () => {
    const { client, seen } = givenService(60);

    const created = await createAll(client, 500);

    expect(created.map(({ card }) => card.title)).toEqual(titlesOf(500));
    expect(seen).toMatchObject({ windows: 9, mostCounted: 60 });
    // Of the first two batches, and then one call for each window, whose refusal tells when it ends.
    expect(seen.refused).toBe(40 + 7);
  });

  it('429 at once with `retries: 0`', async () => {
    const { client, seen } = givenService(60, { retries: 0 });

    const settled = await Promise.allSettled(titlesOf(100).map((title) => create(client, title)));

    const refused = settled.flatMap((call) => (call.status === 'rejected' ? call.reason : []));
    expect(refused).toHaveLength(40);
    expect(refused[0]).toMatchObject({ status: 429, reason: 'over_rate_limit' });
    expect(seen.windows).toBe(1);
  });

  it('gives each project its turn', async () => {
    const { client, header } = givenAnswers({ maxInFlight: 50 }, ...Array(5).fill(echo));

    await Promise.all([
      ...Array.from({ length: 150 }, () => create(client.as({ projectId: 1 }), 'Many')),
      create(client.as({ projectId: 2 }), 'One'),
    ]);

    expect(header('x-project-id')).toEqual(['1', '2', '1', '1', '1']);
  });
});

describe('a call that waits for the rate limit', () => {
  const givenWaiting = (options: Partial<ClientOptions> = {}) => {
    useFakeTimers();
    const over = refusing('over_rate_limit', () => true, { retryAfterSeconds: 30 });
    return givenAnswers(options, over, echo);
  };

  it('ends when its signal aborts, and leaves no timer behind', async () => {
    const { client, called } = givenWaiting();
    const controller = new AbortController();

    const thrown = client.cards.create.mutate({ title: 'A' }, { signal: controller.signal }).catch((error) => error);
    await vi.advanceTimersByTimeAsync(1000);
    controller.abort(new Error('Enough.'));

    expect(await thrown).toEqual(new Error('Enough.'));
    await turn();
    expect(called()).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([undefined, 5000])('does not use up its time-out (%s)', async (timeoutMilliseconds) => {
    const { client, called } = givenWaiting({ timeoutMilliseconds });

    const answer = create(client, 'A');
    await vi.advanceTimersByTimeAsync(31_000);

    expect(await answer).toEqual({ card: { title: 'A' } });
    expect(called()).toHaveLength(2);
  });

  it('lets later calls wait, too', async () => {
    const { client, called } = givenWaiting();

    const first = create(client, 'A');
    await vi.advanceTimersByTimeAsync(1000);
    const second = create(client, 'B');
    await vi.advanceTimersByTimeAsync(1000);
    expect(called()).toEqual(['cards.create']);
    await vi.advanceTimersByTimeAsync(30_000);

    expect([await first, await second]).toEqual([{ card: { title: 'A' } }, { card: { title: 'B' } }]);
    expect(called()).toEqual(['cards.create', 'cards.create,cards.create']);
  });
});

it('a call that takes long does not keep others from the next window', async () => {
  useFakeTimers();
  const used: Answer = async (_, request) =>
    Response.json(inputsOf(request).map(created), {
      headers: { 'x-ratelimit-limit': '600', 'x-ratelimit-remaining': '0' },
    });
  const { client, called } = givenAnswers({}, used, silence, echo);

  await Promise.all([create(client, 'The last of its window'), vi.advanceTimersByTimeAsync(10)]);
  const controller = new AbortController();
  const long = client.cards.create.mutate({ title: 'Long' }, { signal: controller.signal }).catch(() => 'ended');
  const other = create(client, 'Other');
  await vi.advanceTimersByTimeAsync(59_000);
  expect(called()).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(2000);

  expect(await other).toEqual({ card: { title: 'Other' } });
  controller.abort();
  expect(await long).toBe('ended');
  expect(vi.getTimerCount()).toBe(0);
});

it('a call is sent with the trace that it was made in, even if it waits', async () => {
  let span = 'first';
  const { client, header } = givenAnswers({ maxInFlight: 1, traceparent: () => span }, echo, echo);

  const first = create(client, 'A');
  span = 'second';
  await Promise.all([first, create(client, 'B')]);

  expect(header('traceparent')).toEqual(['first', 'second']);
});

describe('a silent service', () => {
  it.each([
    ['a query', 60_000, (client: Client) => client.boards.list.query()],
    ['a mutation', 300_000, (client: Client) => create(client, 'A')],
  ])('ends %s after %d ms, and the calls that wait for their turn are sent', async (_, milliseconds, call) => {
    useFakeTimers();
    const { client, called } = givenAnswers({ maxInFlight: 1 }, silence, echo);

    const [first, second] = [errorOf(call(client)), call(client)];
    await vi.advanceTimersByTimeAsync(milliseconds - 1);
    expect(called()).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(10);

    expect((await first).message).toMatch(`No response within ${milliseconds} ms.`);
    await second;
    expect(called()).toHaveLength(2);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is not confused with a person who takes long to type a code', async () => {
    useFakeTimers();
    const asked = Promise.withResolvers<string>();
    const signIn = { email: 'a@example.test', password: 'a password', code: () => asked.promise };
    const needed = refusal(401, { reason: 'code_required' });
    const { client } = givenAnswers({ signIn }, needed, success({ token: 'a token' }), echo);

    const answer = create(client, 'A');
    await vi.advanceTimersByTimeAsync(3_600_000);
    asked.resolve('123456');
    await vi.advanceTimersByTimeAsync(10);

    expect(await answer).toEqual({ card: { title: 'A' } });
  });
});

const silence = () => new Promise<Response>(() => undefined);

const URL = 'http://service.test';

const inputsOf = (request: RequestInit | undefined): any[] => Object.values(JSON.parse(String(request!.body)));
const created = (input: any) => ({ result: { data: superjson.serialize({ card: { title: input.json?.title } }) } });

const refusalOf = (data: object) => ({
  error: superjson.serialize({ message: 'Refused.', code: -1, data: { code: 'REFUSED', httpStatus: 429, ...data } }),
});

/** Answers each call with a card of its title. */
const echo: Answer = async (_, request) => Response.json(inputsOf(request).map(created));

/** Refuses the calls at some places of a batch. */
const refusing =
  (reason: string, isRefused: (index: number) => boolean, more: object = {}): Answer =>
  async (_, request) =>
    Response.json(
      inputsOf(request).map((input, index) => (isRefused(index) ? refusalOf({ reason, ...more }) : created(input))),
      { status: 207 },
    );

/** Refuses a body of more than 1 MiB, like the service. */
function givenEcho() {
  const bodies: string[] = [];
  const fetch: Answer = async (address, request) => {
    const body = String(request!.body);
    bodies.push(body);
    if (Buffer.byteLength(body) <= LARGEST_BODY_BYTES) return echo(address, request);
    return Response.json(refusalOf({ httpStatus: 400, reason: 'body_too_large' }), { status: 400 });
  };
  return {
    bodies,
    sizes: () => bodies.map((body) => Object.keys(JSON.parse(body)).length),
    ...givenClient({ url: URL, fetch }),
  };
}

const realSetTimeout = setTimeout;

/** A service with a limit per window, as the real one counts. A window ends when the client has waited for it. */
function givenService(limit: number, options: Partial<ClientOptions> = {}) {
  const seen = { inFlight: 0, mostInFlight: 0, counted: 0, mostCounted: 0, windows: 1, refused: 0 };
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((work: () => void, milliseconds = 0) => {
    if (milliseconds >= 50_000) return realSetTimeout(work, milliseconds);
    if (milliseconds < 40_000) return realSetTimeout(work, 0);
    const nextWindow = () => {
      seen.windows++;
      seen.counted = 0;
      work();
    };
    return realSetTimeout(nextWindow, 0);
  }) as typeof setTimeout);

  const fetch: Answer = async (_, request) => {
    const inputs = inputsOf(request);
    seen.inFlight += inputs.length;
    seen.mostInFlight = Math.max(seen.mostInFlight, seen.inFlight);
    await turn();
    const allowed = Math.min(inputs.length, limit - seen.counted);
    seen.counted += allowed;
    seen.mostCounted = Math.max(seen.mostCounted, seen.counted);
    seen.refused += inputs.length - allowed;
    await turn();
    seen.inFlight -= inputs.length;
    const over = refusalOf({ reason: 'over_rate_limit', retryAfterSeconds: 45 });
    return Response.json(
      inputs.map((input, index) => (index < allowed ? created(input) : over)),
      {
        status: 207,
        headers: { 'x-ratelimit-limit': `${limit}`, 'x-ratelimit-remaining': `${limit - seen.counted}` },
      },
    );
  };
  return {
    ...givenClient({ url: URL, ...options, fetch }),
    seen,
  };
}
