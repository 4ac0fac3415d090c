import { randomBytes } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import type { z } from 'zod';
import { Event } from '../../../shared/event.ts';

/** Between the 24 and 64 bytes that Standard Webhooks asks for. */
const SECRET_BYTES = 32;

export const makeWebhookSecret = (): string => `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;

/** The body of a message: the event as over REST. The model gives dates, which become ISO 8601. */
export function messageOf(row: z.input<typeof Event>): string {
  const event = Event.parse(row);
  return JSON.stringify({ type: event.type, timestamp: event.created_at, data: event });
}

/** The headers of a message, signed with each of these secrets. */
export function signedHeaders(id: string, sentAt: Date, body: string, secrets: readonly string[]) {
  return {
    'content-type': 'application/json',
    'user-agent': 'Deckhand-Webhooks/1',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(sentAt.getTime() / 1000)),
    'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(id, sentAt, body)).join(' '),
  };
}
