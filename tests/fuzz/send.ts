import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { gunzipSync } from 'node:zlib';
import type { FuzzRequest, SocketRequest } from './request.ts';

export type FuzzAnswer = { status: number; headers: Headers; text: string; milliseconds: number };

export type Sender = {
  send: (request: FuzzRequest) => Promise<FuzzAnswer>;
  /** The answers to raw bytes; empty if the connection is closed without one. */
  sendBytes: (request: SocketRequest) => Promise<FuzzAnswer[]>;
  close: () => void;
};

const LONGEST_WAIT_MILLISECONDS = 20_000;

/** Sends over keep-alive connections from a separate address, so that failed sign-ins of others do not count against it. */
export function makeSender(url: string, localAddress: string, connections: number): Sender {
  const { hostname: host, port } = new URL(url);
  const agent = new Agent({ keepAlive: true, maxSockets: connections, localAddress } as object);
  const latest = new WeakMap<object, FuzzRequest>();

  return {
    send: (request) =>
      new Promise((resolve, reject) => {
        const { method, path, headers, body, isChunked } = request;
        const begun = performance.now();
        const framing = isChunked ? ['transfer-encoding', 'chunked'] : ['content-length', String(body?.length)];
        const sent = httpRequest({
          host,
          port,
          agent,
          method,
          path,
          timeout: LONGEST_WAIT_MILLISECONDS,
          headers: [['host', `${host}:${port}`], ...headers, ...(body ? [framing] : [])].flat() as any,
        });
        let before: FuzzRequest | undefined;
        sent.on('socket', (socket) => {
          before = latest.get(socket);
          latest.set(socket, request);
        });
        sent.on('response', async (response) => {
          const text = await textOf(response);
          const milliseconds = performance.now() - begun;
          const status = response.statusCode!;
          resolve({ status, headers: headersOf(response.rawHeaders), text, milliseconds });
        });
        sent.on('upgrade', (_response, socket) => {
          socket.destroy();
          reject(new Error('The connection was upgraded.'));
        });
        sent.on('timeout', () => sent.destroy(new Error('No answer came.')));
        sent.on('error', ({ message }) => {
          const after = before && `; on the same connection before: ${before.method} ${before.path} (${before.kind})`;
          reject(new Error(`${message}${after ?? ''}`));
        });
        sent.end(body);
      }),

    sendBytes: ({ bytes, answers }) =>
      new Promise((resolve, reject) => {
        const begun = performance.now();
        const received: Buffer[] = [];
        const socket = connect({ host, port: Number(port), localAddress });
        const end = () => {
          socket.destroy();
          const text = Buffer.concat(received).toString('latin1');
          resolve(readAnswers(text, performance.now() - begun));
        };
        socket.setTimeout(LONGEST_WAIT_MILLISECONDS, () => socket.destroy(new Error('No answer came.')));
        socket.on('connect', () => socket.write(bytes, () => answers === 0 && end()));
        socket.on('data', (chunk) => {
          received.push(chunk);
          if (readAnswers(Buffer.concat(received).toString('latin1'), 0).length >= answers) end();
        });
        socket.on('close', end);
        socket.on('error', (error) => (received.length > 0 ? end() : reject(error)));
      }),

    close: () => agent.destroy(),
  };
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of response) chunks.push(chunk);
  } catch (error) {
    return `The answer was cut off: ${error}`;
  }
  const bytes = Buffer.concat(chunks);
  return (response.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString();
}

function headersOf(raw: string[]): Headers {
  const headers = new Headers();
  for (let at = 0; at < raw.length; at += 2) headers.append(raw[at]!, raw[at + 1]!);
  return headers;
}

const LAST_CHUNK = '\r\n0\r\n\r\n';

/** The complete answers in what a socket received. */
function readAnswers(text: string, milliseconds: number): FuzzAnswer[] {
  const answers: FuzzAnswer[] = [];
  for (let rest = text; rest.includes('\r\n\r\n'); ) {
    const [head] = rest.split('\r\n\r\n', 1) as [string];
    const [statusLine, ...lines] = head.split('\r\n') as [string, ...string[]];
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1]);
    const headers = headersOf(
      lines.flatMap((line) => [line.split(':', 1)[0]!, line.slice(line.indexOf(':') + 1).trim()]),
    );
    const begin = head.length + 4;
    const length = headers.get('content-length');
    // Without a length the body is chunked, and is not decoded.
    const end = length === null ? rest.indexOf(LAST_CHUNK, begin - 2) + LAST_CHUNK.length : begin + Number(length);
    if (rest.length < end || end < begin) break;
    if (status !== 100) answers.push({ status, headers, text: rest.slice(begin, end), milliseconds });
    rest = rest.slice(end);
  }
  return answers;
}
