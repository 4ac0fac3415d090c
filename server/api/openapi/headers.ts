import { REASONS } from '../../../shared/reasons.ts';

/** The headers of the document. */

export const PROJECT_HEADER = {
  name: 'X-Project-Id',
  in: 'header',
  required: false,
  description:
    "The project of the call, one of the user's projects. Without it, the project of the row that the input names, else the user's default project.",
  // Text, as all headers are: generated clients for `fetch` do not compile with a number here (Kubb 4).
  schema: { type: 'string', pattern: '^[1-9][0-9]*$' },
};

export const KEY_HEADER = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'A name of your choice for this call. For 24 hours, a repeat with the same key and input is not executed, and gets the first answer.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[ -~]+$' },
};

export const VERSION_HEADER = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description:
    'The `ETag` of the row when you read it. If the row has changed since, nothing is changed, and the answer is a 412. `*`, or no header, accepts every version.',
  schema: { type: 'string' },
  example: '"812-1794009600000"',
};

export const HEADERS = {
  'X-RateLimit-Limit': { description: 'The allowed requests per minute.', schema: { type: 'integer' } },
  'X-RateLimit-Remaining': { description: 'The remaining requests in this window.', schema: { type: 'integer' } },
  'X-RateLimit-Reset': { description: 'The seconds until this window ends.', schema: { type: 'integer' } },
  'X-Request-Id': { description: 'The id of the request in the logs.', schema: { type: 'string' } },
  'X-Deckhand-Version': { description: 'The version of the service.', schema: { type: 'string' } },
  'X-Error-Reason': {
    description: `Why it failed, for programs. New reasons may be added later. Now: ${Object.keys(REASONS).join(', ')}.`,
    schema: { type: 'string' },
  },
  'WWW-Authenticate': {
    description: 'How to authenticate; with `error="invalid_token"` if the token or API key that was sent is wrong.',
    schema: { type: 'string' },
    example: 'Bearer realm="Deckhand"',
  },
  'Retry-After': { description: 'The seconds until a retry.', schema: { type: 'integer' } },
  ETag: {
    description: 'The version of the row, for `If-Match`. Every change of the row gives it another one.',
    schema: { type: 'string' },
    example: '"812-1794009600000"',
  },
  'Idempotent-Replayed': {
    description: '`true` for the answer of an earlier call with this `Idempotency-Key`; otherwise absent.',
    required: false,
    schema: { type: 'string', const: 'true' },
  },
};

/** The headers of every response to a call that counts against the rate limit. */
const LIMIT_HEADERS = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] as const;

/** The headers of a deprecated operation. */
export const DEPRECATION_HEADERS = {
  Deprecation: { description: 'The date of the notice, in Unix seconds (RFC 9745).', schema: { type: 'string' } },
  Sunset: { description: 'Until when it works (RFC 8594).', schema: { type: 'string' } },
  Link: {
    description: 'As `deprecation` the policy, as `successor-version` what to call instead.',
    schema: { type: 'string' },
  },
};

type Further =
  | 'X-Error-Reason'
  | 'WWW-Authenticate'
  | 'Retry-After'
  | 'ETag'
  | 'Idempotent-Replayed'
  | keyof typeof DEPRECATION_HEADERS;

export function headerReferences(...further: Further[]) {
  const names = [...LIMIT_HEADERS, 'X-Request-Id', 'X-Deckhand-Version', ...further];
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
