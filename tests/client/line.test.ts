import { setImmediate as turn } from 'node:timers/promises';
import superjson from 'superjson';
import { describe, expect, it, vi } from 'vitest';
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
import { fakeTimers, realSetTimeout, replaceTimers } from '../harness/timers.ts';

const create = (client: Client, title: string) => client.cards.create.mutate({ title });
const createAll = (client: Client, count: number) => Promise.all(titlesOf(count).map((title) => create(client, title)));
const titlesOf = (count: number) => Array.from({ length: count }, (_, index) => `Card ${index}`);

/** Lets faked time pass until a call is done: between two timers, it may need any number of turns of the event loop. */
async function timePassing<Result>(call: Promise<Result>, stepMilliseconds = 1): Promise<Result> {
  let isDone = false;
  const end = () => {
    isDone = true;
  };
  call.then(end, end);
  while (!isDone) await vi.advanceTimersByTimeAsync(stepMilliseconds);
  return call;
}

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
    const { client, called, pauses } = givenFastRetries({}, ...Array(20).fill(large));

    await createAll(client, 50);

    expect(called().map((names) => names.split(',').length)).toEqual([50, 42, 34, 26, 18, 10, 2]);
    expect(pauses()).toEqual([]);
  });

  it('of one call whose answer is too large is given up after three retries', async () => {
    const large = refusing('batch_answers_too_large', () => true);
    const { client, called } = givenFastRetries({}, ...Array(9).fill(large));

    expect(await errorOf(create(client, 'A'))).toMatchObject({ reason: 'batch_answers_too_large' });
    expect(called()).toHaveLength(4);
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
  const givenWaiting = (options: Partial<ClientOptions> = {}, ...more: Answer[]) => {
    fakeTimers('performance');
    const over = refusing('over_rate_limit', () => true, { retryAfterSeconds: 30 });
    return givenAnswers(options, over, echo, ...more);
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

  it('goes on with what is left of its time-out', async () => {
    fakeTimers('performance');
    const over = refusing('over_rate_limit', () => true, { retryAfterSeconds: 30 });
    const late: Answer = (...parts) => new Promise((resolve) => setTimeout(() => resolve(over(...parts)), 3000));
    const { client, called } = givenAnswers({ timeoutMilliseconds: 5000 }, late, silence);

    const thrown = errorOf(create(client, 'A'));
    await vi.advanceTimersByTimeAsync(34_000);
    expect(called()).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(2000);

    expect((await thrown).message).toMatch('No response within 5000 ms.');
    expect(vi.getTimerCount()).toBe(0);
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

  it('is sent before those that were made later', async () => {
    const { client, sent } = givenWaiting({ maxInFlight: 1 }, echo);

    const both = Promise.all([create(client, 'A'), create(client, 'B')]);
    await vi.advanceTimersByTimeAsync(31_000);
    await both;

    expect(sent()).toEqual([{ title: 'A' }, { title: 'A' }, { title: 'B' }]);
  });
});

describe('a rate limit that is used up', () => {
  const OVER = refusing('over_rate_limit', () => true, { retryAfterSeconds: 30 });
  const sizes = (called: string[]) => called.map((names) => names.split(',').length);

  it('is asked for its next window by one call, and then all are sent together', async () => {
    fakeTimers('performance');
    const { client, called } = givenAnswers({}, answered(0), withQuota(OVER, 0), echo);
    await Promise.all([create(client, 'The last of its window'), vi.advanceTimersByTimeAsync(5)]);

    const others = createAll(client, 3);
    await vi.advanceTimersByTimeAsync(29_000);
    expect(sizes(called())).toEqual([1, 1]);
    await vi.advanceTimersByTimeAsync(2000);
    await others;

    expect(sizes(called())).toEqual([1, 1, 3]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is asked again after each answer that leaves nothing', async () => {
    const { client } = givenAnswers({}, ...Array(3).fill(answered(0)));

    for (const title of titlesOf(3)) expect(await create(client, title)).toEqual({ card: { title } });
  });

  it('is asked again after an answer that does not tell', async () => {
    fakeTimers('performance');
    const { client, called } = givenAnswers({}, answered(0), echo, echo);

    const created = (async () => {
      for (const title of titlesOf(3)) await create(client, title);
    })();
    await vi.advanceTimersByTimeAsync(100);

    expect(called()).toHaveLength(3);
    await created;
  });

  it('does not keep others from the next window if the call that asks takes long', async () => {
    fakeTimers('performance');
    const { client, called } = givenAnswers({}, answered(0), silence, echo);
    await Promise.all([create(client, 'The last of its window'), vi.advanceTimersByTimeAsync(10)]);
    const controller = new AbortController();
    const long = client.cards.create.mutate({ title: 'Long' }, { signal: controller.signal }).catch(() => 'ended');

    const others: Promise<unknown>[] = [];
    for (const title of titlesOf(3)) {
      others.push(create(client, title));
      await vi.advanceTimersByTimeAsync(10_000);
    }
    await vi.advanceTimersByTimeAsync(29_000);
    expect(called()).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(2000);

    await Promise.all(others);
    controller.abort();
    expect(await long).toBe('ended');
    expect(sizes(called())).toEqual([1, 1, 3]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('leaves no timer behind if the answer says when the window ends', async () => {
    fakeTimers('performance');
    const held = Promise.withResolvers<void>();
    const { client } = givenAnswers({}, answered(0), (...parts) => held.promise.then(() => OVER(...parts)), echo);
    await Promise.all([create(client, 'The last of its window'), vi.advanceTimersByTimeAsync(5)]);

    const others = createAll(client, 2);
    await vi.advanceTimersByTimeAsync(5000);
    held.resolve();
    await vi.advanceTimersByTimeAsync(31_000);
    await others;

    expect(vi.getTimerCount()).toBe(0);
  });

  it('counts calls in flight that the service may not have counted yet', async () => {
    const held = Promise.withResolvers<void>();
    const late: Answer = (...parts) => held.promise.then(() => echo(...parts));
    const { client, called } = givenAnswers({}, late, answered(55), ...Array(9).fill(answered(0)));
    const inProject = (projectId: number, count: number) => createAll(client.as({ projectId }), count);

    const first = inProject(1, 50);
    await inProject(2, 5);
    await inProject(2, 7);
    held.resolve();
    await first;

    // The others ask, one after the other.
    expect(sizes(called())).toEqual([50, 5, 5, 1, 1]);
  });
});

it('a call is sent with the trace that it was made in, even if it waits', async () => {
  let span = 'first';
  const { client, header } = givenAnswers({ maxInFlight: 1, traceparent: () => span }, echo, echo);

  const first = create(client, 'A');
  span = 'second';
  await Promise.all([first, create(client, 'B')]);

  expect(header('traceparent')).toEqual(['first', 'second']);
});

describe('an aborted call', () => {
  const BUSY = refusing('service_busy', () => true);

  /** Calls by title, each with its own signal. */
  function givenCalls(options: Partial<ClientOptions>, ...answers: Answer[]) {
    fakeTimers('performance');
    const onRetry = vi.fn();
    const titles: string[][] = [];
    const requests: RequestInit[] = [];
    const noting = answers.map(
      (answer): Answer =>
        async (address, request) => {
          titles.push(inputsOf(request).map(({ json }) => json.title));
          requests.push(request!);
          return answer(address, request);
        },
    );
    const { client } = givenAnswers({ onRetry, ...options }, ...noting);
    const start = (title: string) => {
      const controller = new AbortController();
      const settled = client.cards.create.mutate({ title }, { signal: controller.signal }).then(
        ({ card }) => card.title,
        ({ name }) => name,
      );
      return { settled, abort: () => controller.abort() };
    };
    return { start, titles, requests, onRetry, soon: () => vi.advanceTimersByTimeAsync(5) };
  }

  it('gives its place to others at once if it waits for its retry', async () => {
    const { start, titles, soon } = givenCalls({ maxInFlight: 1 }, BUSY, echo);
    const [first, second] = [start('first'), start('second')];
    await soon();
    expect(titles).toEqual([['first']]);

    first.abort();
    await soon();

    expect(await second.settled).toBe('second');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is not sent again with the others of its batch, and gives its place to others', async () => {
    const { start, titles, soon } = givenCalls({ maxInFlight: 2 }, BUSY, echo, echo);
    const [first, second] = [start('first'), start('second')];
    await soon();
    first.abort();
    await vi.advanceTimersByTimeAsync(1000);
    expect(await second.settled).toBe('second');

    const later = [start('third'), start('fourth')];
    await soon();

    expect(await Promise.all(later.map(({ settled }) => settled))).toEqual(['third', 'fourth']);
    expect(titles).toEqual([['first', 'second'], ['second'], ['third', 'fourth']]);
  });

  it('is not sent if it is still queued', async () => {
    const held = Promise.withResolvers<void>();
    const { start, titles, soon } = givenCalls(
      { maxInFlight: 1 },
      (...parts) => held.promise.then(() => echo(...parts)),
      echo,
    );
    const [, second, third] = [start('first'), start('second'), start('third')];
    await soon();
    second.abort();
    held.resolve();
    await soon();

    expect(await third.settled).toBe('third');
    expect(titles).toEqual([['first'], ['third']]);
  });

  it('does not end the others of its batch; the request ends with the last one', async () => {
    const { start, requests, soon } = givenCalls({}, silence);
    const [first, second] = [start('first'), start('second')];
    await soon();

    first.abort();
    expect(await first.settled).toBe('AbortError');
    expect(requests[0]!.signal!.aborted).toBe(false);
    second.abort();
    expect(await second.settled).toBe('AbortError');
    expect(requests[0]!.signal!.aborted).toBe(true);
  });

  it.each(['service_busy', 'over_rate_limit'])('in flight does not wait after %s', async (reason) => {
    const held = Promise.withResolvers<void>();
    const over = refusing(reason, () => true, { retryAfterSeconds: 30 });
    const { start, onRetry, soon } = givenCalls({}, (...parts) => held.promise.then(() => over(...parts)));
    const [first, second] = [start('first'), start('second')];
    await soon();
    first.abort();
    held.resolve();
    await soon();
    expect(onRetry).toHaveBeenCalledOnce();
    second.abort();
    await soon();

    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('a pause before a retry', () => {
  it('is as long as the longest Retry-After of its batch', async () => {
    const busy: Answer = async () =>
      Response.json(
        [5, 9, 7].map((retryAfterSeconds) => refusalOf({ reason: 'service_busy', retryAfterSeconds })),
        { status: 207 },
      );
    const { client, pauses } = givenFastRetries({}, busy, echo);

    await createAll(client, 3);

    expect(pauses()).toEqual([9250]);
  });

  it('doubles up to a minute, and is up to a half shorter, so that clients spread', async () => {
    fakeTimers('performance');
    const onRetry = vi.fn();
    const { client } = givenAnswers({ retries: 9, onRetry }, ...Array(9).fill(networkFailure), echo);
    const random = vi.spyOn(Math, 'random').mockReturnValue(0);
    const answer = create(client, 'A');
    await vi.advanceTimersByTimeAsync(1000);
    random.mockReturnValue(1);
    await Promise.all([answer, vi.advanceTimersByTimeAsync(200_000)]);

    expect(onRetry.mock.calls.map(([{ waitMilliseconds }]) => waitMilliseconds)).toEqual([
      ...[250, 500, 1000, 1000, 2000, 4000, 8000, 16_000, 30_000],
    ]);
  });

  const BUSY = refusing('service_busy', () => true, { retryAfterSeconds: 50 });

  it('keeps its place, which relieves the service', async () => {
    fakeTimers('performance');
    const { client, called } = givenAnswers({ maxInFlight: 1 }, BUSY, echo, echo);

    const both = Promise.all([create(client, 'A'), create(client, 'B')]);
    await vi.advanceTimersByTimeAsync(49_000);
    expect(called()).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(2000);

    expect((await both).map(({ card }) => card.title)).toEqual(['A', 'B']);
  });

  it('does not count against the default time-out; the next attempt does', async () => {
    fakeTimers('performance');
    const { client } = givenAnswers({}, BUSY, silence);

    const thrown = errorOf(client.boards.list.query());
    await vi.advanceTimersByTimeAsync(51_000 + 59_000);
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(2000);

    expect((await thrown).message).toBe('No response within 60000 ms.');
    expect(vi.getTimerCount()).toBe(0);
  });
});

it('a batch is as large as the rate limit still allows', async () => {
  const { client, called } = givenAnswers({}, answered(20), answered(0));

  await createAll(client, 40);
  await createAll(client, 20);

  expect(called().map((names) => names.split(',').length)).toEqual([40, 20]);
});

describe('a silent service', () => {
  it.each([
    ['a query', 60_000, (client: Client) => client.boards.list.query()],
    ['a mutation', 300_000, (client: Client) => create(client, 'A')],
  ])('ends %s after %d ms, and the calls that wait for their turn are sent', async (_, milliseconds, call) => {
    fakeTimers('performance');
    const begun = performance.now();
    const ended: number[] = [];
    const { client, called } = givenAnswers({ maxInFlight: 1 }, silence, echo);

    const first = errorOf(call(client)).finally(() => ended.push(performance.now()));
    const second: Promise<unknown> = call(client);
    const error = await timePassing(first, milliseconds / 100);
    await timePassing(second);

    expect(error.message).toMatch(`No response within ${milliseconds} ms.`);
    expect(ended[0]! - begun).toBe(milliseconds);
    expect(called()).toHaveLength(2);
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each<[string, Partial<ClientOptions>, ...Answer[]]>([
    ['at first', {}],
    ['when the token has expired', { token: 'old' }, refusal(401)],
  ])('is not confused with a person who takes long to type a code %s', async (_, options, ...expired) => {
    fakeTimers('performance');
    const asked = Promise.withResolvers<string>();
    const signIn = { email: 'a@example.test', password: 'a password', code: () => asked.promise };
    const needed = refusal(401, { reason: 'code_required' });
    const { client } = givenAnswers({ signIn, ...options }, ...expired, needed, success({ token: 'a token' }), echo);

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

/** The same answer with what is left of the rate limit. */
const withQuota =
  (answer: Answer, remaining: number): Answer =>
  async (...parts) => {
    const response = await answer(...parts);
    response.headers.set('x-ratelimit-limit', '60');
    response.headers.set('x-ratelimit-remaining', `${remaining}`);
    return response;
  };
const answered = (remaining: number) => withQuota(echo, remaining);

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

/** A service with a limit per window, as the real one counts. A window ends when the client has waited for it. */
function givenService(limit: number, options: Partial<ClientOptions> = {}) {
  const seen = { inFlight: 0, mostInFlight: 0, counted: 0, mostCounted: 0, windows: 1, refused: 0 };
  replaceTimers((work, milliseconds) => {
    if (milliseconds >= 50_000) return realSetTimeout(work, milliseconds);
    if (milliseconds < 40_000) return realSetTimeout(work, 0);
    const nextWindow = () => {
      seen.windows++;
      seen.counted = 0;
      work();
    };
    return realSetTimeout(nextWindow, 0);
  });

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
