import { DeckhandError, type Reason, type Refusal } from '../client.ts';

export type RefusalState = {
  status: keyof typeof CODES;
  reason: Reason;
  message?: string | undefined;
  /** The messages of a 422 by field: `{ title: ['title is required.'] }`. */
  fields?: Record<string, string[]> | undefined;
  retryAfterSeconds?: number | undefined;
};

/** An error like one of the service: `throw refusalOf({ status: 403, reason: 'role_missing' })`. */
export function refusalOf({ status, reason, message, fields, retryAfterSeconds }: RefusalState): Refusal {
  const [first] = Object.values(fields ?? {}).flat();
  const data = {
    code: CODES[status],
    httpStatus: status,
    reason,
    ...(fields && { errors: fields }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  };
  return new DeckhandError(message ?? first ?? `Refused: ${reason}.`, { data }) as Refusal;
}

/** The statuses of errors, and their codes in tRPC. */
const CODES = {
  400: 'BAD_REQUEST',
  401: 'UNAUTHORIZED',
  403: 'FORBIDDEN',
  404: 'NOT_FOUND',
  405: 'METHOD_NOT_SUPPORTED',
  422: 'UNPROCESSABLE_CONTENT',
  429: 'TOO_MANY_REQUESTS',
  500: 'INTERNAL_SERVER_ERROR',
};
