import { connect, type Socket } from 'node:net';

export type Load = { requestsPerSecond: number; p50: number; p99: number; count: number };

export type LoadRequest = { path: string; body: string; token?: string };

/** The bytes of a request, built once. */
export function bytesOf(url: string, { path, body, token }: LoadRequest): Buffer {
  const authorization = token === undefined ? '' : `Authorization: Bearer ${token}\r\n`;
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nHost: ${new URL(url).host}\r\n${authorization}` +
      `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/**
 * Repeats each request on its own keep-alive connection, sending again as soon as the answer has arrived. Uses plain sockets,
 * since CPU time spent here is missing for the service. Throws on an unexpected status.
 */
export async function load(url: string, requests: LoadRequest[], expected: number, seconds: number): Promise<Load> {
  const connections = await Promise.all(requests.map(async (request) => open(url, bytesOf(url, request), expected)));
  const begun = performance.now();
  const end = begun + seconds * 1000;
  const times = await Promise.all(connections.map((connection) => connection.repeatUntil(end)));
  const took = performance.now() - begun;
  for (const { close } of connections) close();

  const sorted = Float64Array.from(times.flat()).sort();
  return {
    count: sorted.length,
    requestsPerSecond: (sorted.length / took) * 1000,
    p50: percentile(sorted, 0.5),
    p99: percentile(sorted, 0.99),
  };
}

export const percentile = (sorted: ArrayLike<number>, share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;

export type Connection = {
  /** Sends the request, waits for the whole answer, and returns the milliseconds that it took. */
  send: () => Promise<number>;
  repeatUntil: (end: number) => Promise<number[]>;
  close: () => void;
};

/** A keep-alive connection that repeats one request. */
export async function open(url: string, request: Buffer, expected: number): Promise<Connection> {
  const { hostname, port } = new URL(url);
  const socket = await new Promise<Socket>((resolve, reject) => {
    const opened = connect(Number(port), hostname, () => resolve(opened));
    opened.setNoDelay(true).once('error', reject);
  });
  let pending: { resolve: () => void; reject: (error: Error) => void } | undefined;
  const fail = (message: string) => pending?.reject(new Error(message));
  socket.on('error', ({ message }) => fail(message));
  socket.on('close', () => fail('The connection was closed.'));

  let head: Buffer | undefined;
  let missing = 0;
  socket.on('data', (part) => {
    if (missing > 0) missing -= part.length;
    else {
      head = head ? Buffer.concat([head, part]) : part;
      const bodyAt = head.indexOf('\r\n\r\n') + 4;
      if (bodyAt === 3) return;
      const text = head.toString('latin1', 0, bodyAt);
      const status = text.slice(9, 12);
      const length = /\r\ncontent-length: (\d+)/i.exec(text)?.[1];
      if (status !== String(expected))
        return fail(`${status} instead of ${expected}: ${head.toString('latin1', 0, 2000)}`);
      if (length === undefined) return fail('An answer without Content-Length.');
      missing = Number(length) - (head.length - bodyAt);
      head = undefined;
    }
    if (missing === 0) pending!.resolve();
  });

  const send = async () => {
    const begun = performance.now();
    await new Promise<void>((resolve, reject) => {
      pending = { resolve, reject };
      if (socket.closed) fail('The connection was closed.');
      socket.write(request);
    });
    return performance.now() - begun;
  };
  return {
    send,
    repeatUntil: async (end) => {
      const times: number[] = [];
      while (performance.now() < end) times.push(await send());
      return times;
    },
    close: () => {
      pending = undefined;
      socket.destroy();
    },
  };
}
