import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FeedEvent } from '../history/history.ts';
import { timeUntil } from './outcome.ts';
import { keepAlive, post } from './request.ts';

/** The events of a project behind a cursor. */
export type Expected = { project_id: number; after: string };

/** A receiver of webhooks, which outlives the nodes. */
export type Receiver = {
  host: string;
  /** The ids of the events in the order in which they first arrived. */
  seen: Set<string>;
  /** Registers it, and returns the events that must arrive. */
  register: (serviceUrl: string, token: string, project_id?: number, types?: string[]) => Promise<Expected>;
  remove: () => void;
};

/** A node that was killed keeps its lease of a webhook for ten seconds, one of an earlier version for a minute. */
const LONGEST_DELIVERY_MILLISECONDS = 180_000;

export async function givenReceiver(): Promise<Receiver> {
  const seen = new Set<string>();
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      seen.add(String(request.headers['webhook-id']));
      response.end();
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    host,
    seen,
    register: async (serviceUrl, token, project_id, types) => {
      const { webhook } = await call(serviceUrl, token, 'webhooks/create', {
        url: `http://${host}`,
        project_id,
        types,
      });
      const { cursor } = await call(serviceUrl, token, 'events/list', { after: 'latest' });
      return { project_id: webhook.project_id, after: cursor };
    },
    remove: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Waits until all these events have arrived, and compares them with the feed: none missing, all in order. */
export async function deliveryViolations(
  serviceUrl: string,
  token: string,
  { seen }: Receiver,
  expected: Expected,
): Promise<string[]> {
  const events = (await eventsAfter(serviceUrl, token, expected)).map(({ id }) => id);
  await timeUntil(async () => events.every((id) => seen.has(id)), LONGEST_DELIVERY_MILLISECONDS);
  return compareDelivered(events, seen);
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

/** Reads all events after a cursor. */
export async function eventsAfter(
  serviceUrl: string,
  token: string,
  { project_id, after }: Expected,
): Promise<FeedEvent[]> {
  const { events, cursor, has_more } = await call(serviceUrl, token, 'events/list', { project_id, after, limit: 500 });
  return has_more ? [...events, ...(await eventsAfter(serviceUrl, token, { project_id, after: cursor }))] : events;
}

export async function call(serviceUrl: string, token: string, path: string, body: object) {
  const reply = await post(new URL(`/api/services/platforms/v1/${path}`, serviceUrl).href, keepAlive(), token, body);
  if (reply.status !== 201 && reply.status !== 200) throw new Error(`${path}: ${JSON.stringify(reply)}`);
  return JSON.parse(reply.text).data;
}
