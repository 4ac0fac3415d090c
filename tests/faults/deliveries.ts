import { compareDelivered, type WebhookReceiver } from '../harness/webhookReceiver.ts';
import type { FeedEvent } from '../history/history.ts';
import { timeUntil } from './outcome.ts';
import { keepAlive, post } from './request.ts';

/** The events of a project behind a cursor. */
export type Expected = { project_id: number; after: string };

/** A node that was killed keeps its lease of a webhook for ten seconds, one of an earlier version for a minute. */
const LONGEST_DELIVERY_MILLISECONDS = 180_000;

/** Registers a receiver, which outlives the nodes, and returns the events that must arrive. */
export async function register(
  { url }: WebhookReceiver,
  serviceUrl: string,
  token: string,
  project_id?: number,
): Promise<Expected> {
  const { webhook } = await call(serviceUrl, token, 'webhooks/create', { url, project_id });
  const { cursor } = await call(serviceUrl, token, 'events/list', { after: 'latest' });
  return { project_id: webhook.project_id, after: cursor };
}

/** Waits until all these events have arrived, and compares them with the feed: none missing, all in order. */
export async function deliveryViolations(
  serviceUrl: string,
  token: string,
  { seen }: WebhookReceiver,
  expected: Expected,
): Promise<string[]> {
  const events = (await eventsAfter(serviceUrl, token, expected)).map(({ id }) => id);
  await timeUntil(async () => events.every((id) => seen.has(id)), LONGEST_DELIVERY_MILLISECONDS);
  return compareDelivered(events, seen);
}

/** Reads all events after a cursor. */
async function eventsAfter(serviceUrl: string, token: string, { project_id, after }: Expected): Promise<FeedEvent[]> {
  const { events, cursor, has_more } = await call(serviceUrl, token, 'events/list', { project_id, after, limit: 500 });
  return has_more ? [...events, ...(await eventsAfter(serviceUrl, token, { project_id, after: cursor }))] : events;
}

export async function call(serviceUrl: string, token: string, path: string, body: object) {
  const reply = await post(new URL(`/api/services/platforms/v1/${path}`, serviceUrl).href, keepAlive(), token, body);
  if (reply.status !== 201 && reply.status !== 200) throw new Error(`${path}: ${JSON.stringify(reply)}`);
  return JSON.parse(reply.text).data;
}
