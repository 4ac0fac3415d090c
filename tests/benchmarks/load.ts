import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

export type Load = { requestsPerSecond: number; p50: number; p99: number; count: number };

/** A GET without a body. */
export type LoadRequest = { path: string; body?: string; token?: string };

/** The bytes of a request, built once. */
export function bytesOf(url: string, { path, body, token }: LoadRequest): Buffer {
  const authorization = token === undefined ? '' : `Authorization: Bearer ${token}\r\n`;
  const head = `${path} HTTP/1.1\r\nHost: ${new URL(url).host}\r\n${authorization}`;
  if (body === undefined) return Buffer.from(`GET ${head}\r\n`);
  return Buffer.from(
    `POST ${head}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
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

/** Sends at a steady rate, without waiting for answers; returns how long each took since it was due. */
export async function sendSteadily(idle: Connection[], perSecond: number, seconds: number): Promise<number[]> {
  const begun = performance.now();
  const times: Promise<number>[] = [];
  for (let number = 0; number < seconds * perSecond; number++) {
    const due = begun + (number * 1000) / perSecond;
    await pause(Math.max(0, due - performance.now()));
    const answered = sendOnce(idle, due);
    // A failure is thrown by Promise.all below.
    answered.catch(() => undefined);
    times.push(answered);
  }
  return Promise.all(times);
}

async function sendOnce(idle: Connection[], due: number): Promise<number> {
  // The one idle for longest, since the service closes idle connections.
  const connection = idle.shift();
  if (!connection) throw new Error('More requests wait than there are connections.');
  await connection.send();
  idle.push(connection);
  return performance.now() - due;
}

/** Repeats each of the tasks until the work is done. */
export async function whileRepeating<Result>(
  tasks: (() => Promise<unknown>)[],
  work: () => Promise<Result>,
): Promise<Result> {
  let isOver = false;
  const repeating = tasks.map(async (task) => {
    while (!isOver) await task();
  });
  const working = work().finally(() => {
    isOver = true;
  });
  const [result] = await Promise.all([working, ...repeating]);
  return result;
}

export type Connection = {
  /** Sends the request, waits for the whole answer, and returns the milliseconds that it took. */
  send: () => Promise<number>;
  repeatUntil: (end: number) => Promise<number[]>;
  close: () => void;
};

/** A keep-alive connection that repeats one request; other statuses than the expected ones fail. */
export async function open(url: string, request: Buffer, ...expected: number[]): Promise<Connection> {
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
      const status = Number(text.slice(9, 12));
      const length = /\r\ncontent-length: (\d+)/i.exec(text)?.[1];
      if (!expected.includes(status))
        return fail(`${status} instead of ${expected.join(' or ')}: ${head.toString('latin1', 0, 2000)}`);
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
