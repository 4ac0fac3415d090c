import type { NarrowingWords } from './narrowing.ts';

/** How changes from one document to another are named; undefined for those that don't count. */
export type Words = {
  gone: string;
  required: string;
  renamed: (before: string, after: string) => string[];
  needsToken: string;
  needsScope: (scope: string) => string;
  schemeGone: string;
  /** What requests may contain. */
  taken: NarrowingWords;
  /** What answers contain. */
  answered: NarrowingWords;
};

/** From the released document to the current one. */
export const BREAKING: Words = {
  gone: 'is gone',
  required: 'is required now',
  renamed: (before, after) => [`is called ${after}, not ${before}`],
  needsToken: 'needs a token now',
  needsScope: (scope) => `needs the scope ${scope} now`,
  schemeGone: 'is no longer accepted',
  taken: {
    absent: undefined,
    uncertain: 'is required now',
    unknown: 'is gone',
    outside: (value) => `no longer takes ${value}`,
  },
  answered: {
    absent: 'is gone',
    uncertain: 'is not always there any more',
    unknown: undefined,
    outside: (value) => `may be ${value} now`,
  },
};

/** From the current document back to the released one. */
export const NEW: Words = {
  gone: 'is new',
  required: 'is optional now',
  renamed: () => [],
  needsToken: 'needs no token any more',
  needsScope: (scope) => `no longer needs the scope ${scope}`,
  schemeGone: 'is accepted now',
  taken: {
    absent: undefined,
    uncertain: 'is optional now',
    unknown: 'is new',
    outside: (value) => `takes ${value} now`,
  },
  answered: {
    absent: 'is new',
    uncertain: 'is always there now',
    unknown: undefined,
    outside: () => undefined,
  },
};
