import { LARGEST_BODY_BYTES, MOST_BODY_FIELDS } from '../shared/limits.ts';
import type { FailedCall } from './errors.ts';
import type { Hooks } from './hooks.ts';
import type { WrittenInput } from './input.ts';

/** A call that is queued or sent. */
export type Call = FailedCall & {
  path: string;
  kind: Kind;
  input: WrittenInput;
  projectId: number | undefined;
  /** Further headers of this call. */
  headers: Record<string, string>;
  /** Trace headers; a batch sends those of its first call. */
  trace: Record<string, string>;
  signal: AbortSignal;
  /** How often it was sent. */
  attempt: number;
  hooks: Hooks;
  stopwatch: Stopwatch;
};

/** Measures how long a call has taken. */
export type Stopwatch = {
  run: () => void;
  /** While the call is queued in the client. */
  rest: () => void;
  /** During a sign-in or the pause before a retry: counts against the caller's time-out, but not against the default one. */
  wait: () => void;
};

export type Kind = 'query' | 'mutation';

export const isSignIn = ({ path }: Pick<Call, 'path'>) => path === 'auth.authenticate' || path === 'auth.exchange';

/** Takes the first calls that fit into one request. A call above the limit is sent alone: the service reports the error. */
export function takeBatch<Waiting extends { call: Call }>(lane: Waiting[], most: number): Waiting[] {
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

/** `"49":` before an input, and a comma after it. */
const ENVELOPE_BYTES = 6;
const ENVELOPE_FIELDS = 1;
