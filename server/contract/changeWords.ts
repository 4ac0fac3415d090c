import type { Schema } from '../api/openapi/example.ts';
import { narrowings, type Resolve } from './narrowing.ts';

/** Compares two schemas in a place, with how the references of each are resolved. */
type Compare = (one: Schema, other: Schema, place: string, ofOne: Resolve, ofOther: Resolve) => string[];

/** How changes from one document to another are named; undefined for those that don't count. */
export type Words = {
  gone: string;
  required: string;
  renamed: (before: string, after: string) => string[];
  needsToken: string;
  needsScope: (scope: string) => string;
  schemeGone: string;
  /** Compares what requests may contain. */
  taken: Compare;
  /** Compares what answers contain. */
  answered: Compare;
};

/** From the released document to the current one. */
export const BREAKING: Words = {
  gone: 'is gone',
  required: 'is required now',
  renamed: (before, after) => [`is called ${after}, not ${before}`],
  needsToken: 'needs a token now',
  needsScope: (scope) => `needs the scope ${scope} now`,
  schemeGone: 'is no longer accepted',
  // What was valid must stay valid, so the old schema must fit into the new one.
  taken: (before, after, place, ofBefore, ofAfter) =>
    narrowings({ schema: before, resolve: ofBefore }, { schema: after, resolve: ofAfter }, place, {
      absent: undefined,
      uncertain: 'is required now',
      unknown: 'is gone',
      outside: (value) => `no longer takes ${value}`,
    }),
  // Answers must stay as documented, so the new schema must fit into the old one.
  answered: (before, after, place, ofBefore, ofAfter) =>
    narrowings({ schema: after, resolve: ofAfter }, { schema: before, resolve: ofBefore }, place, {
      absent: 'is gone',
      uncertain: 'is not always there any more',
      unknown: undefined,
      outside: (value) => `may be ${value} now`,
    }),
};

/** From the current document back to the released one. */
export const NEW: Words = {
  gone: 'is new',
  required: 'is optional now',
  renamed: () => [],
  needsToken: 'needs no token any more',
  needsScope: (scope) => `no longer needs the scope ${scope}`,
  schemeGone: 'is accepted now',
  taken: (after, before, place, ofAfter, ofBefore) =>
    narrowings({ schema: after, resolve: ofAfter }, { schema: before, resolve: ofBefore }, place, {
      absent: undefined,
      uncertain: 'is optional now',
      unknown: 'is new',
      outside: (value) => `takes ${value} now`,
    }),
  answered: (after, before, place, ofAfter, ofBefore) =>
    narrowings({ schema: before, resolve: ofBefore }, { schema: after, resolve: ofAfter }, place, {
      absent: 'is new',
      uncertain: 'is always there now',
      unknown: undefined,
      outside: () => undefined,
    }),
};
