import fc from 'fast-check';
import { LARGEST_BODY_BYTES } from '../../shared/limits.ts';
import { faultsOf, socketFaultsOf } from './check.ts';
import { anyRequest, cheapRequest, type Draft, type FuzzRequest, type SocketRequest } from './request.ts';
import { type FuzzAnswer, makeSender, type Sender } from './send.ts';
import type { FuzzWorld } from './world.ts';

export type Finding = { request: FuzzRequest | SocketRequest; answer: FuzzAnswer | undefined; faults: string[] };

export type FuzzReport = {
  /** How often each status was answered, by surface and kind. */
  counts: Map<string, Map<number | string, number>>;
  slowest: { milliseconds: number; label: string }[];
  findings: Finding[];
  sent: number;
  /** How many were slow and were sent again alone. */
  repeated: number;
};

type FuzzOptions = {
  world: FuzzWorld;
  seed: number;
  requests: number;
  concurrency: number;
  /** The source address, since failed sign-ins count per address. */
  localAddress?: string;
  slowestAllowedMilliseconds?: number;
  drafts?: Iterator<Draft>;
  onProgress?: (report: FuzzReport) => Promise<void> | void;
};

/** After so many requests, callers are restored and progress is reported. */
const ROUND = 1000;
const SLOWEST_KEPT = 10;

/** Sends random requests, several at a time, and reports the results. */
export async function fuzz(options: FuzzOptions): Promise<FuzzReport> {
  const { world, seed, requests, concurrency, localAddress = '127.0.0.1', onProgress } = options;
  const { slowestAllowedMilliseconds: slowestAllowed = Number.POSITIVE_INFINITY } = options;
  const report: FuzzReport = { counts: new Map(), slowest: [], findings: [], sent: 0, repeated: 0 };
  const slow: (FuzzRequest | SocketRequest)[] = [];
  const sender = makeSender(world.url, localAddress, concurrency);
  const drafts = options.drafts ?? makeDrafts(seed);

  for (let left = requests; left > 0; left -= ROUND) {
    let open = Math.min(left, ROUND);
    const work = async () => {
      while (open-- > 0) await one(drafts.next().value(world));
    };
    await Promise.all(Array.from({ length: concurrency }, work));
    for (const request of slow.splice(0)) await repeatAlone(request);
    if (left > ROUND) await world.restore();
    await onProgress?.(report);
  }
  sender.close();
  return report;

  async function one(request: FuzzRequest | SocketRequest) {
    const { answer, faults } = await attempt(sender, request);
    report.sent++;
    record(report, request, answer);
    if (answer && answer.milliseconds > slowestAllowed) slow.push(request);
    if (faults.length > 0) report.findings.push({ request, answer, faults });
    if (request.surface !== 'socket' && answer) await keepBounded(request, answer);
  }

  /** A slow request may have waited for others or for a busy machine; it is a fault only if it is also slow alone. */
  async function repeatAlone(request: FuzzRequest | SocketRequest) {
    report.repeated++;
    let answer: FuzzAnswer | undefined;
    for (let attempts = 0; attempts < 3; attempts++) {
      answer = (await attempt(sender, request)).answer;
      if (answer && answer.milliseconds <= slowestAllowed) return;
    }
    report.findings.push({ request, answer, faults: [`It takes ${Math.round(answer?.milliseconds ?? 0)} ms alone.`] });
  }

  /** Remembers created rows, and deletes those that drop out of the pool. */
  async function keepBounded(request: FuzzRequest, answer: FuzzAnswer) {
    for (const [operation, result] of resultsOf(request, answer)) {
      const forgotten = world.learn(operation, result);
      if (forgotten) await sender.send(deletionOf(forgotten, world)).catch(() => {});
    }
  }
}

/** The same for the same seed, except for ids and tokens. */
function* makeDrafts(seed: number): Generator<Draft, never> {
  // Multiplied, so that runs with neighbouring seeds share no rounds.
  for (let round = Math.imul(seed, 0x9e3779b1); ; round = (round + 1) | 0) {
    yield* fc.sample(anyRequest, { seed: round, numRuns: 100 });
  }
}

/** Repeats the same few thousand requests, since generating them would cost more than answering them. */
export function* makeLoad(seed: number): Generator<Draft, never> {
  const drafts = fc.sample(cheapRequest, { seed, numRuns: 5000 });
  for (;;) yield* drafts;
}

async function attempt(sender: Sender, request: FuzzRequest | SocketRequest) {
  try {
    if (request.surface === 'socket') {
      const answers = await sender.sendBytes(request);
      return { answer: answers[0], faults: socketFaultsOf(request, answers) };
    }
    const answer = await sender.send(request);
    return { answer, faults: faultsOf(request, answer) };
  } catch (error) {
    // A body that is too large is refused before it is fully read, so the answer can get lost.
    const isTooLarge = request.surface !== 'socket' && (request.body?.length ?? 0) > LARGEST_BODY_BYTES;
    return { answer: undefined, faults: isTooLarge ? [] : [`There is no answer: ${(error as Error).message}`] };
  }
}

function record({ counts, slowest }: FuzzReport, request: FuzzRequest | SocketRequest, answer: FuzzAnswer | undefined) {
  const kind = `${request.surface} ${request.kind.split(':', 1)[0]}`;
  const statuses = counts.get(kind) ?? new Map();
  const status = answer?.status ?? 'none';
  counts.set(kind, statuses.set(status, (statuses.get(status) ?? 0) + 1));

  if (!answer) return;
  const { milliseconds } = answer;
  if (slowest.length === SLOWEST_KEPT && milliseconds <= slowest.at(-1)!.milliseconds) return;
  const called = [...new Set(request.operations)].slice(0, 3).join(',').slice(0, 80);
  slowest.push({ milliseconds, label: `${request.surface} ${called} (${request.kind}): ${status}` });
  slowest.sort((one, other) => other.milliseconds - one.milliseconds).splice(SLOWEST_KEPT);
}

function resultsOf({ surface, operations }: FuzzRequest, { status, text }: FuzzAnswer): [string, unknown][] {
  if (status >= 300 || operations.length === 0 || surface === 'other' || !/^[{[]/.test(text)) return [];
  const body = JSON.parse(text);
  if (surface === 'rest') return [[operations[0]!, body.data]];
  return [body].flat().map((reply, at) => [operations[at]!, reply.result?.data?.json]);
}

function deletionOf({ operation, id }: { operation: string; id: number }, { tokens }: FuzzWorld): FuzzRequest {
  return {
    surface: 'rpc',
    kind: 'valid',
    operations: [operation],
    method: 'POST',
    path: `/trpc/${operation}`,
    headers: [
      ['content-type', 'application/json'],
      ['authorization', `Bearer ${tokens.superadmin}`],
    ],
    body: Buffer.from(JSON.stringify({ json: { id } })),
    isChunked: false,
  };
}
