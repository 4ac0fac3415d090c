import { getEventListeners } from 'node:events';
import superjson from 'superjson';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Client, ClientOptions } from '../../client/client.ts';
import { errorOf, type GivenAnswer, givenAnswers, networkFailure, page, refusal, success } from '../harness/client.ts';
import { fakeTimers } from '../harness/timers.ts';

beforeEach(() => {
  fakeTimers('performance');
  vi.spyOn(Math, 'random').mockReturnValue(0);
});

const SIGN_IN = { email: 'a@example.test', password: 'a password' };

const message = (id: string) => `id: ${id}\ndata: {"json":{"type":"card.created"}}\n\n`;
const ping = (id: string) => `event: ping\nid: ${id}\ndata: \n\n`;

/** A refused stream: unlike a batch, not a list. */
const refused =
  (...parts: Parameters<typeof refusal>): GivenAnswer =>
  async () => {
    const response = await refusal(...parts)();
    return Response.json((await response.json())[0], { status: response.status });
  };

/** A stream with this text, which then ends. */
const stream =
  (text: string): GivenAnswer =>
  async () =>
    new Response(text, { headers: { 'content-type': 'text/event-stream' } });

const REFUSAL = superjson.serialize({ message: 'Refused.', data: { httpStatus: 403, reason: 'role_missing' } });

/** A stream that stays open until its request is aborted. */
function openStream(text = '') {
  let body!: ReadableStreamDefaultController<Uint8Array>;
  let request: RequestInit | undefined;
  const send = (more: string) => body.enqueue(new TextEncoder().encode(more));
  const answer: GivenAnswer = async (_, init) => {
    request = init;
    const source = new ReadableStream<Uint8Array>({
      start: (controller) => {
        body = controller;
      },
    });
    init!.signal!.addEventListener('abort', () => body.error(init!.signal!.reason));
    if (text) send(text);
    return new Response(source, { headers: { 'content-type': 'text/event-stream' } });
  };
  return { answer, send, isAborted: () => request!.signal!.aborted };
}

/** Follows with these answers. `waits` are the pauses before retries. */
function givenFollow(options: Partial<ClientOptions>, ...answers: GivenAnswer[]) {
  const waits: number[] = [];
  const onRetry: ClientOptions['onRetry'] = ({ waitMilliseconds }) => void waits.push(waitMilliseconds);
  const given = givenAnswers({ onRetry, ...options }, ...answers);
  return { ...given, waits, ids: () => given.header('last-event-id') };
}

/** The next event, after all pauses. */
async function next(events: ReturnType<Client['events']['follow']>, milliseconds = 0) {
  const [{ value }] = await Promise.all([events.next(), vi.advanceTimersByTimeAsync(milliseconds)]);
  return value?.cursor;
}

describe('a stream that can not be opened', () => {
  it.each<[number, Partial<ClientOptions>]>([
    [4, {}],
    [2, { retries: 1 }],
    [1, { retries: 0 }],
  ])('is given up after %d attempts with %j', async (attempts, options) => {
    const { client, called } = givenFollow(options, ...Array(9).fill(networkFailure));

    const thrown = errorOf(client.events.follow().next());
    await vi.advanceTimersByTimeAsync(10_000);

    expect(await thrown).toMatchObject({ status: undefined, procedure: 'events.follow' });
    expect(called()).toHaveLength(attempts);
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([
    ['429', refused(429)],
    ['500', refused(500)],
    ['the page of a proxy', page(503)],
  ])('is tried again after %s', async (_, answer) => {
    const { client, waits } = givenFollow({}, answer, stream(message('1')));

    expect(await next(client.events.follow(), 250)).toBe('1');
    expect(waits).toEqual([250]);
  });

  it.each<[string, Partial<ClientOptions>, ...GivenAnswer[]]>([
    ['a 403', {}, refused(403)],
    ['a 403 of an open stream', {}, stream(`event: serialized-error\ndata: ${JSON.stringify(REFUSAL)}\n\n`)],
    ['a Retry-After of more than a minute', {}, refused(429, { retryAfterSeconds: 61 })],
    ['an error of the function for headers', { headers: () => Promise.reject(new Error('No session.')) }],
  ])('throws %s at once', async (_, options, ...answers) => {
    const { client, waits } = givenFollow(options, ...answers);

    await errorOf(client.events.follow().next());

    expect(waits).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('a stream that was open', () => {
  it('is looked for at least every 16 seconds, and at once again after it was found', async () => {
    const lost = Array<GivenAnswer>(8).fill(networkFailure);
    const answers = [stream(message('1')), ...lost, stream(message('2')), networkFailure, stream(message('3'))];
    const { client, waits } = givenFollow({}, ...answers);
    const events = client.events.follow();

    expect([await next(events), await next(events, 80_000), await next(events, 1000)]).toEqual(['1', '2', '3']);
    expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 16_000, 16_000, 500]);
  });

  it('is opened again behind the last id, also that of a ping', async () => {
    const withoutId = 'data: {"json":{"type":"card.created"}}\n\n';
    const { client, ids } = givenFollow(
      {},
      ...[stream(message('1') + ping('7')), stream(withoutId), stream(message('9'))],
    );
    const events = client.events.follow();

    expect([await next(events), await next(events, 250), await next(events, 250)]).toEqual(['1', '7', '9']);
    expect(ids()).toEqual([null, '7', '7']);
  });

  it('throws its next failure with `retries: 0`', async () => {
    const { client } = givenFollow({ retries: 0 }, stream(message('1')), networkFailure);
    const events = client.events.follow();

    expect(await next(events)).toBe('1');
    const thrown = errorOf(events.next());
    await vi.advanceTimersByTimeAsync(250);
    expect((await thrown).status).toBeUndefined();
  });

  it('is opened again after 45 seconds of silence; pings are enough', async () => {
    const first = openStream(message('1'));
    const { client, called } = givenFollow({}, first.answer, stream(message('2')));
    const events = client.events.follow();
    expect(await next(events)).toBe('1');
    const second = next(events);

    await vi.advanceTimersByTimeAsync(40_000);
    first.send(ping('1'));
    await vi.advanceTimersByTimeAsync(44_999);
    expect(called()).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1000);

    expect(await second).toBe('2');
    expect(first.isAborted()).toBe(true);
  });

  it('has one response for each connection, also if it breaks later', async () => {
    const onResponse = vi.fn();
    const broken = openStream(message('1'));
    const { client } = givenFollow({ onResponse, retries: 0 }, broken.answer);
    const events = client.events.follow();
    await next(events);

    const thrown = errorOf(events.next());
    await vi.advanceTimersByTimeAsync(45_000);
    await thrown;

    expect(onResponse).toHaveBeenCalledOnce();
  });
});

describe('a stream of a client that signs in', () => {
  const REFUSED = refused(401, { reason: 'credential_invalid' });
  const AUTHENTICATE = 'auth.authenticate';
  const FOLLOW = 'events.follow';

  it('signs in before it is opened, and once after each 401', async () => {
    const { client, called, header } = givenFollow(
      { signIn: SIGN_IN },
      ...[success({ token: 'one' }), REFUSED, success({ token: 'two' }), stream(message('1'))],
      ...[REFUSED, success({ token: 'three' }), stream(message('2'))],
    );
    const events = client.events.follow();

    expect([await next(events, 10), await next(events, 1000)]).toEqual(['1', '2']);
    expect(called()).toEqual([AUTHENTICATE, FOLLOW, AUTHENTICATE, FOLLOW, FOLLOW, AUTHENTICATE, FOLLOW]);
    expect(header('authorization').filter(Boolean)).toEqual(
      ['one', 'two', 'two', 'three'].map((token) => `Bearer ${token}`),
    );
  });

  it('throws the second 401 in a row', async () => {
    const { client, called } = givenFollow(
      { signIn: SIGN_IN, token: 'old' },
      ...[REFUSED, success({ token: 'new' }), REFUSED],
    );

    const thrown = errorOf(client.events.follow().next());
    await vi.advanceTimersByTimeAsync(10);

    expect((await thrown).status).toBe(401);
    expect(called()).toEqual([FOLLOW, AUTHENTICATE, FOLLOW]);
  });

  it('does not sign in if a call has done so meanwhile', async () => {
    const held = Promise.withResolvers<Response>();
    const { client, called } = givenFollow(
      { signIn: SIGN_IN, token: 'old' },
      ...[() => held.promise, REFUSED, success({ token: 'new' }), success({ boards: [] }), stream(message('1'))],
    );

    const event = next(client.events.follow(), 10);
    const [listed] = await Promise.all([client.boards.list.query(), vi.advanceTimersByTimeAsync(10)]);
    held.resolve(await REFUSED());

    expect(listed).toEqual({ boards: [] });
    expect(await event).toBe('1');
    expect(called()).toEqual([FOLLOW, 'boards.list', AUTHENTICATE, 'boards.list', FOLLOW]);
  });
});

describe('a stream that is ended', () => {
  it('by the end of its loop closes its connection, and leaves no timer and no listener', async () => {
    const open = openStream(message('1'));
    const { signal } = new AbortController();
    const { client } = givenFollow({}, networkFailure, open.answer);
    const events = client.events.follow({}, { signal });

    await next(events, 250);
    await events.return();

    expect(open.isAborted()).toBe(true);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each<[string, GivenAnswer]>([
    ['in the pause before a retry', networkFailure],
    ['while it is open', openStream().answer],
    ['before it is refused', () => new Promise((resolve) => setTimeout(() => resolve(refused(403)()), 150))],
  ])('by its signal %s throws nothing', async (_, answer) => {
    const { client, called } = givenFollow({}, answer);
    const controller = new AbortController();

    const ended = client.events.follow({}, { signal: controller.signal }).next();
    await vi.advanceTimersByTimeAsync(100);
    controller.abort();
    await vi.advanceTimersByTimeAsync(60);

    expect(await ended).toEqual({ value: undefined, done: true });
    expect(called()).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });
});
