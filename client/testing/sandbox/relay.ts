import { Agent, createServer, type IncomingHttpHeaders, type IncomingMessage, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import type { Faults } from './faults.ts';
import { RECEIVER_HEADER } from './states.ts';

type Message = { receiver: string; headers: IncomingHttpHeaders; body: string };

/** As long as the service waits for a webhook. */
const TIMEOUT_MILLISECONDS = 15_000;

/** Passes messages of webhooks on to their receivers, late, twice or in another order if a fault says so. */
export async function startRelay(faults: Faults, note: () => void, timeoutMilliseconds = TIMEOUT_MILLISECONDS) {
  let running = new AbortController();
  /** What each receiver gets after its next message. */
  const held = new Map<string, Message>();

  async function deliver(message: Message): Promise<number> {
    const { signal } = running;
    const { fault, seconds = 0 } = faults.takeForWebhook(typeOf(message)) ?? {};
    if (fault === 'unordered_webhook' && !held.has(message.receiver)) {
      held.set(message.receiver, message);
      return 204;
    }
    if (fault === 'late_webhook') await pause(seconds * 1000, undefined, { signal });
    if (fault === 'doubled_webhook') await send(message, signal);
    const status = await send(message, signal);
    const earlier = held.get(message.receiver);
    held.delete(message.receiver);
    if (earlier) await send(earlier, signal);
    return status;
  }

  const send = async (message: Message, signal: AbortSignal) => {
    note();
    return post(message, AbortSignal.any([signal, AbortSignal.timeout(timeoutMilliseconds)]));
  };
  /** Drops all messages. The service repeats some at once, so those that come until `resume` fail. */
  const drop = () => {
    running.abort();
    held.clear();
  };

  const server = createServer((received, response) => {
    // A failure closes the connection, so that the service tries again later.
    readMessage(received)
      .then(deliver)
      .then(
        (status) => response.writeHead(status).end(),
        () => received.socket.destroy(),
      );
  });
  await listen(server);
  unref(server);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    drop,
    resume: () => {
      running = new AbortController();
    },
    /** Sends what is held. */
    release: () => {
      for (const message of held.values()) send(message, running.signal).catch(() => undefined);
      held.clear();
    },
    close: () => {
      drop();
      server.close();
      server.closeAllConnections();
    },
  };
}

/** A server that is not closed must not keep the test process alive. */
export const unref = (server: Server) => void server.unref().on('connection', (socket) => socket.unref());

const listen = (server: Server) => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

async function readMessage(received: IncomingMessage): Promise<Message> {
  const { [RECEIVER_HEADER]: receiver = '', ...headers } = received.headers;
  return { receiver: String(receiver), headers, body: await text(received) };
}

function typeOf({ body }: Message): string {
  return JSON.parse(body).type;
}

/** Unlike the global one, without a proxy that the environment names. */
const agent = new Agent();

/** Returns the status; the body of a receiver's answer does not count. */
const post = ({ receiver, headers: { host: _, connection: __, ...headers }, body }: Message, signal: AbortSignal) =>
  new Promise<number>((resolve, reject) => {
    const call = request(receiver, { agent, method: 'POST', headers, signal }, (answer: IncomingMessage) => {
      answer.resume();
      resolve(answer.statusCode ?? 502);
    });
    call.on('error', reject).end(body);
  });
