import { Agent, createServer, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export type ProxiedAnswer = { status: number; headers: IncomingHttpHeaders; body: string };
export type ProxiedRequest = { url: string; body: string };

/** Changes answers to a path, such as those with one status. */
export type Fault = {
  /** `*` for all paths. */
  path: string;
  method?: string;
  /** Only answers with this status. */
  status?: number;
  /** Sends the request to another path. */
  leadsTo?: string;
  /** A header of the request that is lost on the way. */
  loses?: string;
  /** Changes the body of the request. */
  sends?: (body: string) => string;
  answer?: (answer: ProxiedAnswer, sent: ProxiedRequest) => Partial<ProxiedAnswer>;
  /** Never sends the answer, or only the headers of a stream, or of a stream only the first piece. */
  holds?: 'answer' | 'body' | 'events';
  /** Ends a stream after its second piece, as a limit for the length of an answer does. */
  endsStream?: boolean;
};

/** A proxy in front of a service that plants faults. */
export async function givenFaultyProxy(serviceUrl: string, faults: Fault[]) {
  const agent = new Agent({ keepAlive: true });
  // Without a limit for idle connections: on a busy machine, the check would use one that is just being closed.
  const server = createServer({ keepAliveTimeout: 0 }, async (received, response) => {
    const { method = 'GET', url = '/' } = received;
    const path = url.split('?', 1)[0];
    const own = faults.filter((fault) => ['*', path].includes(fault.path) && (fault.method ?? method) === method);
    const body = own.reduce((sent, { sends }) => sends?.(sent) ?? sent, await text(received));
    const headers = { ...received.headers };
    for (const { loses } of own) if (loses) delete headers[loses];
    // It was counted before the body was changed.
    if (headers['content-length'] !== undefined) headers['content-length'] = String(Buffer.byteLength(body));
    const target = own.find(({ leadsTo }) => leadsTo)?.leadsTo ?? url;
    const forwarded = await forward(agent, serviceUrl + target, method, headers, body).catch(() => undefined);
    // The proxy was closed meanwhile.
    if (!forwarded) return void response.destroy();
    const { source, abort } = forwarded;
    response.once('close', abort);
    const held = own.find(({ holds }) => holds)?.holds;
    if (held === 'answer') return;

    const isStream = source.headers['content-type']?.startsWith('text/event-stream');
    let answer = { status: source.statusCode!, headers: source.headers, body: isStream ? '' : await text(source) };
    for (const { status, answer: change } of own) {
      if (change && (status ?? answer.status) === answer.status)
        answer = { ...answer, ...change(answer, { url, body }) };
    }
    const { 'content-length': _, 'transfer-encoding': __, 'content-encoding': ___, ...others } = answer.headers;
    response.writeHead(answer.status, others as Record<string, string>);
    if (!isStream) return void response.end(answer.body);
    response.flushHeaders();
    const isEnded = own.some(({ endsStream }) => endsStream);
    let pieces = 0;
    source.on('data', (piece) => {
      pieces++;
      if (!held || (held === 'events' && pieces === 1)) response.write(piece);
      if (isEnded && pieces === 2) abort();
    });
    source.once('close', () => response.end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.close();
      server.closeAllConnections();
      agent.destroy();
    },
  };
}

const forward = (agent: Agent, address: string, method: string, headers: IncomingHttpHeaders, body: string) =>
  new Promise<{ source: IncomingMessage; abort: () => void }>((resolve, reject) => {
    // Compressed answers could not be changed.
    const sent = { ...headers, 'accept-encoding': 'identity' };
    const call = request(address, { agent, method, headers: sent }, (source) => {
      source.on('error', () => undefined);
      resolve({ source, abort: () => call.destroy() });
    });
    call.on('error', reject).end(body);
  });
