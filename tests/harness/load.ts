import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/** Sends requests over keep-alive sockets, in loops or at a steady rate, checks their statuses, and times the answers. */

/** A GET without a body. */
export type LoadRequest = { path: string; body?: string; token?: string | undefined; headers?: Record<string, string> };

export type Load = { requestsPerSecond: number; p50: number; p99: number; count: number };

export type Answer = { status: number; milliseconds: number };

export type Connection = {
  /** Sends its request, or another one, waits for the whole answer, and returns the milliseconds that it took. Fails with an unexpected status. */
  send: (request?: Buffer) => Promise<number>;
  /** The same with any status. */
  ask: (request?: Buffer) => Promise<Answer>;
  close: () => void;
};

/** The bytes of a request, built once. */
export function bytesOf(url: string, { path, body, token, headers = {} }: LoadRequest): Buffer {
  const all: Record<string, string | number> = { Host: new URL(url).host, ...headers };
  if (token !== undefined) all.Authorization = `Bearer ${token}`;
  if (body !== undefined)
    Object.assign(all, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) });
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`${body === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body ?? ''}`);
}

/** Repeats each request on its own connection, sending again as soon as the answer has arrived. */
export async function load(url: string, requests: LoadRequest[], expected: number, seconds: number): Promise<Load> {
  const connections = await Promise.all(requests.map((request) => open(url, request, expected)));
  const begun = performance.now();
  const end = begun + seconds * 1000;
  const repeat = async ({ send }: Connection) => {
    const times: number[] = [];
    while (performance.now() < end) times.push(await send());
    return times;
  };
  const times = (await Promise.all(connections.map(repeat))).flat();
  const took = performance.now() - begun;
  closeAll(connections);
  const [p50, p99] = percentiles(times, 0.5, 0.99) as [number, number];
  return { count: times.length, requestsPerSecond: (times.length / took) * 1000, p50, p99 };
}

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

export const openMany = (count: number, url: string, request: LoadRequest, ...expected: number[]) =>
  Promise.all(Array.from({ length: count }, () => open(url, request, ...expected)));

export const closeAll = (connections: Connection[]) => {
  for (const { close } of connections) close();
};

/** A request on a connection of its own. */
export async function askOnce(url: string, request: LoadRequest): Promise<Answer> {
  const { ask, close } = await open(url, request);
  return ask().finally(close);
}

/** A keep-alive connection, opened again if the service has closed it while idle. Uses a plain socket, since CPU time spent here is missing for the service. */
export async function open(url: string, request: LoadRequest, ...expected: number[]): Promise<Connection> {
  const own = bytesOf(url, request);
  let pending: { resolve: (head: string) => void; reject: (error: Error) => void } | undefined;
  const fail = (message: string) => pending?.reject(new Error(message));
  const connected = async () => {
    const socket = await openSocket(url);
    socket.on('error', ({ message }) => fail(message));
    socket.on('close', () => fail('The connection was closed.'));
    readAnswers(socket, (head) => pending?.resolve(head), fail);
    return socket;
  };
  let socket = await connected();

  const ask = async (bytes = own): Promise<Answer & { head: string }> => {
    const begun = performance.now();
    if (socket.destroyed || socket.readableEnded) socket = await connected();
    const head = await new Promise<string>((resolve, reject) => {
      pending = { resolve, reject };
      socket.write(bytes);
    });
    pending = undefined;
    return { status: Number(head.slice(9, 12)), milliseconds: performance.now() - begun, head };
  };
  return {
    ask,
    send: async (bytes) => {
      const { status, milliseconds, head } = await ask(bytes);
      if (!expected.includes(status)) throw new Error(`${status} instead of ${expected.join(' or ')}: ${head}`);
      return milliseconds;
    },
    close: () => {
      pending = undefined;
      socket.destroy();
    },
  };
}

/** Tells the beginning of each answer once all of it has arrived; bodies are skipped. */
function readAnswers(socket: Socket, onAnswer: (head: string) => void, onError: (message: string) => void): void {
  let begun: Buffer | undefined;
  let head = '';
  let missing = 0;
  socket.on('data', (part) => {
    if (missing > 0) missing -= part.length;
    else {
      begun = begun ? Buffer.concat([begun, part]) : part;
      const bodyAt = begun.indexOf('\r\n\r\n') + 4;
      if (bodyAt === 3) return;
      head = begun.toString('latin1', 0, Math.min(2000, begun.length));
      const length = /\r\ncontent-length: (\d+)/i.exec(head.slice(0, bodyAt))?.[1];
      if (length === undefined) return onError(`An answer without Content-Length: ${head}`);
      missing = Number(length) - (begun.length - bodyAt);
      begun = undefined;
    }
    if (missing === 0) onAnswer(head);
  });
}

function openSocket(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const opened = connect(Number(port), hostname, () => resolve(opened));
    opened.setNoDelay(true).once('error', reject);
  });
}

/** Values below which these shares of all are. */
export function percentiles(values: ArrayLike<number>, ...shares: number[]): number[] {
  const sorted = Float64Array.from(values).sort();
  return shares.map((share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN);
}

export function median(values: number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
