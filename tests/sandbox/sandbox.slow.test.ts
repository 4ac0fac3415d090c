import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createClient } from '../../client/client.ts';
import { uncheckedFetch } from '../harness/checkAnswers.ts';
import {
  authorized,
  BOARDS,
  CARDS,
  callerOf,
  givenReceiver,
  givenSandbox,
  keyOf,
  titlesOf,
} from '../harness/sandbox.ts';

type Given = Awaited<ReturnType<typeof givenSandbox>>;

let given: Given;
let other: Given;
const receivers: { close: () => void }[] = [];
beforeAll(async () => {
  given = await givenSandbox();
  other = await givenSandbox({ state: 'empty' });
});
afterEach(() => {
  for (const receiver of receivers.splice(0)) receiver.close();
});
afterAll(() => Promise.all([given?.sandbox.stop(), other?.sandbox.stop()]));

const reset = async (state: string, more: object = {}) => {
  const { status, body } = await given.control('/reset', { state, ...more });
  expect([status, body.message]).toEqual([200, undefined]);
  return body;
};

describe('a state', () => {
  it('empty has people and projects, and a key for each role', async () => {
    const { people } = await reset('empty');

    expect(await titlesOf(given)).toEqual([]);
    for (const { role, key } of Object.values<{ role: string; key: string }>(people)) {
      expect(key).toBe(keyOf(role));
      const inProject = { ...authorized(role), 'x-project-id': '1' };
      const { status } = await given.send('POST', `/api/services${BOARDS}/list`, {}, inProject);
      expect([role, status]).toEqual([role, role === 'outsider' ? 403 : 200]);
    }
    const created = (role: string) => given.call(`${BOARDS}/create`, { title: 'A board' }, role);
    expect((await created('viewer')).status).toBe(403);
    expect((await created('owner')).status).toBe(201);
    const { email, password } = people.viewer;
    expect((await given.send('POST', '/api/v1/authenticate', { email, password })).status).toBe(200);
  });

  it('demo has the demo data', async () => {
    await reset('demo');

    expect(await titlesOf(given)).toContain('Write the launch post');
  });

  it('large_board has 5,000 cards', async () => {
    await reset('large_board');

    const { body } = await given.call(`${BOARDS}/list`);

    expect(body.data.boards).toMatchObject([{ title: 'Large board', groups_count: 10, cards_count: 5000 }]);
  });

  it('expired_trial has a trial that is over, which demo has not', async () => {
    const statusOf = async (state: string) => {
      await reset(state);
      const listed = await given.call('/platforms/v1/subscriptions/list', { platform_id: 1 }, 'superadmin');
      return listed.body.data.subscriptions.find(({ platform_id }: { platform_id: number }) => platform_id === 1)
        .status;
    };

    expect([await statusOf('demo'), await statusOf('expired_trial')]).toEqual(['trial', 'expired']);
  });

  it('rollout waits after its first stage, and goes on', async () => {
    await reset('rollout');
    const rollout = async () =>
      (await given.call('/operations/v1/admin/rollouts/get', { id: 1 }, 'superadmin')).body.data.rollout;

    expect(await rollout()).toMatchObject({ state: 'running', is_soaking: true });
    await given.call('/operations/v1/admin/rollouts/advance', { id: 1 }, 'superadmin');

    await expect.poll(async () => (await rollout()).is_soaking).toBe(true);
  });
});

describe('a reset', () => {
  it('gives rows the same ids, and forgets rows, faults, calls and limits', async () => {
    const ids: number[] = [];
    for (const _ of ['first', 'second']) {
      await reset('demo');
      ids.push((await given.call(`${CARDS}/create`, { title: 'Mine' })).body.data.card.id);
      await given.control('/faults', { fault: 'unavailable', times: 1000 });
      await given.control('/clock', { advance: { days: 400 } });
    }
    const { faults, calls, counts } = await reset('demo');

    expect(ids[0]).toBe(ids[1]);
    expect({ faults, calls, counts }).toEqual({ faults: [], calls: [], counts: { calls: 0, webhooks: 0 } });
    expect(await titlesOf(given)).not.toContain('Mine');
    const wrong = { email: 'member@demo.test', password: 'wrong' };
    const tried = async () => (await given.send('POST', '/api/v1/authenticate', wrong)).status;
    while ((await tried()) !== 429);
    await reset('demo');
    expect(await tried()).toBe(401);
  });

  it('keeps the state if none is given, and ends streams', async () => {
    await reset('empty');
    const streamed = await fetch(`${given.sandbox.url}/api/services/platforms/v1/events/stream`, {
      headers: authorized('member'),
    });

    expect((await given.control('/reset')).body.state).toBe('empty');

    await expect(streamed.text()).rejects.toThrow();
  });

  it('waits for another one that was sent at the same time', async () => {
    const answers = await Promise.all(Array.from({ length: 3 }, () => given.control('/reset', { state: 'demo' })));

    expect(answers.map(({ status, body }) => [status, body.message])).toEqual(Array(3).fill([200, undefined]));
    expect(await titlesOf(given)).toContain('Write the launch post');
  });

  it('keeps a fault that was added while the reset was under way, and its event', async () => {
    const { sandbox } = given;
    await Promise.all([sandbox.reset({ state: 'empty' }), sandbox.addFault({ fault: 'newer_version' })]);

    expect((await given.describe()).faults).toMatchObject([{ fault: 'newer_version' }]);
    const listed = await callerOf(given.sandbox.url, uncheckedFetch()).call('/platforms/v1/events/list');
    expect(listed.body.data.events.map(typeOf)).toContain('card.from_a_later_version');
  });

  it('leaves another sandbox alone', async () => {
    await other.control('/faults', { fault: 'unavailable', path: '/nowhere' });
    await other.call(`${BOARDS}/create`, { title: 'Stays' });

    await reset('demo');

    expect((await other.call(`${BOARDS}/list`)).body.data.boards).toMatchObject([{ title: 'Stays' }]);
    expect(await other.describe()).toMatchObject({ state: 'empty', faults: [{ path: '/nowhere' }] });
  });
});

describe('the clock', () => {
  it('is set at a reset, moved, and back at the real time', async () => {
    const { clock } = await reset('empty', { clock: '2026-01-31T09:30:00Z' });
    expect(clock.now).toBe('2026-01-31T09:30:00.000Z');
    const { body } = await given.call(`${CARDS}/create`, { title: 'A card', due_date: '2026-02-01T12:00:00Z' });
    expect(body.data.card.created_at).toBe('2026-01-31T09:30:00.000Z');

    const moved = await given.control('/clock', { advance: { days: 2 } });

    expect(moved.body.clock.now).toBe('2026-02-02T09:30:00.000Z');
    const { body: listed } = await given.call(`${CARDS}/list`, { is_overdue: true });
    expect(listed.data.cards).toMatchObject([{ title: 'A card' }]);
    const inAZone = await given.control('/clock', { set: '2026-02-02T00:30:00.5+02:00' });
    expect(inAZone.body.clock.now).toBe('2026-02-01T22:30:00.500Z');
    const real = await given.control('/clock', { reset: true });
    expect(Date.parse(real.body.clock.now)).toBeGreaterThan(Date.parse('2026-02-03'));
  });

  it.each(['1971-06-01T00:00:00Z', '2199-01-01T00:00:00Z'])(
    'at %s lets trials be bought, and cards be created',
    async (clock) => {
      await reset('demo', { clock });

      const choice = { product: 'websites', plan: 'pro', period: 'month' };
      const bought = await given.call('/platforms/v1/subscriptions/upgrade-trial', choice, 'owner');

      expect([bought.status, bought.body.message]).toEqual([200, expect.anything()]);
      expect((await given.call(`${CARDS}/create`, { title: 'A card' })).status).toBe(201);
    },
  );
});

describe('a fault', () => {
  beforeEach(() => reset('empty'));
  const fail = (fault: string, more: object = {}) => given.control('/faults', { fault, ...more });
  /** Wrong answers are not checked against the document. */
  const callWrong = (path: string, body?: object) => callerOf(given.sandbox.url, uncheckedFetch()).call(path, body);
  const create = (title: string) => callWrong(`${CARDS}/create`, { title });
  const PATH = `/api/services${CARDS}/create`;

  it('too_many_requests refuses a call as the rate limit does, on each surface', async () => {
    await fail('too_many_requests', { times: 3, seconds: 2 });

    const { status, headers, body } = await given.call(`${CARDS}/create`, { title: 'Refused' });
    const client = createClient({ url: given.sandbox.url, token: keyOf('member'), retries: 0 });
    const overRpc = await client.boards.list.query().catch((error) => error);
    const overMcp = await given.send('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' });

    expect([status, headers.get('retry-after'), headers.get('x-error-reason')]).toEqual([429, '2', 'over_rate_limit']);
    expect(body).toEqual({ error: true, message: 'Too many requests. Try again later.' });
    expect(overRpc).toMatchObject({ status: 429, reason: 'over_rate_limit', data: { retryAfterSeconds: 2 } });
    expect(overMcp).toMatchObject({ status: 429, body: { error: { data: { reason: 'over_rate_limit' } } } });
    expect(await titlesOf(given)).toEqual([]);
  });

  it('unavailable answers as a gateway does, and executes nothing', async () => {
    await fail('unavailable');

    expect(await create('Not there')).toMatchObject({ status: 503, body: 'Service Unavailable\n' });
    expect(await titlesOf(given)).toEqual([]);
  });

  it('lost_answer executes the call; a repeat with its key returns what it did', async () => {
    await fail('lost_answer', { path: PATH });
    const headers = { ...authorized('member'), 'idempotency-key': 'once' };
    const send = () => given.send('POST', PATH, { title: 'Once' }, headers);

    await expect(send()).rejects.toThrow();

    expect(await titlesOf(given)).toEqual(['Once']);
    expect((await send()).status).toBe(201);
    expect(await titlesOf(given)).toEqual(['Once']);
    expect((await given.describe()).calls[0]).toMatchObject({ path: PATH, fault: 'lost_answer' });
  });

  it('cut_answer ends the answer in the middle', async () => {
    await fail('cut_answer');

    await expect(create('Cut')).rejects.toThrow('terminated');
    expect(await titlesOf(given)).toEqual(['Cut']);
  });

  it('late_answer comes after the time', async () => {
    await fail('late_answer', { seconds: 0.3 });
    const begun = performance.now();

    expect((await create('Late')).status).toBe(201);
    expect(performance.now() - begun).toBeGreaterThan(290);
  });

  it('hits the calls of its path, method and turn only', async () => {
    await fail('unavailable', { path: PATH, method: 'POST', skip: 1, times: 1 });

    const statuses = [await create('One'), await create('Two'), await create('Three')].map(({ status }) => status);

    expect(statuses).toEqual([201, 503, 201]);
    await fail('unavailable', { path: '/trpc/boards.list' });
    const batch = await uncheckedFetch()(`${given.sandbox.url}/trpc/tags.list,boards.list?batch=1&input=%7B%7D`);
    expect(batch.status).toBe(503);
    await fail('unavailable', { path: '/api/*', times: 1000 });
    expect([(await create('Four')).status, (await given.send('GET', '/health/live')).status]).toEqual([503, 200]);
    await given.clearFaults();
    expect((await create('Five')).status).toBe(201);
  });

  it('newer_version adds unknown fields and an unknown event, and raises the version', async () => {
    const receiver = await givenReceiver(given);
    receivers.push(receiver);
    const client = createClient({ url: given.sandbox.url, token: keyOf('member'), fetch: uncheckedFetch() });
    await fail('newer_version');

    const { headers, body } = await create('A card');

    expect(headers.get('x-deckhand-version')).toMatch(/^\d+\.999\.0$/);
    expect(body.data).toMatchObject({ from_a_later_version: true, card: { from_a_later_version: true } });
    expect((await client.cards.list.query({})).cards).toMatchObject([{ title: 'A card', from_a_later_version: true }]);
    await expect
      .poll(async () => (await callWrong('/platforms/v1/events/list')).body.data.events.map(typeOf))
      .toContain('card.from_a_later_version');
    await expect.poll(() => receiver.received.map(typeOf)).toContain('card.from_a_later_version');
    await given.clearFaults();
    expect((await create('B card')).body.data.from_a_later_version).toBeUndefined();
  });

  it('webhooks go on after the clock was set back', async () => {
    const receiver = await givenReceiver(given);
    receivers.push(receiver);
    await given.control('/clock', { advance: { days: 1 } });
    await create('A day ahead');
    await expect.poll(() => receiver.received).toHaveLength(1);

    await given.control('/clock', { reset: true });
    await create('Now');

    await expect.poll(() => receiver.received).toHaveLength(2);
  });

  it('late_webhook brings nothing after a reset', async () => {
    const receiver = await givenReceiver(given);
    receivers.push(receiver);
    await fail('late_webhook', { seconds: 10 });
    await create('Late');
    await expect.poll(async () => (await given.describe()).faults).toMatchObject([{ hits: 1 }]);

    await reset('empty');

    const later = await givenReceiver(given);
    receivers.push(later);
    await fail('late_webhook', { seconds: 10 });
    await create('Later, and as late');
    await expect.poll(() => later.received).toHaveLength(1);
    expect(receiver.received).toEqual([]);
  });

  it('late_webhook, doubled_webhook and unordered_webhook change what a receiver gets', async () => {
    const receiver = await givenReceiver(given);
    receivers.push(receiver);
    const types = () => receiver.received.map(typeOf);
    await fail('doubled_webhook', { type: 'tag.created' });
    const tag = (name: string) => given.call('/operations/v1/operations/tags/create', { name });

    await tag('Twice');

    await expect.poll(types).toEqual(['tag.created', 'tag.created']);
    expect(receiver.received[0]!.id).toBe(receiver.received[1]!.id);

    await fail('unordered_webhook', { type: 'tag.created' });
    await tag('Behind');
    await create('Ahead');
    await expect.poll(() => types().slice(2)).toEqual(['card.created', 'tag.created']);

    await fail('late_webhook', { seconds: 0.3 });
    const begun = performance.now();
    await tag('Late');
    await expect.poll(() => types().slice(4)).toEqual(['tag.created']);
    expect(performance.now() - begun).toBeGreaterThan(290);
    expect((await given.describe()).counts.webhooks).toBe(6);
  });
});

describe('a wrong call of the sandbox', () => {
  const CLOCK_TAKES =
    'clock takes one of {"set": "2026-01-31T09:30:00Z"}, {"advance": {"days": 1}} and {"reset": true}.';
  const YEARS = 'The clock takes the years 1970 to 2199.';
  const withEach = (path: string, values: unknown[], make: (value: unknown) => [unknown, string]) =>
    values.map((value): [string, unknown, string] => [path, ...make(value)]);
  it.each<[string, unknown, string | RegExp]>([
    ['/reset', { state: 'full' }, 'state must be one of empty, demo, large_board, expired_trial, rollout.'],
    ['/reset', { stat: 'demo' }, 'reset takes state, clock, not stat.'],
    ['/reset', '{', 'The body must be JSON, as in {}.'],
    ['/reset', [], 'reset takes a JSON object with state, clock.'],
    [
      '/reset',
      { clock: 'noon' },
      'clock must be a day that exists, or a timestamp with a zone, as in 2026-01-31T09:30:00Z.',
    ],
    [
      '/reset',
      { clock: 5 },
      'clock must be a day that exists, or a timestamp with a zone, as in 2026-01-31T09:30:00Z.',
    ],
    ['/reset', { clock: '2200-01-01T00:00:00Z' }, 'The clock takes the years 1970 to 2199.'],
    ['/clock', {}, CLOCK_TAKES],
    ['/clock', { set: '2026-01-31T09:30:00Z', reset: true }, CLOCK_TAKES],
    ['/clock', { reset: false }, CLOCK_TAKES],
    ['/clock', { advance: 5 }, CLOCK_TAKES],
    ...withEach(
      '/clock',
      [null, 'soon', '2026', '2026-02-30T09:30:00Z', '2026-13-01', '2026-01-31T09:30:00', '2026-01-31T25:00:00Z'],
      (set) => [{ set }, 'set must be a day that exists, or a timestamp with a zone, as in 2026-01-31T09:30:00Z.'],
    ),
    ...withEach('/clock', ['1969-12-31', '2200-01-01', '1970-01-01T00:00:00+01:00'], (set) => [{ set }, YEARS]),
    ...withEach('/clock', [1e6, -1e6, 1e300], (days) => [{ advance: { days } }, YEARS]),
    ['/clock', { advance: { day: 1 } }, 'advance knows days,hours,minutes,seconds,milliseconds, not day.'],
    ['/clock', { advance: { toString: 1 } }, /, not toString\.$/],
    ['/clock', { advance: [1] }, /, not 0\.$/],
    ...withEach('/clock', [{}, { days: '1' }, { days: 1, hours: null }], (advance) => [
      { advance },
      'advance takes numbers of days,hours,minutes,seconds,milliseconds.',
    ]),
    ['/faults', {}, /^fault must be one of too_many_requests, unavailable, .*, newer_version\.$/],
    [
      '/faults',
      { fault: 'lost_answer', path: 'cards' },
      /^path must begin with a slash, and may end with a \*, as in \/api/,
    ],
    [
      '/faults',
      { fault: 'lost_answer', path: '/api/*/create' },
      /^path must begin with a slash, and may end with a \*/,
    ],
    ['/faults', { fault: 'lost_answer', method: 5 }, 'method must be a method of HTTP, as in POST.'],
    ['/faults', { fault: 'lost_answer', method: 'FETCH' }, 'method must be a method of HTTP, as in POST.'],
    ['/faults', { fault: 'late_webhook', type: ['card'] }, 'type must be the type of an event, as in card.created.'],
    ['/faults', { fault: 'late_webhook', type: 'card' }, 'type must be the type of an event, as in card.created.'],
    ['/faults', { fault: 'lost_answer', method: ['POST'] }, 'method must be a method of HTTP, as in POST.'],
    ['/faults', { fault: 'lost_answer', times: 0 }, 'times must be a number from 1 to 1000000.'],
    ['/faults', { fault: 'lost_answer', times: 1.5 }, 'times must be a whole number.'],
    ['/faults', { fault: 'lost_answer', skip: 0.5 }, 'skip must be a whole number.'],
    ['/faults', { fault: 'late_answer', seconds: 60 }, 'seconds must be a number from 0 to 10.'],
    [
      '/faults',
      { fault: 'late_webhook', path: '/' },
      'late_webhook takes fault, type, skip, times, seconds, not path.',
    ],
  ])('400 for %s with %j, which changes nothing', async (path, body, message) => {
    const moved = await given.control('/clock', { set: '2026-01-31' });
    const before = moved.body;

    const answer = await given.control(path, body);

    expect(answer).toMatchObject({ status: 400, body: { error: true } });
    expect(answer.body.message).toMatch(message);
    const { state, faults, clock } = await given.describe();
    expect({ state, faults, clock }).toEqual({ state: before.state, faults: before.faults, clock: before.clock });
  });

  it.each(['https://example.com', 'null'])('403 for a web page of %s, which changes nothing', async (origin) => {
    const sendFrom = (origin: string) =>
      given.send('POST', '/_sandbox/faults', { fault: 'unavailable', path: '/page' }, { origin });

    const answer = await sendFrom(origin);

    const message = `A web page of ${origin} can't control the sandbox. Call it from a program, or from a page of 127.0.0.1.`;
    expect(answer).toMatchObject({ status: 403, body: { error: true, message } });
    expect((await given.describe()).faults).not.toContainEqual(expect.objectContaining({ path: '/page' }));
    expect((await sendFrom('http://127.0.0.1:8080')).status).toBe(200);
    await given.clearFaults();
  });

  it.each([
    ['POST', '/health/live'],
    ['POST', '/_sandbox/faults'],
  ])('403 for %s %s of a name that is not of the sandbox', async (method, path) => {
    const { hostname, port } = new URL(given.sandbox.url);
    const headers = { host: 'rebound.example' };
    const answered = new Promise<IncomingMessage>((resolve, reject) =>
      request({ hostname, port, method, path, headers }, resolve).on('error', reject).end('{"fault": "unavailable"}'),
    );

    const answer = await answered;

    expect([answer.statusCode, JSON.parse(await text(answer)).message]).toEqual([
      403,
      'The sandbox is not called rebound.example. Call it by its IP address or as localhost, or start it with --host rebound.example.',
    ]);
    expect((await given.describe()).faults).toEqual([]);
  });

  it('404 and 405 say what there is', async () => {
    const { send } = callerOf(given.sandbox.url);

    expect((await send('GET', '/_sandbox/fault')).body.message).toContain('There are /_sandbox, /_sandbox/reset');
    expect(await send('GET', '/_sandbox/reset')).toMatchObject({
      status: 405,
      body: { message: '/_sandbox/reset takes POST, not GET.' },
    });
  });
});

const typeOf = ({ type }: { type: string }) => type;
