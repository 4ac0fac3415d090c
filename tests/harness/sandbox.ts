import { expect } from 'vitest';
import { type Sandbox, startSandbox } from '../../client/testing/testing.ts';
import { givenWebhookReceiver } from './webhookReceiver.ts';

/** How a program in another language uses a sandbox: JSON over HTTP, and no more. */
export function callerOf(url: string, fetcher: typeof fetch = fetch) {
  const send = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const sent = typeof body === 'string' ? body : JSON.stringify(body);
    const answer = await fetcher(url + path, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(sent !== undefined && { body: sent }),
    });
    const received = await answer.text();
    const isJson = answer.headers.get('content-type')?.startsWith('application/json');
    return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(received) : received };
  };
  const control = (path: string, body?: unknown) => send('POST', `/_sandbox${path}`, body);
  return {
    send,
    control,
    describe: async () => (await send('GET', '/_sandbox')).body,
    clearFaults: () => send('DELETE', '/_sandbox/faults'),
    /** Calls an operation with the key of a role. */
    call: async (path: string, body: unknown = {}, role = 'member') =>
      send('POST', `/api/services${path}`, body, authorized(role)),
  };
}

export const authorized = (role: string) => ({ authorization: `Bearer ${keyOf(role)}` });

/** The same in each sandbox; its description has them, too. */
export const keyOf = (role: string) => KEYS[role as keyof typeof KEYS];
const KEYS = {
  superadmin: 'dkh_Sandboxsuperadmin00000000000004PLiga',
  owner: 'dkh_Sandboxowner0000000000000000003oL0SF',
  member: 'dkh_Sandboxmember000000000000000003dHOk9',
  viewer: 'dkh_Sandboxviewer000000000000000003PJFXy',
  outsider: 'dkh_Sandboxoutsider0000000000000000bYfWO',
  service: 'dkh_Sandboxservice00000000000000000W1B8C',
};

export const CARDS = '/operations/v1/operations/cards';
export const BOARDS = '/operations/v1/operations/boards';

export const titlesOf = async ({ call }: ReturnType<typeof callerOf>) =>
  (await call(`${CARDS}/list`, { limit: 200 })).body.data.cards.map(({ title }: { title: string }) => title);

/** A receiver of webhooks on this machine, and the webhook of project 1 that calls it. */
export async function givenReceiver({ call }: ReturnType<typeof callerOf>) {
  const received: { id: string; type: string; data: { subject_id: number; data: object } }[] = [];
  const { url, remove } = await givenWebhookReceiver(({ id, body }, response) => {
    const { type, data } = JSON.parse(body);
    received.push({ id, type, data });
    response.writeHead(204).end();
  });
  const { status } = await call('/platforms/v1/webhooks/create', { project_id: 1, url: `${url}/` }, 'owner');
  if (status !== 201) throw new Error(`The webhook was not created: ${status}.`);
  // The first event tells of the webhook itself.
  await expect.poll(() => received.splice(0).length).toBe(1);
  return { received, close: remove };
}

export const givenSandbox = async (options?: Parameters<typeof startSandbox>[0]) => {
  const sandbox: Sandbox = await startSandbox(options);
  return { sandbox, ...callerOf(sandbox.url) };
};
