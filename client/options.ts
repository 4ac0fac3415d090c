import type { CallDefaults } from './calls.ts';
import { DeckhandError } from './errors.ts';
import { type HeadersOption, validHeaders } from './headers.ts';
import type { Hooks } from './hooks.ts';
import type { SessionOptions } from './session.ts';
import { isTimeOut, TIME_OUTS } from './timeOut.ts';

/** Client options. */
export type ClientOptions = SessionOptions &
  CallDefaults &
  Hooks & {
    /** The address of the service, such as `http://127.0.0.1:3000`. */
    url: string;
    /** The maximum number of retries of a failed call that is safe to repeat; default: 3. With 0, a 429 is thrown, too. */
    retries?: number | undefined;
    /** The maximum number of calls in flight; default: 100. Further calls are queued. */
    maxInFlight?: number | undefined;
    /**
     * The W3C trace context to send with each request, such as `00-…-…-01`. Default: that of OpenTelemetry's active span, if it
     * is loaded. `() => undefined` sends none.
     */
    traceparent?: (() => string | undefined) | undefined;
    /**
     * Further headers of every request, for a gateway in between. A function is called before each request, and awaited. The
     * client throws for headers that it sets itself, such as `authorization`.
     */
    headers?: HeadersOption | undefined;
    /**
     * Called once if the service is older than this client needs, or of a newer major version. Default: `console.warn`. `false` turns it off.
     */
    warn?: ((message: string) => void) | false | undefined;
    /** Replaces the global `fetch`. */
    fetch?: typeof fetch | undefined;
  };

/** Throws for a missing or invalid option, for callers without a compiler. */
export function checkOptions(options: ClientOptions): void {
  const given: Record<string, unknown> = Object(options);
  for (const [name, [isValid, rule]] of Object.entries(RULES)) {
    const isAbsent = given[name] === undefined && name !== 'url';
    if (!isAbsent && !isValid(given[name])) throw new DeckhandError(`${name} must be ${rule}.`);
  }
  // That of a missing variable, for example: the calls would be anonymous.
  if (isText(given.token) && `${given.token}`.trim() === '')
    throw new DeckhandError('token is empty: pass a token or an API key, or leave it out.');
  if (given.identityToken && (given.token !== undefined || given.signIn))
    throw new DeckhandError('identityToken replaces token and signIn: pass one of them.');
  if (typeof options.headers === 'object') validHeaders(options.headers);
}

type Rule = [isValid: (value: unknown) => boolean, rule: string];

const isText = (value: unknown) => typeof value === 'string';
const isFunction = (value: unknown) => typeof value === 'function';
const isAddress = (value: unknown) =>
  isText(value) && /^https?:/.test(value as string) && URL.canParse(value as string);

function isSignIn(value: unknown): boolean {
  const { email, password, code } = Object(value);
  return isText(email) && isText(password) && (code === undefined || isText(code) || isFunction(code));
}

const wholeNumberFrom = (least: number): Rule => [
  (value) => Number.isSafeInteger(value) && (value as number) >= least,
  `a whole number from ${least} on`,
];

const RULES: Record<keyof ClientOptions, Rule> = {
  url: [isAddress, 'the address of the service, such as http://127.0.0.1:3000'],
  token: [(value) => isText(value) || isFunction(value), 'text or a function'],
  signIn: [isSignIn, 'an object with email and password, and perhaps a code'],
  onSignIn: [isFunction, 'a function'],
  identityToken: [isFunction, 'a function'],
  projectId: wholeNumberFrom(1),
  timeoutMilliseconds: [isTimeOut, TIME_OUTS],
  retries: wholeNumberFrom(0),
  maxInFlight: wholeNumberFrom(1),
  traceparent: [isFunction, 'a function'],
  headers: [(value) => isFunction(value) || Object(value) === value, 'an object or a function'],
  warn: [(value) => value === false || isFunction(value), 'a function or false'],
  fetch: [isFunction, 'a function'],
  onRequest: [isFunction, 'a function'],
  onResponse: [isFunction, 'a function'],
  onRetry: [isFunction, 'a function'],
};
