import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A message as it arrived. */
export type Arrived = { path: string; id: string; headers: IncomingMessage['headers']; body: string };

/** Receives webhooks, at any path of its address. */
export type WebhookReceiver = {
  host: string;
  url: string;
  /** In the order of their arrival, with repeats. */
  arrived: Arrived[];
  /** The ids of the messages, in the order in which they first arrived. */
  seen: Set<string>;
  /** The next message at a path. */
  next: (path?: string) => Promise<Arrived>;
  /** Waits for so many messages at a path. */
  count: (count: number, path?: string) => Promise<void>;
  remove: () => void;
};

/** Answers with 204, unless told otherwise. */
export async function givenWebhookReceiver(
  answer: (arrived: Arrived, response: ServerResponse) => void = (_, response) => response.writeHead(204).end(),
): Promise<WebhookReceiver> {
  const arrived: Arrived[] = [];
  const seen = new Set<string>();
  const waiting = new Set<(message: Arrived) => void>();
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    const { url: path = '', headers } = request;
    const message = { path, id: String(headers['webhook-id']), headers, body };
    arrived.push(message);
    seen.add(message.id);
    for (const tell of waiting) tell(message);
    answer(message, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const count = (wanted: number, path?: string) => {
    let missing = wanted;
    const { promise, resolve } = Promise.withResolvers<Arrived>();
    const tell = (message: Arrived) => {
      if (path !== undefined && message.path !== path) return;
      missing--;
      if (missing > 0) return;
      waiting.delete(tell);
      resolve(message);
    };
    waiting.add(tell);
    return promise;
  };
  return {
    ...{ host, url: `http://${host}`, arrived, seen },
    next: (path) => count(1, path),
    count: async (missing, path) => {
      await count(missing, path);
    },
    remove: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
