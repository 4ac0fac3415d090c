import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A message as it arrived. */
export type Arrived = { path: string; id: string; headers: Record<string, string>; body: string };

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
  /** Cuts all connections, as a lost network does. */
  cut: () => void;
  remove: () => void;
};

/** Answers with 204, unless told otherwise. */
export async function givenWebhookReceiver(
  answer: (arrived: Arrived, response: ServerResponse) => unknown = (_, response) => response.writeHead(204).end(),
): Promise<WebhookReceiver> {
  const arrived: Arrived[] = [];
  const seen = new Set<string>();
  const waiting = new Set<(message: Arrived) => void>();
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    const headers = request.headers as Record<string, string>;
    const message = { path: request.url ?? '', id: String(headers['webhook-id']), headers, body };
    arrived.push(message);
    seen.add(message.id);
    for (const tell of waiting) tell(message);
    await answer(message, response);
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
    cut: () => server.closeAllConnections(),
    remove: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Compares the ids of the feed with those that arrived. */
export function compareDelivered(events: string[], seen: ReadonlySet<string>): string[] {
  const missing = events.filter((id) => !seen.has(id));
  if (missing.length > 0)
    return [`${missing.length} of ${events.length} events were never delivered, the first is ${missing[0]}`];
  const wanted = new Set(events);
  const arrived = [...seen].filter((id) => wanted.has(id));
  const at = arrived.findIndex((id, place) => id !== events[place]);
  return at < 0 ? [] : [`event ${arrived[at]} was delivered before event ${events[at]}`];
}
