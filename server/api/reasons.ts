import type { Reason } from '../../shared/reasons.ts';
import { ACCESS, type Rule } from '../domain/access/access.ts';
import type { Procedure } from './procedures.ts';

/** The reasons that a procedure can fail with over HTTP: those of every call, of its access, input and key, and its own. */
export function reasonsOf(procedure: Procedure): Reason[] {
  return [...new Set([...COMMON_REASONS, ...specificReasons(procedure)])];
}

/** Without those of every call. */
export function specificReasons({
  name,
  access,
  input,
  isKeyed,
  isConditional,
  rest,
  level,
  proof,
}: Procedure): Reason[] {
  const { needsSignIn, needsKey, role, right }: Rule = ACCESS[access];
  return [
    ...(needsSignIn ? OF_SIGN_IN : []),
    ...(needsKey ? (['key_required'] as const) : []),
    ...(role ? OF_ROLE : []),
    ...(right && !role ? (['not_a_superadmin'] as const) : []),
    ...(input || !rest?.isSpecified ? (['invalid_input'] as const) : []),
    ...(input && takesCursor(input) ? (['cursor_invalid'] as const) : []),
    ...(isKeyed ? OF_KEY : []),
    ...(isConditional ? (['row_changed', 'if_match_invalid'] as const) : []),
    ...(level !== undefined ? (['upgrade_unfinished'] as const) : []),
    ...(proof ? (['proof_required'] as const) : []),
    ...(proof === 'inInput' ? OF_PROOF : []),
    ...(rest?.errors.includes(404) ? (['not_found'] as const) : []),
    ...(OWN_REASONS[name] ?? []),
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

const takesCursor = (input: object) => 'shape' in input && 'cursor' in (input.shape as object);

/** Reasons of calls that ask for the password. */
const OF_PASSWORD = ['password_wrong', 'no_password', 'too_many_failures'] as const;
/** Reasons of calls that also ask for a code of the second factor. */
const OF_PROOF = [...OF_PASSWORD, 'code_wrong', 'codes_blocked'] as const;
const OF_KEY_HOLDER = ['other_user', 'not_a_superadmin'] as const;

/** The reasons of a procedure's own rules, in `domain/`. The tests compare each refusal that they get with these. */
export const OWN_REASONS: Readonly<Record<string, readonly Reason[]>> = {
  'auth.authenticate': ['wrong_credentials', 'code_required', 'code_wrong', 'codes_blocked', 'too_many_failures'],
  'account.setDefaultProject': ['other_project'],
  'account.acceptInvitation': ['other_user'],
  'account.declineInvitation': ['other_user'],
  'account.prove': [...OF_PROOF, 'proof_required'],
  'account.changePassword': [...OF_PASSWORD, 'password_weak', 'proof_required'],
  'account.startSecondFactor': [...OF_PASSWORD, 'second_factor_enabled'],
  'account.confirmSecondFactor': ['second_factor_not_started', 'code_wrong', 'codes_blocked', 'too_many_failures'],
  'account.dropSecondFactor': [...OF_PROOF, 'second_factor_missing'],
  'account.renewRecoveryCodes': [...OF_PROOF, 'second_factor_missing'],
  'boards.get': ['answer_too_large'],
  'boards.list': ['answer_too_large'],
  'boards.create': ['place_full'],
  'boards.reorder': ['several_parents'],
  'boards.restore': ['place_full', 'already_exists'],
  'groups.create': ['place_full'],
  'groups.reorder': ['several_parents'],
  'groups.restore': ['parent_deleted', 'place_full', 'already_exists'],
  'cards.create': ['unknown_reference'],
  'cards.createMany': ['unknown_reference'],
  'cards.update': ['unknown_reference'],
  'cards.updateMany': ['unknown_reference', 'row_changed'],
  'cards.move': ['unknown_reference'],
  'cards.restore': ['parent_deleted', 'already_exists'],
  'comments.create': ['unknown_reference', 'thread_too_deep'],
  'comments.delete': ['not_the_author'],
  'comments.restore': ['not_the_author', 'parent_deleted'],
  'masterBoards.list': ['answer_too_large'],
  'masterBoards.get': ['answer_too_large'],
  'masterBoards.create': ['place_full'],
  'masterBoards.restore': ['place_full', 'already_exists'],
  'masterBoards.sync': ['service_stopping'],
  'masterBoards.push': ['service_stopping'],
  'masterGroups.list': ['answer_too_large'],
  'masterGroups.create': ['place_full'],
  'masterGroups.restore': ['parent_deleted', 'place_full', 'already_exists'],
  'masterGroups.reorder': ['unknown_reference'],
  'masterGroups.push': ['service_stopping'],
  'masterCards.create': ['already_exists'],
  'masterCards.update': ['already_exists'],
  'masterCards.restore': ['parent_deleted', 'already_exists'],
  'masterCards.reorder': ['several_parents'],
  'masterCards.push': ['service_stopping'],
  'subscriptions.upgradeTrial': ['unknown_plan', 'trial_already_paid', 'payment_due'],
  'subscriptions.setTrial': ['unknown_plan', 'unknown_reference', 'trial_already_paid'],
  'themes.create': ['other_platform', 'unknown_reference'],
  'themes.submitVersion': ['other_platform', 'already_exists'],
  'themes.approveVersion': ['other_platform', 'version_not_pending'],
  'themes.rejectVersion': ['other_platform', 'version_not_pending'],
  'themes.publishVersion': ['other_platform', 'version_not_approved', 'version_deprecated'],
  'themes.deprecateVersion': ['other_platform', 'version_not_approved'],
  'themes.deprecateWithNotice': ['other_platform', 'version_not_approved', 'unknown_reference'],
  'themes.undoDeprecation': ['other_platform', 'version_not_approved'],
  'projects.create': ['unknown_reference'],
  'users.create': ['already_exists', 'unknown_reference', 'password_weak'],
  'users.update': ['already_exists', 'unknown_reference', 'password_weak', 'own_account'],
  'users.dropSecondFactor': ['own_account'],
  'members.invite': ['already_a_member', 'place_full'],
  'members.add': ['other_project', 'not_registered', 'already_a_member'],
  'members.set': ['not_a_member', 'unknown_reference', 'last_owner'],
  'members.remove': ['not_a_member', 'last_owner'],
  'members.leave': ['not_a_member', 'other_project', 'last_owner'],
  'events.list': ['cursor_invalid', 'cursor_too_old'],
  'events.follow': ['cursor_invalid', 'cursor_too_old'],
  'webhooks.create': ['place_full', 'upgrade_unfinished'],
  'webhooks.update': ['upgrade_unfinished'],
  'webhooks.redeliver': ['unknown_reference', 'webhook_not_active', 'too_many_resends'],
  'webhooks.resend': ['unknown_reference', 'webhook_not_active', 'place_full'],
  'webhooks.skip': ['event_not_next'],
  'keys.create': [...OF_KEY_HOLDER, 'unknown_reference', 'place_full'],
  'keys.list': OF_KEY_HOLDER,
  'keys.rotate': [...OF_KEY_HOLDER, 'key_ended'],
  'keys.revoke': OF_KEY_HOLDER,
  'keys.self': ['key_ended'],
  'keys.rotateSelf': ['key_ended', 'secret_replaced'],
};
