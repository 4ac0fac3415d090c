import { TRPCError } from '@trpc/server';
import { getHTTPStatusCodeFromError } from '@trpc/server/http';
import { ZodError } from 'zod';

/** Errors for callers, thrown where the rule is; the message is for people. */
export const badRequest = (message: string) => new TRPCError({ code: 'BAD_REQUEST', message });
export const unauthorized = (message: string) => new TRPCError({ code: 'UNAUTHORIZED', message });
export const forbidden = (message: string) => new TRPCError({ code: 'FORBIDDEN', message });
export const wrongMethod = (message: string) => new TRPCError({ code: 'METHOD_NOT_SUPPORTED', message });
export const notFound = (message: string) => new TRPCError({ code: 'NOT_FOUND', message });

export const JSON_WANTED = 'Send a JSON object as the body, with Content-Type application/json.';

export type FieldErrors = Record<string, string[]>;

/** A 422 for values that only the database can check: `invalid({ tag_id: 'does not exist' })`. */
export const invalid = (predicates: Record<string, string>) =>
  refusal('UNPROCESSABLE_CONTENT', {
    errors: Object.fromEntries(Object.entries(predicates).map(([field, text]) => [field, [sentence(field, text)]])),
  });

export const tooManyRequests = (message: string, retryAfterSeconds: number) =>
  refusal('TOO_MANY_REQUESTS', { message, retryAfterSeconds });

/** An error as REST and RPC report it, each in its own format. */
export type Failure = {
  code: TRPCError['code'];
  status: number;
  message: string;
  errors?: FieldErrors;
  retryAfterSeconds?: number;
};

/** Maps any error to its status and message. An unknown error is a 500, and its message is not shown to callers. */
export function toFailure(thrown: unknown): Failure {
  const error = thrown instanceof TRPCError ? thrown : undefined;

  if (error?.code === 'BAD_REQUEST' && error.cause instanceof ZodError) return toValidationFailure(error.cause);
  if (error?.cause instanceof SyntaxError) return toFailure(badRequest('The body is not valid JSON.'));
  // tRPC could not parse the input; its message would reveal internals.
  if (error?.code === 'BAD_REQUEST' && error.cause) return toFailure(badRequest('The input could not be read.'));
  if (error?.code === 'UNSUPPORTED_MEDIA_TYPE') return toFailure(badRequest(JSON_WANTED));
  if (hasCode(error?.cause ?? thrown, DISK_FULL)) return { ...FAULT, message: NOTHING_SAVED };
  if (isOverload(error?.cause ?? thrown))
    return toFailure(tooManyRequests('The service is busy. Try again shortly.', 1));
  if (!error || error.code === 'INTERNAL_SERVER_ERROR') return FAULT;

  const details = (error.cause as { details?: Details } | undefined)?.details;
  const message = details?.errors ? overview(details.errors) : error.message;
  return { code: error.code, status: getHTTPStatusCodeFromError(error), message, ...details };
}

const FAULT: Failure = {
  code: 'INTERNAL_SERVER_ERROR',
  status: 500,
  message: 'Something went wrong on our side. Try again later.',
};
const NOTHING_SAVED = 'Nothing can be saved at the moment: the disk of the service is full. Reads still work.';

type Details = { errors?: FieldErrors; retryAfterSeconds?: number };

function refusal(code: TRPCError['code'], { message = code, ...details }: Details & { message?: string }) {
  return new TRPCError({ code, message, cause: Object.assign(new Error(message), { details }) });
}

const MOST_FIELDS = 50;

function toValidationFailure({ issues }: ZodError): Failure {
  if (issues.some((issue) => issue.path.length === 0)) return toFailure(badRequest('The input must be an object.'));

  const byField = Map.groupBy(issues, (issue) => issue.path.join('.'));
  const errors = Object.fromEntries(
    [...byField]
      .slice(0, MOST_FIELDS)
      .map(([field, refused]) => [field, refused.map(({ message }) => sentence(field, message))]),
  );
  return { code: 'UNPROCESSABLE_CONTENT', status: 422, message: overview(errors), errors };
}

const sentence = (field: string, predicate: string) => `${field} ${predicate}.`;

function overview(errors: FieldErrors): string {
  const [first, ...others] = Object.values(errors).flat();
  return others.length === 0 ? `${first}` : `${first} (and ${others.length} more)`;
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
