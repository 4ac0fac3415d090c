import { isUtf8 } from 'node:buffer';
import { setTimeout as pause } from 'node:timers/promises';

/** The service, and who calls it. */
export type Target = { url: string; token: string; projectId?: number | undefined };

export type Sent = {
  method?: string;
  path: string;
  body?: string | undefined;
  headers?: Record<string, string>;
  /** Whether it is sent without the key. */
  isAnonymous?: boolean;
  /** How long the answer may take; that of a stream, its first bytes. */
  withinSeconds?: number;
};

export type Answer = { status: number; headers: Headers; text: string; isUtf8?: boolean };

/** Sends a request. Throws if there is no answer. */
export type Send = (sent: Sent) => Promise<Answer>;

type Options = {
  signal?: AbortSignal | undefined;
  /** Called with each 429, which is waited for and not returned, and for how long. */
  onLimited?: (sent: Sent, answer: Answer, seconds: number) => void;
};

export function senderTo({ url, token, projectId }: Target, { signal, onLimited }: Options = {}): Send {
  return async (sent) => {
    const { method = 'POST', path, body, headers, isAnonymous = false, withinSeconds = LONGEST_CALL_SECONDS } = sent;
    for (let attempt = 1; ; attempt++) {
      signal?.throwIfAborted();
      const response = await fetch(url + path, {
        method,
        body: body ?? null,
        redirect: 'manual',
        signal: AbortSignal.any([AbortSignal.timeout(withinSeconds * 1000), ...(signal ? [signal] : [])]),
        headers: {
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(projectId !== undefined && !isAnonymous && { 'x-project-id': String(projectId) }),
          ...(!isAnonymous && { authorization: `Bearer ${token}` }),
          ...headers,
        },
      });
      const answer = await read(response);
      const seconds = Number(answer.headers.get('retry-after') ?? Number.NaN);
      if (answer.status !== 429 || Number.isNaN(seconds) || attempt === MOST_ATTEMPTS) return answer;
      const waited = Math.min(seconds, LONGEST_PAUSE_SECONDS);
      onLimited?.(sent, answer, waited);
      await pause(waited * 1000, undefined, signal && { signal });
    }
  };
}

const LONGEST_CALL_SECONDS = 30;
export const LONGEST_PAUSE_SECONDS = 90;
const MOST_ATTEMPTS = 6;

/** A stream has no end: only its begin is read. */
async function read(response: Response): Promise<Answer> {
  const { status, headers } = response;
  if (headers.get('content-type')?.startsWith('text/event-stream')) {
    const reader = response.body!.getReader();
    const { value } = await reader.read();
    await reader.cancel();
    return { status, headers, text: new TextDecoder().decode(value) };
  }
  const bytes = Buffer.from(await response.arrayBuffer());
  return { status, headers, text: bytes.toString(), isUtf8: isUtf8(bytes) };
}

/** Works on a few elements at once, in their order. */
export async function inTurns<Element>(elements: Iterable<Element>, work: (element: Element) => Promise<void>) {
  const left = elements[Symbol.iterator]();
  const worker = async () => {
    for (let next = left.next(); !next.done; next = left.next()) await work(next.value);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
const AT_ONCE = 4;

/** The cause of a failed `fetch` says more than its message. */
export function failureOf({ message, cause }: Error): string {
  const { code, message: why } = (cause ?? {}) as { code?: string; message?: string };
  return code ?? why ?? message;
}
