import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { pino } from 'pino';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { restProcedures } from '../../server/api/procedures.ts';
import type { SentEvent } from '../../server/contract/event.ts';
import type { Report } from '../../server/contract/report.ts';
import { checkContract } from '../../server/contract/run.ts';
import { BOARD_STEPS } from '../../server/contract/writeSteps.ts';
import { startWebhooks } from '../../server/domain/event/webhookWork.ts';
import { makeOutgoing } from '../../server/security/outgoing.ts';
import { makeSecretBox } from '../../server/security/secretBox.ts';
import { uncheckedFetch } from '../harness/checkAnswers.ts';
import { reservePort } from '../harness/port.ts';
import { givenService, TEST_SECRET, type TestService, withOwnDatabase } from '../harness/service.ts';
import { givenKey, givenWorld, testDb } from '../harness/world.ts';

const plainFetch = uncheckedFetch();

const WAYS = ['feed', 'REST: stream', 'RPC: stream', 'webhook'] as const;

/** What a planted fault makes of an event, and how long it is held back. */
type Tampered = { event: SentEvent; seconds?: number }[];

const withData = (event: SentEvent, data: object): Tampered => [
  { event: { ...event, data: { ...event.data, ...data } } },
];

/** Each fault changes the first event of its own type, once on every way. */
const FAULTS: Record<string, [type: string, tamper: (event: SentEvent) => Tampered, problem: RegExp]> = {
  'a missing field': [
    'board.created',
    (event) => withData(event, { version: undefined }),
    /board.created: \/data must have version/,
  ],
  'a field of another type': [
    'board.updated',
    (event) => withData(event, { fields: 'x' }),
    /board.updated: \/data\/fields must be array/,
  ],
  'a wrong version': [
    'group.updated',
    (event) => withData(event, { version: 7 }),
    /group.updated has version 7, the answer to its call 2/,
  ],
  'an event twice': ['comment.created', (event) => [{ event }, { event }], /comment.created arrives twice/],
  'a lost event': ['comment.read', () => [], /comments.markRead has no event/],
  'another order': ['tag.created', (event) => [{ event, seconds: 6 }], /events arrive in another order/],
  'an event that is late': [
    'card.moved',
    (event) => [{ event, seconds: 12 }],
    /card.moved arrives [1-9]\d seconds after its change/,
  ],
};

/** Plants the faults on one way. */
function tampering() {
  const planted = new Set<string>();
  return (event: SentEvent): Tampered => {
    const fault = Object.values(FAULTS).find(([type]) => type === event.type);
    if (!fault || planted.has(event.type)) return [{ event }];
    planted.add(event.type);
    return fault[1](event);
  };
}

/** At once without a delay, so that the order stays. */
const after = (seconds: number, work: () => unknown) =>
  void (seconds === 0 ? work() : pause(seconds * 1000).then(work));

const servers: Server[] = [];
async function listen(server: Server): Promise<string> {
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A proxy in front of the service that changes the events in the feed and in both streams. */
async function givenProxy(serviceUrl: string): Promise<string> {
  const tamperFeed = tampering();
  const held: { event: SentEvent; at: number }[] = [];
  const changed = new Map<string, SentEvent[]>();
  return listen(
    createServer({ keepAliveTimeout: 0 }, async (request, response) => {
      const { url = '', method = 'GET' } = request;
      const { host, connection, 'content-length': _, ...headers } = request.headers as Record<string, string>;
      const body = await text(request);
      const ended = new AbortController();
      response.once('close', () => ended.abort());
      const answer = await plainFetch(serviceUrl + url, {
        signal: ended.signal,
        ...{ method, headers: { ...headers, 'accept-encoding': 'identity' }, body: method === 'GET' ? null : body },
      }).catch(() => undefined);
      if (!answer) return void response.destroy();
      const { 'content-length': __, 'transfer-encoding': ___, ...sent } = Object.fromEntries(answer.headers);
      response.writeHead(answer.status, sent);
      if (sent['content-type']?.startsWith('text/event-stream')) {
        response.flushHeaders();
        const tamper = tampering();
        let rest = '';
        const write = (message: string) => !response.writableEnded && response.write(`${message}\n\n`);
        const read = async () => {
          for await (const piece of answer.body!.pipeThrough(new TextDecoderStream())) {
            const messages = (rest + piece).split('\n\n');
            rest = messages.pop() ?? '';
            for (const message of messages) relay(message, tamper, write);
          }
        };
        await read().catch(() => undefined);
        return void response.end();
      }
      const content = await answer.text();
      if (!url.endsWith('/events/list') || answer.status !== 200) return void response.end(content);
      const page = JSON.parse(content);
      const events = (page.data.events as SentEvent[]).flatMap((event) => {
        // Asked again, the feed tells the same.
        if (!changed.has(event.id)) {
          const outcome = tamperFeed(event);
          for (const { event, seconds } of outcome) if (seconds) held.push({ event, at: Date.now() + seconds * 1000 });
          changed.set(
            event.id,
            outcome.flatMap(({ event, seconds }) => (seconds ? [] : event)),
          );
        }
        return changed.get(event.id)!;
      });
      const due = held.filter(({ at }) => at <= Date.now());
      held.splice(0, held.length, ...held.filter(({ at }) => at > Date.now()));
      page.data.events = [...events, ...due.map(({ event }) => event)];
      response.end(JSON.stringify(page));
    }),
  );
}

function relay(message: string, tamper: (event: SentEvent) => Tampered, write: (message: string) => void) {
  const data = /^data: (\{.*)$/m.exec(message)?.[1];
  const parsed = data === undefined ? undefined : JSON.parse(data);
  const event: SentEvent | undefined = parsed?.json ?? parsed;
  if (!event?.type) return write(message);
  for (const { event: changed, seconds = 0 } of tamper(event)) {
    const body = JSON.stringify(parsed.json ? { ...parsed, json: changed } : changed);
    after(seconds, () => write(message.replace(data!, () => body)));
  }
}

/** A proxy in front of the receiver. It answers at once, and signs the changed messages again. */
async function givenReceiverProxy(
  port: number,
  sign: (body: string, headers: IncomingHttpHeaders) => Promise<Record<string, string>>,
) {
  const tamper = tampering();
  return listen(
    createServer(async (request, response) => {
      const body = await text(request);
      response.end();
      const message = JSON.parse(body);
      for (const { event, seconds = 0 } of tamper(message.data)) {
        const changed = JSON.stringify({ ...message, data: event });
        const headers = await sign(changed, request.headers);
        after(seconds, () =>
          // Rows are removed after the receiver was closed; a receiver that fails before that is found by the tests.
          plainFetch(`http://127.0.0.1:${port}`, { method: 'POST', body: changed, headers }).catch(() => undefined),
        );
      }
    }),
  );
}

/** Somebody who finds the port of the receiver: half a message, and one without a signature. */
function disturb(port: number): NodeJS.Timeout {
  return setInterval(() => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.end('POST / HTTP/1.1\r\nhost: x\r\nwebhook-id: 1\r\ncontent-length: 100\r\n\r\n{"half');
    }).on('error', () => undefined);
    plainFetch(`http://127.0.0.1:${port}`, { method: 'POST', body: 'x' }).catch(() => undefined);
  }, 500);
}
const strangers: NodeJS.Timeout[] = [];

describe('a fault of events, behind a proxy', () => {
  // The feed begins with the oldest events: faults would be planted in those of other suites.
  withOwnDatabase();
  let service: TestService;
  let webhooks: ReturnType<typeof startWebhooks>;
  let report: Report;
  beforeAll(async () => {
    const port = await reservePort();
    const secret = Promise.withResolvers<string>();
    const receiver = await givenReceiverProxy(port, async (body, headers) => {
      const [id, sentAt] = [String(headers['webhook-id']), Number(headers['webhook-timestamp'])];
      const signature = new Webhook(await secret.promise).sign(id, new Date(sentAt * 1000), body);
      return { 'webhook-id': id, 'webhook-timestamp': String(sentAt), 'webhook-signature': signature };
    });
    service = await givenService({ WEBHOOK_ALLOWED_HOSTS: receiver });
    const secretBox = makeSecretBox([TEST_SECRET]);
    const log = pino({ level: 'silent' });
    webhooks = startWebhooks(
      { db: await testDb(), secretBox, log, outgoing: makeOutgoing({ allowedHosts: [receiver] }) },
      100,
    );
    const proxy = await givenProxy(service.url);
    strangers.push(disturb(port));
    const { users } = await givenWorld(service);
    const { secret: token } = await givenKey(users.superadmin);
    vi.stubGlobal('fetch', async (...parts: Parameters<typeof fetch>) => {
      const response = await plainFetch(...parts);
      if (String(parts[0]).endsWith('/webhooks/create') && response.status === 201)
        secret.resolve((await response.clone().json()).data.secret);
      return response;
    });
    const names = new Set([...BOARD_STEPS.map(({ call }) => call), ...NEEDED]);
    report = await checkContract(
      { url: `http://${proxy}`, token },
      {
        ...{ isWriting: true, streamSeconds: 20, receiver: { url: `http://${receiver}`, port } },
        known: restProcedures.filter(({ name }) => names.has(name)),
      },
    );
  }, 300_000);
  afterAll(async () => {
    for (const stranger of strangers) clearInterval(stranger);
    vi.unstubAllGlobals();
    await webhooks.stop();
    for (const server of servers) server.close().closeAllConnections();
    service.app.server.closeAllConnections();
    await service.app.close();
  });

  it.each(WAYS.flatMap((way) => Object.keys(FAULTS).map((fault) => [way, fault] as const)))(
    '%s: %s is found',
    (way, fault) => {
      const own = report.cases.find(({ call }) => call === `${way}: an event`);

      expect(own?.problems.join('\n')).toMatch(FAULTS[fault]![2]);
    },
  );

  it('is all that is found', () => {
    const others = report.cases.filter(({ call }) => !call.endsWith(': an event'));

    expect(others.flatMap(({ problems }) => problems)).toEqual([]);
    expect(report.left).toEqual([]);
  });
});

const NEEDED = [
  'events.list',
  'webhooks.create',
  'webhooks.delete',
  'projects.listOwn',
  'projects.create',
  'platforms.list',
  'projects.list',
  'projects.update',
  'platforms.create',
];
