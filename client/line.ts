import { type Call, takeBatch } from './call.ts';
import type { Quota, WithMeta } from './calls.ts';
import type { DeckhandError } from './errors.ts';
import { tellOfRetry } from './hooks.ts';
import { makePace } from './pace.ts';
import { isSafeToRepeat } from './repeat.ts';
import { isOverLimit, millisecondsBefore } from './retry.ts';
import { pause, untilAborted } from './timeOut.ts';

/** The outcome of each call of a batch, and the rate limit headers. */
export type BatchResult = { outcomes: Outcome[]; quota?: Quota | undefined };
export type Outcome = { result: WithMeta<unknown> } | { error: DeckhandError };

type LineOptions = {
  largestBatch: number;
  maxInFlight: number;
  /** With 0, calls are not retried and do not wait for the rate limit. */
  retries: number;
  send: (calls: Call[], signal: AbortSignal) => Promise<BatchResult>;
};

type Waiting = { call: Call; resolve: (result: WithMeta<unknown>) => void; reject: (error: unknown) => void };
type Failed = { waiting: Waiting; error: DeckhandError };

/** Queues calls, sends them in batches, and retries what failed and is safe to repeat. */
export function makeLine(options: LineOptions): (call: Call) => Promise<WithMeta<unknown>> {
  const { largestBatch, maxInFlight, retries, send } = options;
  const lanes = new Map<string, Waiting[]>();
  const pace = makePace(sendSoon);
  let inFlight = 0;
  let queued = 0;
  let isScheduled = false;

  return (call) =>
    new Promise((resolve, reject) => {
      call.signal.throwIfAborted();
      const waiting = { call, resolve, reject };
      const lane = lanes.get(laneOf(call)) ?? [];
      lane.push(waiting);
      lanes.set(laneOf(call), lane);
      enter(waiting);
      sendSoon();
    });

  function enter({ call }: Waiting): void {
    call.stopwatch.rest();
    call.signal.addEventListener('abort', giveUp);
    queued++;
  }

  function leave({ call }: Waiting): void {
    call.signal.removeEventListener('abort', giveUp);
    call.stopwatch.run();
    giveUp();
  }

  /** Stops the timer when no call is queued, or it would keep the process alive. */
  function giveUp(): void {
    queued--;
    if (queued === 0) pace.wake();
  }

  /** In the next turn of the event loop, so that calls made at once share a batch. */
  function sendSoon(): void {
    if (isScheduled || lanes.size === 0) return;
    isScheduled = true;
    setTimeout(sendWaiting);
  }

  function sendWaiting(): void {
    isScheduled = false;
    for (;;) {
      const [next] = lanes;
      if (!next) return;
      const allowed = retries > 0 ? pace.allowed() : Number.POSITIVE_INFINITY;
      const most = Math.min(largestBatch, maxInFlight - inFlight, allowed);
      if (most < 1) return;

      const [key, lane] = next;
      const batch = takeBatch(lane, most).filter(isWanted);
      // Moves the lane to the end: lanes take turns.
      lanes.delete(key);
      if (lane.length > 0) lanes.set(key, lane);
      batch.forEach(leave);
      void sendUntilSettled(batch);
    }
  }

  /** Never rejects. A batch counts as in flight during its retry pause, which relieves a service in trouble. */
  async function sendUntilSettled(taken: Waiting[]): Promise<void> {
    let batch = taken;
    inFlight += batch.length;
    for (let retry = 0; batch.length > 0; retry++) {
      const failed = await attempt(batch);
      const requeued = failed.filter((each) => retries > 0 && mustRequeue(each, batch.length));
      const retried = failed.filter((each) => !requeued.includes(each) && retry < retries && isRepeatable(each));
      for (const each of failed) {
        if (!requeued.includes(each) && !retried.includes(each)) each.waiting.reject(each.error);
      }
      requeue(requeued);
      release(batch.length - retried.length);
      if (retried.length === 0) return;

      await pauseBefore(retry, retried);
      batch = retried.map((each) => each.waiting).filter(isWanted);
      release(retried.length - batch.length);
    }
  }

  /** Resolves the calls that succeeded, and returns the others. */
  async function attempt(batch: Waiting[]): Promise<Failed[]> {
    pace.spend(batch.length);
    const calls = batch.map(({ call }) => call);
    const sent: Promise<BatchResult> = whileWanted(batch, (signal) => send(calls, signal));
    // Rejects only if every call was aborted.
    const { outcomes, quota } = await sent.catch((): BatchResult => ({ outcomes: [] }));
    pace.update(quota, inFlight - batch.length);
    return batch.flatMap((waiting, index) => {
      const outcome = outcomes[index];
      if (!outcome) return [];
      if ('error' in outcome) return { waiting, error: outcome.error };
      waiting.resolve(outcome.result);
      return [];
    });
  }

  /** To the front of their lane. */
  function requeue(failed: Failed[]): void {
    const [first] = failed;
    if (!first) return;
    const waiting = failed.map((each) => each.waiting);
    waiting.forEach(enter);
    for (const { waiting, error } of failed) tellOfRetry(waiting.call, error, (error.retryAfterSeconds ?? 0) * 1000);
    const key = laneOf(first.waiting.call);
    lanes.set(key, [...waiting, ...(lanes.get(key) ?? [])]);
    const errors = failed.map(({ error }) => error).filter(isOverLimit);
    if (errors.length > 0) pace.rest(errors);
  }

  function release(calls: number): void {
    inFlight -= calls;
    sendSoon();
  }
}

/** Calls of one lane can share a batch, which has one project and either queries or mutations. */
const laneOf = ({ kind, projectId, headers }: Call) => `${kind} ${projectId} ${JSON.stringify(headers)}`;

const isWanted = ({ call }: Waiting) => !call.signal.aborted;

const isRepeatable = ({ waiting, error }: Failed) => isWanted(waiting) && isSafeToRepeat(waiting.call, error);

/** Errors that are not about the call itself: sending it later is not a retry. */
const mustRequeue = ({ waiting, error }: Failed, calls: number) =>
  isWanted(waiting) && (isOverLimit(error) || (error.reason === 'batch_answers_too_large' && calls > 1));

/** One pause for the whole batch, so that its calls are sent together again. */
async function pauseBefore(retry: number, failed: Failed[]): Promise<void> {
  const waiting = failed.map((each) => each.waiting);
  const errors = failed.map(({ error }) => error);
  const milliseconds = millisecondsBefore(retry, errors);
  for (const { waiting, error } of failed) {
    waiting.call.stopwatch.wait();
    tellOfRetry(waiting.call, error, milliseconds);
  }
  // Rejects only if every call was aborted.
  await whileWanted(waiting, (signal) => pause(milliseconds, signal)).catch(() => undefined);
  for (const { call } of waiting) call.stopwatch.run();
}

/** Aborts the work when all of its calls are aborted. */
async function whileWanted<Result>(
  waiting: Waiting[],
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController();
  const check = () => {
    if (!waiting.some(isWanted)) controller.abort();
  };
  for (const { call } of waiting) call.signal.addEventListener('abort', check);
  try {
    return await untilAborted(work(controller.signal), controller.signal);
  } finally {
    for (const { call } of waiting) call.signal.removeEventListener('abort', check);
  }
}
