import { randomBytes } from 'node:crypto';
import { Webhook } from 'standardwebhooks';

/** Between the 24 and 64 bytes that Standard Webhooks asks for. */
const SECRET_BYTES = 32;

export const makeWebhookSecret = (): string => `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;

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
