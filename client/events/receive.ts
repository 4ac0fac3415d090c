import type { ChangeEvent, HandlerOptions } from './event.ts';
import { makeHandle } from './handle.ts';
import { makeSignatureCheck } from './signature.ts';

/** Which messages are taken, and what to do with them. */
export type ReceiveOptions<Transaction> = HandlerOptions<Transaction> & {
  /** The secret of the webhook (`whsec_…`), or several: the old and the new one while you rotate, or those of several webhooks. */
  secret: string | readonly string[];
  /** How old or how far in the future a message may be. Default: 300. */
  toleranceSeconds?: number | undefined;
  /** The maximum size of a message. Default: 262,144. Messages of Deckhand have less than 20,000 bytes. */
  maxBytes?: number | undefined;
};

/** Answers the messages of a webhook, where requests are `Request`. */
export type WebhookReceiver = ((request: Request) => Promise<Response>) & {
  /** The same for Node's own server, and for Express: `createServer(receiver.node)`. */
  node: (request: NodeRequest, response: NodeResponse) => Promise<void>;
};

/** An `IncomingMessage` of Node. */
export type NodeRequest = AsyncIterable<Uint8Array> & {
  /** The method. */
  method?: string | undefined;
  /** The headers, with names in lower case. */
  headers: Record<string, string | string[] | undefined>;
};

/** A `ServerResponse` of Node. */
export type NodeResponse = {
  /** Sends the status. */
  writeHead: (status: number, headers?: Record<string, string>) => unknown;
  /** Sends the body. */
  end: (text?: string) => unknown;
};

/**
 * Receives the messages of a webhook. Checks signature, age and size, drops repeats, keeps the order of each row, and calls the
 * handler of the event. The answer is sent after the handler, so a handler has 15 seconds. If a handler throws, the answer is a 500, and
 * Deckhand sends the event again.
 */
export function receiveWebhooks<Transaction = undefined>(options: ReceiveOptions<Transaction>): WebhookReceiver {
  const { secret, toleranceSeconds = 300, maxBytes = 262_144 } = options;
  const isSigned = makeSignatureCheck(typeof secret === 'string' ? [secret] : secret);
  const handle = makeHandle(options);

  async function answer(method: string | undefined, header: HeaderOf, chunks: Chunks): Promise<Answer> {
    if (method !== 'POST') return [405, 'Webhooks are sent by POST.'];
    // A stream that is left in the middle closes its connection, so the header is read first.
    const body = Number(header('content-length')) > maxBytes ? undefined : await readBody(chunks, maxBytes);
    if (!body) return [413, `The message has more than ${maxBytes} bytes.`];

    const timestamp = header('webhook-timestamp') ?? '';
    const signed = { id: header('webhook-id') ?? '', timestamp, signatures: header('webhook-signature') ?? '' };
    // The age is checked afterwards: whoever can't sign learns nothing of the clock.
    if (!(await isSigned(signed, body))) return [401, 'The signature is missing or wrong.'];
    const ageSeconds = Math.abs(Date.now() / 1000 - Number(timestamp));
    if (!(ageSeconds <= toleranceSeconds)) return [401, 'The message is too old, or a clock is wrong.'];

    const event = readEvent(new TextDecoder().decode(body));
    if (event === undefined) return [400, 'The message has no event.'];
    try {
      if (event !== 'test') await handle(event);
      return [204];
    } catch {
      return [500, 'The handler failed.'];
    }
  }

  const receive = async (request: Request) => {
    const chunks = request.body ? chunksOf(request.body) : [];
    const [status, text] = await answer(request.method, (name) => request.headers.get(name), chunks);
    return new Response(text ?? null, { status });
  };
  const node = async (request: NodeRequest, response: NodeResponse) => {
    const header = (name: string) => request.headers[name]?.toString();
    const [status, text] = await answer(request.method, header, request).catch(
      (error: Error): Answer => [400, `The body can't be read: ${error.message}`],
    );
    response.writeHead(status);
    response.end(text);
  };
  return Object.assign(receive, { node });
}

type Answer = [status: number, text?: string];
type HeaderOf = (name: string) => string | null | undefined;
type Chunks = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

/** Undefined if the body is too large; the rest is not read. */
async function readBody(chunks: Chunks, maxBytes: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const read: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.length;
    if (length > maxBytes) return undefined;
    read.push(chunk);
  }
  return new Uint8Array(await new Blob(read as BlobPart[]).arrayBuffer());
}

/** Not every runtime can iterate over a stream. */
async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/** The message of `webhooks.sendTest`, which is no event. */
const TEST_TYPE = 'webhook.test';

function readEvent(text: string): ChangeEvent | 'test' | undefined {
  try {
    const { type, data } = JSON.parse(text);
    if (type === TEST_TYPE) return 'test';
    if (typeof data.id !== 'string' || typeof data.type !== 'string') return undefined;
    const created_at = new Date(data.created_at);
    return Number.isNaN(created_at.getTime()) ? undefined : { ...data, created_at };
  } catch {
    return undefined;
  }
}
