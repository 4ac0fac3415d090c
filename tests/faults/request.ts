import { Agent, type IncomingHttpHeaders, request } from 'node:http';

/** The result of one request on a keep-alive connection, without retries. */
export type Reply =
  | { status: number; headers: IncomingHttpHeaders; text: string; milliseconds: number }
  | { status?: undefined; code: string; milliseconds: number };

/** A request that takes longer counts as never answered. */
const LONGEST_WAIT_MILLISECONDS = 60_000;
export const NO_ANSWER = 'NO_ANSWER';

/** One connection at a time, like a worker of a caller. */
export const keepAlive = () => new Agent({ keepAlive: true, maxSockets: 1 });

export function post(
  url: string,
  agent: Agent,
  token: string | undefined,
  body: unknown,
  idempotencyKey?: string,
  more: Record<string, string> = {},
): Promise<Reply> {
  const begun = performance.now();
  const text = JSON.stringify(body);
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...(token && { authorization: `Bearer ${token}` }),
    ...(idempotencyKey && { 'idempotency-key': idempotencyKey }),
    ...more,
  };
  return new Promise((resolve) => {
    const passed = () => performance.now() - begun;
    const lose = (error: NodeJS.ErrnoException) => {
      clearTimeout(limit);
      resolve({ code: error.code ?? error.message, milliseconds: passed() });
    };
    const sent = request(url, { method: 'POST', agent, headers }, (response) => {
      let received = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        received += part;
      });
      response.on('error', lose);
      response.on('end', () => {
        clearTimeout(limit);
        const { statusCode: status, headers } = response;
        resolve({ status: status!, headers, text: received, milliseconds: passed() });
      });
    });
    const limit = setTimeout(
      () => sent.destroy(Object.assign(new Error(), { code: NO_ANSWER })),
      LONGEST_WAIT_MILLISECONDS,
    );
    sent.on('error', lose);
    sent.end(text);
  });
}
