import http from 'node:http';
import { RECEIVER_HEADER } from '../../../client/testing/sandbox/states.ts';

/** Sends webhooks to receivers on http through the sandbox, which may delay, repeat or reorder them. */
export function relayWebhooks(relay: string): void {
  const send = http.request as (url: string | URL, options: http.RequestOptions) => http.ClientRequest;
  const relayed: typeof send = (url, options) => {
    const headers = options.headers as http.OutgoingHttpHeaders | undefined;
    if (!headers?.['webhook-id']) return send(url, options);
    return send(relay, { ...options, headers: { ...headers, [RECEIVER_HEADER]: String(url) } });
  };
  Object.assign(http, { request: relayed });
}
