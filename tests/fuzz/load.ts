import fc from 'fast-check';
import { cheapRequest, type Draft } from './request.ts';

const DIFFERENT = 5000;

/** The same requests again and again: making them costs less than answering them. */
export function* loadDrafts(seed: number): Generator<Draft, never> {
  const drafts = fc.sample(cheapRequest, { seed, numRuns: DIFFERENT });
  for (;;) yield* drafts;
}
