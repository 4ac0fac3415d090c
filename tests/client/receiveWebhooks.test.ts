import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type ChangeEvent, type ReceiveOptions, receiveWebhooks } from '../../client/events/events.ts';
import { anEvent } from '../../client/testing/rows.ts';
import { makeWebhookSecret, messageOf, signedHeaders } from '../../server/domain/event/webhookMessage.ts';
import { TEST_TYPE } from '../../shared/webhook.ts';

const SECRET = makeWebhookSecret();
const NOW = new Date('2026-01-31T09:30:00Z');

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: NOW });
});
afterEach(() => {
  vi.useRealTimers();
});

type Sending = { body?: string; secrets?: string[]; sentAt?: Date; headers?: Record<string, string>; method?: string };

/** The message of an event, as the service signs it. */
function messageFor(event: ChangeEvent, { secrets = [SECRET], sentAt = NOW, ...more }: Sending = {}) {
  const body = messageOf(event);
  const headers = { ...signedHeaders(event.id, sentAt, body, secrets), ...more.headers };
  return new Request('http://receiver.test/', { method: more.method ?? 'POST', headers, body: more.body ?? body });
}

function givenReceiver(more: Partial<ReceiveOptions<undefined>> = {}) {
  const handled: ChangeEvent[] = [];
  const errors: unknown[] = [];
  const receive = receiveWebhooks({
    secret: SECRET,
    on: { 'card.moved': (event) => void handled.push(event) },
    onError: (error) => void errors.push(error),
    ...more,
  });
  const send = async (event: ChangeEvent, sending?: Sending) => (await receive(messageFor(event, sending))).status;
  return { receive, send, handled, errors };
}

const moved = (fields: Partial<ChangeEvent> = {}) => anEvent({ type: 'card.moved', subject_id: 7, ...fields });

describe('a message', () => {
  it('is handled as the event that it has, and acknowledged', async () => {
    const { send, handled } = givenReceiver();
    const event = moved({ data: { version: 3, group_id: 2 } });

    expect(await send(event)).toBe(204);
    expect(handled).toEqual([event]);
  });

  it('may be signed with any of the secrets, by any of its signatures', async () => {
    const old = makeWebhookSecret();
    const { send, handled } = givenReceiver({ secret: [old, SECRET] });

    expect(await send(moved(), { secrets: [SECRET] })).toBe(204);
    expect(await send(moved(), { secrets: [old] })).toBe(204);
    expect(await send(moved(), { secrets: [makeWebhookSecret(), SECRET] })).toBe(204);
    expect(handled).toHaveLength(3);
  });

  it.each<[string, Sending]>([
    ['another secret', { secrets: [makeWebhookSecret()] }],
    ['another body', { body: messageOf(moved({ subject_id: 8 })) }],
    ['another id', { headers: { 'webhook-id': '1' } }],
    ['another timestamp', { headers: { 'webhook-timestamp': String(NOW.getTime() / 1000 - 1) } }],
    ['no signature', { headers: { 'webhook-signature': '' } }],
    ['a signature of another kind', { headers: { 'webhook-signature': 'v1a,AAAA v1,' } }],
    ['a body that was cut off', { body: messageOf(moved()).slice(0, -1) }],
    ['an age of more than five minutes', { sentAt: new Date(NOW.getTime() - 301_000) }],
    ['a time in the future', { sentAt: new Date(NOW.getTime() + 301_000) }],
  ])('401 with %s', async (_, sending) => {
    const { send, handled } = givenReceiver();

    expect(await send(moved(), sending)).toBe(401);
    expect(handled).toEqual([]);
  });

  it('may be as old as the receiver says', async () => {
    const sentAt = new Date(NOW.getTime() - 60_000);

    expect(await givenReceiver({ toleranceSeconds: 60 }).send(moved(), { sentAt })).toBe(204);
    expect(await givenReceiver({ toleranceSeconds: 59 }).send(moved(), { sentAt })).toBe(401);
  });

  it('413 if it is too large, and its rest is not read', async () => {
    const { receive, handled } = givenReceiver({ maxBytes: 1000 });
    let chunks = 0;
    const body = new ReadableStream({
      pull: (stream) => {
        chunks++;
        stream.enqueue(new Uint8Array(600));
      },
    });
    const sent = { method: 'POST', body, duplex: 'half' };

    expect((await receive(new Request('http://receiver.test/', sent as RequestInit))).status).toBe(413);
    expect(chunks).toBeLessThan(5);
    expect(handled).toEqual([]);
  });

  it('400 if it is signed, but no event, and 405 if it was not posted', async () => {
    const { receive } = givenReceiver();
    const headers = signedHeaders('1', NOW, '{"type":"card.moved"}', [SECRET]);
    const body = '{"type":"card.moved"}';

    expect((await receive(new Request('http://receiver.test/', { method: 'POST', headers, body }))).status).toBe(400);
    expect((await receive(new Request('http://receiver.test/', { headers }))).status).toBe(405);
  });

  it('of webhooks.sendTest is acknowledged', async () => {
    const { receive, handled } = givenReceiver({ otherwise: (event) => void handled.push(event) });
    const body = JSON.stringify({ type: TEST_TYPE, timestamp: NOW, data: { webhook_id: 1, project_id: 1 } });
    const headers = signedHeaders('test-1', NOW, body, [SECRET]);

    expect((await receive(new Request('http://receiver.test/', { method: 'POST', headers, body }))).status).toBe(204);
    expect(handled).toEqual([]);
  });

  it('of a type without a handler is acknowledged, or goes to otherwise', async () => {
    const later = moved({ type: 'card.painted' });
    const without = givenReceiver();
    const others: ChangeEvent[] = [];

    expect(await without.send(later)).toBe(204);
    expect(await givenReceiver({ otherwise: (event) => void others.push(event) }).send(later)).toBe(204);
    expect(without.handled).toEqual([]);
    expect(others).toEqual([later]);
  });
});

describe('a receiver', () => {
  it('drops a repeat, also one that comes meanwhile', async () => {
    const { promise: opened, resolve: open } = Promise.withResolvers<void>();
    let calls = 0;
    const { send } = givenReceiver({ on: { 'card.moved': () => ++calls && opened, 'card.created': () => undefined } });
    const event = moved();

    const both = [send(event), send(event)];
    // Sent after both, so both have arrived.
    await send(anEvent({ type: 'card.created', subject_id: 8 }));
    open();

    expect(await Promise.all(both)).toEqual([204, 204]);
    expect(await send(event)).toBe(204);
    expect(calls).toBe(1);
  });

  it('500 if the handler throws, and handles the event when it comes again', async () => {
    let calls = 0;
    const fail = () => {
      if (++calls === 1) throw new Error('Not now.');
    };
    const { send, errors } = givenReceiver({ on: { 'card.moved': fail } });
    const event = moved();

    expect(await send(event)).toBe(500);
    expect(await send(event)).toBe(204);
    expect(calls).toBe(2);
    expect(errors).toEqual([new Error('Not now.')]);
  });

  it('lets an event wait for an earlier one of the same row, and no other', async () => {
    const [started, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const ended: string[] = [];
    const [first, second, other] = [moved(), moved(), moved({ subject_id: 8 })];
    const { send } = givenReceiver({
      on: {
        'card.moved': async ({ id }) => {
          if (id === first.id) {
            started.resolve();
            await released.promise;
          }
          ended.push(id);
        },
      },
    });

    // Signatures are checked on other threads, so two messages that are sent together arrive in any order.
    const waiting = [send(first)];
    await started.promise;
    waiting.push(send(second));
    expect(await send(other)).toBe(204);
    released.resolve();
    await Promise.all(waiting);

    expect(ended).toEqual([other.id, first.id, second.id]);
  });

  it('says if a later version of the row was handled before', async () => {
    const flags: boolean[] = [];
    const { send } = givenReceiver({ on: { 'card.moved': (_, { isOutdated }) => void flags.push(isOutdated) } });

    for (const version of [2, 4, 3, 5]) await send(moved({ data: { version } }));
    await send(moved({ data: {} }));

    expect(flags).toEqual([false, false, true, false, false]);
  });

  it('has handlers whose event is typed', () => {
    receiveWebhooks({
      secret: SECRET,
      on: {
        'card.moved': ({ type, subject_id, data }) => {
          const [known, id, group]: ['card.moved', number, number | null] = [type, subject_id, data.group_id];
          const version: number | undefined = data.version;
          // @ts-expect-error: cards.move does not say which fields it changes
          return [known, id, group, version, data.fields];
        },
        'session.started': ({ subject_id: none }: { subject_id: null }) => none,
        // @ts-expect-error: there is no such event
        'card.painted': () => undefined,
      },
    });
  });

  it.each(['whsec_', 'not base64!', ''])('is not made with the secret "%s"', (secret) => {
    expect(() => givenReceiver({ secret })).toThrow('secret must be the text that webhooks.create returned');
    expect(() => givenReceiver({ secret: [] })).toThrow('secret must be');
  });
});

describe("on Node's server", () => {
  async function givenServer(more: Partial<ReceiveOptions<undefined>> = {}) {
    const given = givenReceiver(more);
    const server = createServer(given.receive.node);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    return { ...given, url, [Symbol.dispose]: () => void server.close() };
  }
  const parts = (event: ChangeEvent) => {
    const body = messageOf(event);
    return { method: 'POST', headers: { ...signedHeaders(event.id, NOW, body, [SECRET]), connection: 'close' }, body };
  };

  it('204 for a message, 401 for a forged one, 413 for a large one', async () => {
    using server = await givenServer({ maxBytes: 2000 });
    const message = parts(moved());

    expect((await fetch(server.url, message)).status).toBe(204);
    expect((await fetch(server.url, { ...message, body: `${message.body} ` })).status).toBe(401);
    expect((await fetch(server.url, { ...message, body: 'x'.repeat(2001) })).status).toBe(413);
    expect(server.handled).toHaveLength(1);
  });

  it('goes on after a message whose connection was cut off', async () => {
    using server = await givenServer();
    const { body, headers, method } = parts(moved());
    const cut = request(server.url, { method, headers: { ...headers, 'content-length': body.length } });
    const failed = once(cut, 'error');
    cut.write(body.slice(0, 100), () => cut.destroy(new Error('cut')));
    await failed;

    expect((await fetch(server.url, parts(moved()))).status).toBe(204);
    expect(server.handled).toHaveLength(1);
  });
});
