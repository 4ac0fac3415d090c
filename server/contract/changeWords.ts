import type { Schema } from '../api/openapi/example.ts';
import type { NarrowingWords } from './narrowing.ts';

/** How changes from one document to another are named; undefined for those that don't count. */
export type Words = {
  gone: string;
  required: string;
  renamed: (before: string, after: string) => string[];
  needsToken: string;
  needsScope: (scope: string) => string;
  schemeGone: string;
  schemeChanged: (before: string, after: string) => string[];
  deprecated: (one: boolean, other: boolean) => string[];
  /** What requests may contain. */
  taken: NarrowingWords;
  /** What answers contain. */
  answered: NarrowingWords;
};

/** Requests must not have a field that became `readOnly`. */
const isNotSent = (before: Schema, after: Schema) => after.readOnly === true && !before.readOnly;

/** Answers don't have a field that became `writeOnly`. */
const isNotAnswered = (after: Schema, before: Schema) => after.writeOnly === true && !before.writeOnly;

const shown = (value: unknown) => JSON.stringify(value);

const deprecation = (isNow: boolean) => (isNow ? 'is deprecated now' : 'is no longer deprecated');

/** From the released document to the current one. */
export const BREAKING: Words = {
  gone: 'is gone',
  required: 'is required now',
  renamed: (before, after) => [`is called ${after}, not ${before}`],
  needsToken: 'needs a token now',
  needsScope: (scope) => `needs the scope ${scope} now`,
  schemeGone: 'is no longer accepted',
  schemeChanged: (before, after) => [`is ${after}, not ${before}`],
  deprecated: () => [],
  taken: {
    absent: undefined,
    uncertain: 'is required now',
    unknown: 'is gone',
    outside: (value) => `no longer takes ${value}`,
    otherDefault: (before, after) =>
      after === undefined
        ? `has no default any more; it was ${shown(before)}`
        : `has the default ${shown(after)}, not ${shown(before)}`,
    hidden: 'can no longer be sent',
    hiddenBy: isNotSent,
  },
  answered: {
    absent: 'is gone',
    uncertain: 'is not always there any more',
    unknown: undefined,
    outside: (value) => `may be ${value} now`,
    hidden: 'is not answered any more',
    hiddenBy: isNotAnswered,
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
  schemeChanged: () => [],
  deprecated: (isNow) => [deprecation(isNow)],
  taken: {
    absent: undefined,
    uncertain: 'is optional now',
    unknown: 'is new',
    outside: (value) => `takes ${value} now`,
    otherDefault: (now, before) => (before === undefined ? `has the default ${shown(now)} now` : undefined),
    hidden: 'can be sent now',
    hiddenBy: isNotSent,
    deprecated: deprecation,
  },
  answered: {
    absent: 'is new',
    uncertain: 'is always there now',
    unknown: undefined,
    outside: () => undefined,
    hidden: 'is answered now',
    hiddenBy: isNotAnswered,
    deprecated: (_before, isNow) => deprecation(isNow),
  },
};
