import type { FailedCall } from './errors.ts';
import type { WrittenInput } from './input.ts';

/** A call on its way. */
export type Call = FailedCall & {
  path: string;
  kind: Kind;
  input: WrittenInput;
  projectId: number | undefined;
  /** The headers of the trace that it was made in; a request has those of its first call. */
  trace: Record<string, string>;
  /** Aborts when its caller no longer waits for it. */
  signal: AbortSignal;
  stopwatch: Stopwatch;
};

/** Measures how long a call has taken. */
export type Stopwatch = {
  run: () => void;
  /** While the call waits for its turn. */
  rest: () => void;
  /**
   * While the client signs in, or pauses before a retry. A time-out of the caller goes on. The default rests, since it is about a
   * silent service: a sign-in is a call of its own, for which a person may be typing a code.
   */
  wait: () => void;
};

export type Kind = 'query' | 'mutation';

export const isSignIn = ({ path }: Pick<Call, 'path'>) => path === 'auth.authenticate';
