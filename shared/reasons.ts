/** Why a call was refused, for programs: stable names, unlike messages. */
export const REASONS = {
  bad_request: 'The request can not be read, or is not possible.',
  not_signed_in: 'The token is missing, expired, revoked or invalid.',
  forbidden: 'The caller may not do this.',
  not_found: 'The row does not exist, or was deleted.',
  wrong_method: 'The path exists, with another method.',
  invalid_input: 'Fields are invalid: see `errors`.',
  too_many_requests: 'Too many calls.',
  fault: 'An error in the service.',
} as const;

export type Reason = keyof typeof REASONS;
