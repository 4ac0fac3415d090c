import fc from 'fast-check';
import { cheapRequest, type Draft } from './request.ts';

const DISTINCT = 5000;

/** Repeats the same requests, since generating them would cost more than answering them. */
export function* loadDrafts(seed: number): Generator<Draft, never> {
  const drafts = fc.sample(cheapRequest, { seed, numRuns: DISTINCT });
  for (;;) yield* drafts;
}
