import type { z } from 'zod';
import type { Event } from '../../shared/event.ts';
import { makeWebhookSecret, messageOf, signedHeaders } from '../domain/event/webhookMessage.ts';
import { makeOutgoing, type Outcome } from '../security/outgoing.ts';
import { misuse } from './misuse.ts';

export type FollowedEvent = z.output<typeof Event>;

/** Sends events to an address, each as a webhook would send it, once. */
export type Forward = {
  address: string;
  /** What the messages are signed with. */
  secret: string;
  send: (event: FollowedEvent, signal: AbortSignal) => Promise<Outcome>;
  close: () => void;
};

/** Any address: unlike those of webhooks, it belongs to the person who runs the command. */
export function makeForward(given: string, secret = makeWebhookSecret()): Forward {
  const url = URL.parse(given);
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    throw misuse('--forward must be an address such as http://localhost:4000/hook, without a user.');
  if (!isSecret(secret))
    throw misuse('--secret must be whsec_ with 24 to 64 bytes as base64, such as an earlier run has printed.');

  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  const { post, close } = makeOutgoing({ allowedHosts: [`${url.hostname}:${port}`] });
  return {
    address: url.href,
    secret,
    send: (event, signal) => {
      const body = messageOf(event);
      return post(url.href, signedHeaders(event.id, new Date(), body, [secret]), body, signal);
    },
    close,
  };
}

function isSecret(secret: string): boolean {
  const [, base64 = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret) ?? [];
  const bytes = Buffer.from(base64, 'base64');
  return bytes.length >= 24 && bytes.length <= 64 && bytes.toString('base64') === base64;
}
