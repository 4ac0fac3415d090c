import { PROOF_REASONS, type Reason } from '../../shared/reasons.ts';
import { ACCESS, type Rule } from '../domain/access/access.ts';
import type { Procedure } from './procedures.ts';

/** The reasons that a procedure can fail with over HTTP: those of every call, of its access, input and key, and its own. */
export function reasonsOf(procedure: Procedure): Reason[] {
  return [...new Set([...COMMON_REASONS, ...specificReasons(procedure)])];
}

/** Without those of every call. */
export function specificReasons({
  access,
  input,
  isKeyed,
  isPaged,
  isConditional,
  rest,
  level,
  proof,
  ownReasons,
}: Procedure): Reason[] {
  const { needsSignIn, needsKey, role, right }: Rule = ACCESS[access];
  return [
    ...(needsSignIn ? OF_SIGN_IN : []),
    ...(needsKey ? (['key_required'] as const) : []),
    ...(role ? OF_ROLE : []),
    ...(right && !role ? (['not_a_superadmin'] as const) : []),
    ...(input || !rest?.isSpecified ? (['invalid_input'] as const) : []),
    ...(isPaged ? (['cursor_invalid'] as const) : []),
    ...(isKeyed ? OF_KEY : []),
    ...(isConditional ? (['row_changed', 'if_match_invalid'] as const) : []),
    ...(level !== undefined ? (['upgrade_unfinished'] as const) : []),
    ...(proof ? (['proof_required'] as const) : []),
    ...(proof === 'inInput' ? PROOF_REASONS : []),
    ...(rest?.errors.includes(404) ? (['not_found'] as const) : []),
    ...ownReasons,
  ];
}

/** What the transport, the limits and the state of the service can do to any call. */
export const COMMON_REASONS: readonly Reason[] = [
  ...(['body_not_json', 'body_not_object', 'body_too_large', 'body_incomplete', 'malformed_request'] as const),
  ...([
    'input_unreadable',
    'batch_invalid',
    'wrong_kind',
    'wrong_method',
    'unknown_path',
    'unknown_procedure',
  ] as const),
  ...(['over_rate_limit', 'too_many_at_once', 'answers_unread', 'batch_answers_too_large'] as const),
  ...(['service_busy', 'fault', 'disk_full'] as const),
];

const OF_SIGN_IN = [
  ...(['not_signed_in', 'credential_invalid', 'key_ended'] as const),
  ...(['key_not_allowed', 'scope_missing', 'no_project_access'] as const),
] as const;
const OF_ROLE = ['role_missing', 'other_project'] as const;
const OF_KEY = [
  'idempotency_key_invalid',
  'idempotency_key_reused',
  'idempotency_key_running',
  'idempotency_keys_used_up',
  'idempotency_answer_not_kept',
] as const;
