import { REASONS } from '../../../shared/reasons.ts';

/** The headers of the document. */

export const PROJECT_HEADER = {
  name: 'X-Project-Id',
  in: 'header',
  required: false,
  description:
    "The project of the call, one of the user's projects. Without it, the project of the row that the input names, else the user's default project.",
  schema: { type: 'integer', minimum: 1 },
};

export const KEY_HEADER = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'A name of your choice for this call. For 24 hours, a repeat with the same key and input is not executed, and gets the first answer.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[ -~]+$' },
};

export const HEADERS = {
  'X-RateLimit-Limit': { description: 'The allowed requests per minute.', schema: { type: 'integer' } },
  'X-RateLimit-Remaining': { description: 'The remaining requests in this window.', schema: { type: 'integer' } },
  'X-Request-Id': { description: 'The id of the request in the logs.', schema: { type: 'string' } },
  'X-Error-Reason': {
    description: `Why it failed, for programs. New reasons may be added later. Now: ${Object.keys(REASONS).join(', ')}.`,
    schema: { type: 'string' },
  },
  'Retry-After': { description: 'The seconds until a retry.', schema: { type: 'integer' } },
  'Idempotent-Replayed': {
    description: '`true` for the answer of an earlier call with this `Idempotency-Key`; otherwise absent.',
    required: false,
    schema: { type: 'string', const: 'true' },
  },
};

export function headerReferences(...further: ('X-Error-Reason' | 'Retry-After' | 'Idempotent-Replayed')[]) {
  const names = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-Request-Id', ...further];
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
