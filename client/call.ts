import type { FailedCall } from './errors.ts';
import type { WrittenInput } from './input.ts';

/** A call that is queued or sent. */
export type Call = FailedCall & {
  path: string;
  kind: Kind;
  input: WrittenInput;
  projectId: number | undefined;
  /** Trace headers; a batch sends those of its first call. */
  trace: Record<string, string>;
  signal: AbortSignal;
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

export const isSignIn = ({ path }: Pick<Call, 'path'>) => path === 'auth.authenticate';
