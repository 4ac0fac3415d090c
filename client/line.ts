import { LARGEST_BODY_BYTES, MOST_BODY_FIELDS } from '../shared/limits.ts';
import type { Call } from './call.ts';
import type { DeckhandError } from './errors.ts';
import { makePace, type Quota } from './pace.ts';
import { isOverLimit, isSafeToRepeat, millisecondsBefore } from './retry.ts';
import { pause, untilAborted } from './timeOut.ts';

/** What became of each call of a request. */
export type Answered = { outcomes: Outcome[]; quota?: Quota | undefined };
export type Outcome = { result: unknown } | { error: DeckhandError };

type LineOptions = {
  largestBatch: number;
  maxInFlight: number;
  /** With 0, a call is never sent again, and does not wait for the rate limit either. */
  retries: number;
  send: (calls: Call[], signal: AbortSignal) => Promise<Answered>;
};

type Waiting = { call: Call; resolve: (result: unknown) => void; reject: (error: unknown) => void };
type Failed = { waiting: Waiting; error: DeckhandError };

/** Where calls wait for their turn. They are sent in batches, and what failed and is safe to repeat is sent again. */
export function makeLine({ largestBatch, maxInFlight, retries, send }: LineOptions): (call: Call) => Promise<unknown> {
  const lanes = new Map<string, Waiting[]>();
  const pace = makePace(sendSoon);
  let inFlight = 0;
  let wanted = 0;
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
    wanted++;
  }

  function leave({ call }: Waiting): void {
    call.signal.removeEventListener('abort', giveUp);
    call.stopwatch.run();
    giveUp();
  }

  /** Without a waiting call, no timer keeps the process alive. */
  function giveUp(): void {
    wanted--;
    if (wanted > 0) return;
    lanes.clear();
    pace.wake();
  }

  /** In the next turn of the event loop, so that calls made at once are sent together. */
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
      // To the end: lanes take turns.
      lanes.delete(key);
      if (lane.length > 0) lanes.set(key, lane);
      batch.forEach(leave);
      sendUntilSettled(batch);
    }
  }

  /** Never rejects. A batch keeps its place in flight while it waits for its retry: the service is in trouble. */
  async function sendUntilSettled(batch: Waiting[]): Promise<void> {
    inFlight += batch.length;
    for (let retry = 0; batch.length > 0; retry++) {
      const failed = await attempt(batch);
      const putBack = failed.filter((each) => retries > 0 && isPutOff(each, batch.length));
      const again = failed.filter((each) => !putBack.includes(each) && retry < retries && isRepeatable(each));
      for (const each of failed) if (!putBack.includes(each) && !again.includes(each)) each.waiting.reject(each.error);
      returnToLine(putBack);
      release(batch.length - again.length);
      if (again.length === 0) return;

      await pauseBefore(retry, again);
      batch = again.map((each) => each.waiting).filter(isWanted);
      release(again.length - batch.length);
    }
  }

  /** Settles the calls that succeeded, and returns the others. */
  async function attempt(batch: Waiting[]): Promise<Failed[]> {
    pace.spend(batch.length);
    const calls = batch.map(({ call }) => call);
    // Nobody waits any more if it rejects.
    const answered = await whileWanted(batch, (signal) => send(calls, signal)).catch(() => ({ outcomes: [] }));
    const { outcomes, quota }: Answered = answered;
    pace.hear(quota, inFlight - batch.length);
    return outcomes.flatMap((outcome, index) => {
      const waiting = batch[index]!;
      if ('error' in outcome) return { waiting, error: outcome.error };
      waiting.resolve(outcome.result);
      return [];
    });
  }

  /** To the front of their lane. */
  function returnToLine(failed: Failed[]): void {
    if (failed.length === 0) return;
    const waiting = failed.map((each) => each.waiting);
    waiting.forEach(enter);
    const key = laneOf(waiting[0]!.call);
    lanes.set(key, [...waiting, ...(lanes.get(key) ?? [])]);
    const errors = failed.map(({ error }) => error).filter(isOverLimit);
    if (errors.length > 0) pace.rest(errors);
  }

  function release(calls: number): void {
    inFlight -= calls;
    sendSoon();
  }
}

/** Calls that can share a request: it names at most one project, and has queries or mutations. */
const laneOf = ({ kind, projectId }: Call) => `${kind} ${projectId}`;

/** Takes calls from the front that fit into one request; one that is too large is taken alone, and refused by the service. */
function takeBatch(lane: Waiting[], most: number): Waiting[] {
  let [taken, bytes, fields] = [0, 2, 0];
  for (const { call } of lane) {
    bytes += call.input.bytes + ENVELOPE_BYTES;
    fields += call.input.fields + ENVELOPE_FIELDS;
    const isTooLarge = bytes > LARGEST_BODY_BYTES || fields > MOST_BODY_FIELDS;
    if (taken === most || (taken > 0 && isTooLarge)) break;
    taken++;
  }
  return lane.splice(0, taken);
}

/** `"49":` before the input of a call, and a comma behind it. */
const ENVELOPE_BYTES = 6;
const ENVELOPE_FIELDS = 1;

const isWanted = ({ call }: Waiting) => !call.signal.aborted;

const isRepeatable = ({ waiting, error }: Failed) => isWanted(waiting) && isSafeToRepeat(waiting.call, error);

/** Refusals that say nothing against the call: it goes back to its place in the line, and that is not a retry. */
const isPutOff = ({ waiting, error }: Failed, calls: number) =>
  isWanted(waiting) && (isOverLimit(error) || (error.reason === 'batch_answers_too_large' && calls > 1));

/** One wait for all calls of a failed batch, so that they are sent together again. */
async function pauseBefore(retry: number, failed: Failed[]): Promise<void> {
  const waiting = failed.map((each) => each.waiting);
  const errors = failed.map(({ error }) => error);
  for (const { call } of waiting) call.stopwatch.wait();
  // Rejects if nobody waits any more.
  await whileWanted(waiting, (signal) => pause(millisecondsBefore(retry, errors), signal)).catch(() => undefined);
  for (const { call } of waiting) call.stopwatch.run();
}

/** Work for calls that is aborted when all of them are. */
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
