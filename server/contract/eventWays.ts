import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { readMessages } from '../../client/sse.ts';
import { isOfProjects } from '../../shared/event.ts';
import { findProcedure, type RestProcedure } from '../api/procedures.ts';
import type { SentEvent } from './event.ts';
import { callOn } from './exchange.ts';
import type { Run } from './expectation.ts';
import { isComplete, type OwnCall, type Way, wayProblems } from './ownEvents.ts';
import type { Place } from './ownPlace.ts';
import { LONGEST_PAUSE_SECONDS, type Send } from './sender.ts';
import { ACCEPTED, mayFollow, STREAMS } from './streams.ts';

export type Followed = {
  begin: () => Promise<void>;
  note: (call: OwnCall) => void;
  check: () => Promise<void>;
  close: () => void;
};

/** Follows the events of the own rows on every way: the feed, both streams, and a webhook with a receiver of its own. */
export function followEvents(run: Run, place: Place, send: Send): Followed {
  const calls: OwnCall[] = [];
  const closing = new AbortController();
  const ways: Way[] = [];
  const saw = ({ seen }: Way, event: SentEvent) =>
    seen.push({ event, at: Date.now(), limitedUntil: run.limitedUntil() });
  const open = (name: string, hasBegun = true): [Way, See] => {
    const way: Way = { name, hasBegun, seen: [], problems: [] };
    ways.push(way);
    return [way, (event) => isOfProjects(event.type) && saw(way, event)];
  };
  const rest = () => pause(PAUSE_MILLISECONDS, undefined, run.signal && { signal: run.signal });
  return {
    begin: async () => {
      if (!mayFollow(run)) return;
      const cursor = await cursorOfNow(send);
      if (cursor) readFeed(send, cursor, open('feed')[1], closing.signal).catch(() => undefined);
      for (const [surface, path] of STREAMS)
        readStream(run, place, path, open(`${surface}: stream`, false), closing.signal).catch(() => undefined);
      await openReceiver(run, place, send, open, closing.signal);
      const end = Date.now() + LONGEST_BEGIN_MILLISECONDS;
      // A stream that begins after a change does not show it.
      while (ways.some(({ hasBegun }) => !hasBegun) && Date.now() < end) await rest();
    },
    note: (call) => calls.push(call),
    check: async () => {
      if (place.isForeign || !calls.some(({ name }) => name.endsWith('.create'))) return;
      const now = Date.now();
      // A limit that begins meanwhile is waited for, too, but not one after another.
      const begin = () => Math.min(Math.max(now, run.limitedUntil()), now + LONGEST_PAUSE_SECONDS * 1000);
      const isOver = () => Date.now() > begin() + run.streamSeconds * 1000;
      const begun = () => ways.filter(({ hasBegun }) => hasBegun);
      while (!isOver() && !begun().every((way) => isComplete(way, ways, calls))) await rest();
      for (const way of begun()) {
        const { name, seen, problems } = way;
        const silent = [`no event arrives within ${run.streamSeconds} seconds.`, ...problems];
        await run.record('events', `${name}: an event`, async () =>
          seen.length === 0 ? silent.map((problem) => `${name}: ${problem}`) : wayProblems(way, ways, calls),
        );
      }
    },
    close: () => closing.abort(),
  };
}

type See = (event: SentEvent) => unknown;
const PAUSE_MILLISECONDS = 250;
const LONGEST_BEGIN_MILLISECONDS = 3000;
/** Each call of the feed, and each new stream, counts against the rate limit. */
const REPEAT_MILLISECONDS = 1000;

const call = async <Data>(send: Send, name: string, input: object) =>
  (await callOn('REST', send, { procedure: findProcedure(name) as RestProcedure, input: { ...input } })).read?.data as
    | Data
    | undefined;

type Page = { events: SentEvent[]; cursor: string; has_more: boolean };

const cursorOfNow = async (send: Send) => (await call<Page>(send, 'events.list', { after: 'latest' }))?.cursor;

/** Asks for new events again and again. */
async function readFeed(send: Send, first: string, see: See, signal: AbortSignal): Promise<void> {
  for (let after = first; !signal.aborted; ) {
    const page = await call<Page>(send, 'events.list', { after });
    page?.events?.forEach(see);
    after = page?.cursor ?? after;
    if (!page?.has_more) await pause(REPEAT_MILLISECONDS, undefined, { signal });
  }
}

/** A stream that ends is opened again behind its last event. One that does not begin has been reported. */
async function readStream(
  run: Run,
  place: Place,
  path: string,
  [way, see]: [Way, See],
  signal: AbortSignal,
): Promise<void> {
  const { url, token, projectId: chosen } = run.target;
  const projectId = place.projectId ?? chosen;
  const headers: Record<string, string> = { ...ACCEPTED, authorization: `Bearer ${token}` };
  if (projectId !== undefined) headers['x-project-id'] = String(projectId);
  const read = async () => {
    const response = await fetch(url + path, { signal, headers });
    for await (const { data, id } of readMessages(response.body!)) {
      way.hasBegun = true;
      if (id !== undefined) headers['last-event-id'] = id;
      // Over RPC it is superjson.
      const sent = data.startsWith('{') ? (JSON.parse(data) as SentEvent & { json?: SentEvent }) : undefined;
      const event = sent?.json ?? sent;
      if (event?.type) see(event);
    }
  };
  do {
    await read().catch(() => undefined);
    await pause(REPEAT_MILLISECONDS, undefined, { signal });
  } while (way.hasBegun);
}

/** Creates a webhook that sends to this process, if the key may, and the service may reach the address. */
async function openReceiver(
  run: Run,
  place: Place,
  send: Send,
  open: (name: string) => [Way, See],
  signal: AbortSignal,
): Promise<void> {
  const { receiver, target } = run;
  const isNear = LOOPBACK.has(new URL(target.url).hostname);
  if (run.denied.has('webhooks.create') || !(receiver || isNear)) return;
  const messages: Message[] = [];
  let take = (message: Message): unknown => messages.push(message);
  const server = createServer(async (request, response) => {
    // Other programs may also find the port. What is no message of a webhook gets a 400, and is no problem of the service.
    const body = request.headers['webhook-id'] ? await readMessage(request) : undefined;
    response.writeHead(body === undefined ? 400 : 200).end();
    if (body !== undefined) take({ headers: request.headers, body });
  });
  signal.addEventListener('abort', () => server.close().closeAllConnections());
  const problem = await listening(server, receiver ? { port: receiver.port } : { port: 0, host: '127.0.0.1' });
  if (problem) return run.announce(`Webhooks are not checked: the receiver can't listen (${problem}).`);

  const address = receiver?.url ?? `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const made = await call<Made>(send, 'webhooks.create', { url: address });
  const { webhook, secret } = made ?? {};
  const foreign = webhook ? place.remember('webhooks.create', webhook.id, webhook.project_id) : [];
  if (foreign.length > 0)
    return run.record('change', 'webhooks.create', async () => foreign.map((problem) => `REST: ${problem}`));
  if (!secret) return run.announce(`Webhooks are not checked: the service does not accept the receiver ${address}.`);
  const [way, see] = open('webhook');
  take = ({ headers, body }) => {
    try {
      const { data } = new Webhook(secret).verify(body, headers as Record<string, string>) as { data: SentEvent };
      see(data);
    } catch (error) {
      way.problems.push(`a message can't be verified: ${(error as Error).message}.`);
    }
  };
  messages.forEach(take);
}

type Made = { webhook?: { id: number; project_id?: number }; secret?: string };
type Message = { headers: IncomingHttpHeaders; body: string };

/** Undefined if it is cut off, or too large for a message. */
async function readMessage(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request) {
      bytes += chunk.length;
      if (bytes > LARGEST_MESSAGE_BYTES) return undefined;
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString();
  } catch {
    return undefined;
  }
}
const LARGEST_MESSAGE_BYTES = 256 * 1024;

/** Why it can't listen; undefined if it does. */
const listening = (server: Server, address: { port: number; host?: string }) =>
  new Promise<string | undefined>((resolve) => {
    server.once('error', ({ message }) => resolve(message));
    server.listen(address, () => resolve(undefined));
  });

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);
