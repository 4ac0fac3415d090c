import { TRPCError } from '@trpc/server';
import { getHTTPStatusCodeFromError } from '@trpc/server/http';
import { ZodError } from 'zod';
import type { Reason } from './reasons.ts';

/** Errors for callers: the message is for people, the reason for programs. */
export const badRequest = (message: string, reason: Reason) => callerError('BAD_REQUEST', { message, reason });
export const unauthorized = (message: string, reason: Reason) => callerError('UNAUTHORIZED', { message, reason });
export const forbidden = (message: string, reason: Reason) => callerError('FORBIDDEN', { message, reason });
export const wrongMethod = (message: string) =>
  callerError('METHOD_NOT_SUPPORTED', { message, reason: 'wrong_method' });
export const notFound = (message: string, reason: Reason = 'not_found') =>
  callerError('NOT_FOUND', { message, reason });

export const preconditionFailed = (message: string, reason: Reason) =>
  callerError('PRECONDITION_FAILED', { message, reason });

export const JSON_WANTED = 'Send a JSON object as the body, with Content-Type application/json.';

export type FieldErrors = Record<string, string[]>;

/** A 422 for rules that a schema can't check: `invalid({ tag_id: 'does not exist' })`. */
export const invalid = (predicates: Record<string, string>, reason: Reason = 'invalid_input') =>
  callerError('UNPROCESSABLE_CONTENT', {
    reason,
    errors: Object.fromEntries(Object.entries(predicates).map(([field, text]) => [field, [sentence(field, text)]])),
  });

export const tooManyRequests = (message: string, retryAfterSeconds: number, reason: Reason) =>
  callerError('TOO_MANY_REQUESTS', { message, reason, retryAfterSeconds });

/** The error of a whole call for those of its rows, by place: `cards.17.title`. The first one sets status and reason. */
export function ofRows(list: string, errors: ReadonlyMap<number, TRPCError>): TRPCError {
  const failures = [...errors].map(([at, error]) => ({ ...toFailure(error), row: `${list}.${at}` }));
  const [{ code, reason, message, row, errors: fields }] = failures as [(typeof failures)[number]];
  if (!fields) return callerError(code, { message: `${row}: ${message}`, reason });
  const ofFields = failures.flatMap(({ row, errors = {} }) =>
    Object.entries(errors).map(([field, texts]) => [`${row}.${field}`, texts.map((text) => `${row}.${text}`)] as const),
  );
  const unlisted = failures.reduce((sum, { unlisted = 0 }) => sum + unlisted, 0);
  return callerError(code, { reason, ...listed(ofFields, unlisted) });
}

export type Failure = {
  code: TRPCError['code'];
  status: number;
  reason: Reason;
  message: string;
  errors?: FieldErrors;
  /** How many further errors `errors` leaves out. */
  unlisted?: number;
  retryAfterSeconds?: number;
};

/** Maps any error to its status and message. Callers don't see the message of an unknown error. */
export function toFailure(thrown: unknown): Failure {
  const error = thrown instanceof TRPCError ? thrown : undefined;

  if (error?.code === 'BAD_REQUEST' && error.cause instanceof ZodError) return toValidationFailure(error.cause);
  const details = (error?.cause as { details?: Details } | undefined)?.details;
  // tRPC could not parse the input; its own message reveals internals.
  if (error?.code === 'BAD_REQUEST' && error.cause && !details)
    return toFailure(badRequest('The input could not be read.', 'input_unreadable'));
  if (error?.code === 'NOT_FOUND' && !details) return toFailure(notFound(error.message, 'unknown_procedure'));
  if (hasCode(error?.cause ?? thrown, DISK_FULL)) return { ...FAULT, reason: 'disk_full', message: NOTHING_SAVED };
  if (isOverload(error?.cause ?? thrown))
    return toFailure(tooManyRequests('The service is busy. Try again shortly.', 1, 'service_busy'));
  if (!error || !details) return FAULT;

  const message = details.errors ? summarize(details.errors, details.unlisted) : error.message;
  const status = getHTTPStatusCodeFromError(error);
  return { code: error.code, status, message, ...details };
}

const FAULT: Failure = {
  code: 'INTERNAL_SERVER_ERROR',
  status: 500,
  reason: 'fault',
  message: 'Something went wrong on our side. Try again later.',
};
const NOTHING_SAVED = 'Nothing can be saved at the moment: the disk of the service is full. Reads still work.';

type Details = Pick<Failure, 'reason' | 'errors' | 'unlisted' | 'retryAfterSeconds'>;

function callerError(code: TRPCError['code'], { message = code, ...details }: Details & { message?: string }) {
  return new TRPCError({ code, message, cause: Object.assign(new Error(message), { details }) });
}

const MOST_FIELDS = 50;

function toValidationFailure({ issues }: ZodError): Failure {
  if (issues.some((issue) => issue.path.length === 0))
    return toFailure(badRequest('The input must be an object, sent as {"json": {…}}.', 'body_not_object'));

  const byField = Map.groupBy(issues, (issue) => issue.path.join('.'));
  const { errors, unlisted } = listed(
    [...byField].map(([field, issues]) => [field, issues.map(({ message }) => sentence(field, message))]),
  );
  const message = summarize(errors, unlisted);
  return { code: 'UNPROCESSABLE_CONTENT', status: 422, reason: 'invalid_input', message, errors, unlisted };
}

/** The first fields, and how many errors the others have. */
function listed(ofFields: (readonly [string, string[]])[], unlisted = 0) {
  const others = ofFields.slice(MOST_FIELDS).reduce((sum, [, texts]) => sum + texts.length, unlisted);
  return { errors: Object.fromEntries(ofFields.slice(0, MOST_FIELDS)) as FieldErrors, unlisted: others };
}

const sentence = (field: string, predicate: string) => `${field} ${predicate}${predicate.endsWith('?') ? '' : '.'}`;

function summarize(errors: FieldErrors, unlisted = 0): string {
  const [first, ...others] = Object.values(errors).flat();
  const more = others.length + unlisted;
  return more === 0 ? `${first}` : `${first} (and ${more} more)`;
}

const DISK_FULL = new Set(['53100']);

/** Whether an error or one of its causes has one of these PostgreSQL codes. */
function hasCode(cause: unknown, codes: ReadonlySet<string>): boolean {
  if (!(cause instanceof Error)) return false;
  return codes.has((cause as { code?: string }).code ?? '') || hasCode(cause.cause, codes);
}

/** A timeout for a connection or a row lock, or no connections left on the database server. */
export function isOverload(cause: unknown): boolean {
  if (!(cause instanceof Error)) return false;
  return hasCode(cause, OVERLOAD_CODES) || cause.message === POOL_EXHAUSTED || isOverload(cause.cause);
}
const OVERLOAD_CODES = new Set(['53300', '55P03']);
const POOL_EXHAUSTED = 'timeout exceeded when trying to connect';
