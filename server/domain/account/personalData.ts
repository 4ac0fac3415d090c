/**
 * What the service stores about persons: a line for each table, which names every column once. A test compares it with the database.
 * Export and erasure are driven by it.
 *
 * - `key(…)`: the primary key; `id` if not given.
 * - `seen(…)`: the role in its project, or the right, with which one may read a row through the API: without it, an export of who made
 *   the row has its id and time only. Rows of the other tables are about the person, or are their own words.
 * - `by(…)`: columns with the id of a person, `address(…)` with an e-mail address: such rows are about them, and in their export.
 * - `scanned`: no index finds these rows, so that they are looked for in slices.
 * - `delete`, `blank`: what an erasure does to these rows; to blank sets the columns of `about` and `secret` to null. `sweep`: the same in
 *   slices, after the transaction. With none of them, the rows stay, with the id of the person alone.
 * - `about(…)`: what the service writes about a person. `secret(…)`: the same, but never exported: hashes, links, answers that
 *   repeat other rows, and what became of a mail, which would tell whether somebody else has its address.
 * - `text(…)`: what people wrote. An erasure lists those texts that name the person, for somebody to look at; with `ofProject`, in the
 *   projects of the person. `copies(…)`: such texts once more, which go with the releases and rollouts that they were copied for.
 * - `other(…)`: ids, states, numbers and times, which say nothing about a person without the columns above.
 *
 * Of checkouts, the payment provider knows who paid: its records are erased there.
 */
const LIST = `
users by(id) about(name email email_confirmed_at language rate_limit_per_minute default_project_id totp_blocked_until) secret(password_hash totp_secret totp_pending_secret) other(id kind superadmin superadmin_billing enable_ai is_active totp_last_step totp_failures created_at updated_at deactivated_at erased_at)
recovery_codes by(user_id) delete secret(code_hash) other(id user_id used_at)
sessions by(user_id) delete about(id user_id identity_id issuer_session created_at expires_at revoked_at second_factor_at proven_at)
members key(project_id user_id) by(user_id) delete about(project_id user_id role issuer created_at)
invitations seen(owner) by(invited_by) address(email) delete about(email) other(id project_id role invited_by created_at updated_at)
mails by(user_id) address(email) delete about(email data) secret(state failures error next_attempt_at leased_until sent_at) other(id kind user_id invitation_id used_at created_at)
mail_links key(secret_hash) secret(secret_hash) other(mail_id expires_at)
api_keys by(user_id) delete about(name) secret(secret_hash previous_hash) other(id user_id project_id rule_id scopes names_grants previous_expires_at expires_at rotated_at warned_at last_used_at revoked_at created_at updated_at)
tour_dismissals key(user_id card_id) by(user_id) delete about(user_id card_id tour_key dismissed_at)
idempotency_keys key(user_id procedure key) by(user_id) delete about(key) secret(input_hash answer) other(user_id procedure created_at holder held_until finished_at)
idempotency_usage key(user_id hour) by(user_id) delete about(user_id hour keys answer_bytes)
exports by(user_id) delete about(id user_id state leased_until attempts created_at expires_at)
export_parts key(export_id number) secret(data) other(export_id number)
audit_entries by(user_id) blank about(address request_id) other(id created_at type platform_id project_id user_id key_id surface subject_id data)
events key(transaction_id id) seen(viewer) by(user_id) scanned sweep about(request_id) other(transaction_id id created_at type platform_id project_id user_id key_id surface subject_id data)
erasures key(user_id) seen(superadmin) by(user_id erased_by) other(user_id user_created_at erased_at erased_by swept_at)
comments by(user_id) ofProject text(comment) other(id project_id card_id user_id parent_comment_id root_comment_id depth is_read read_at created_at updated_at deleted_at deletion_id version)
cards seen(viewer) by(owner_id created_by) scanned ofProject text(title short_description description evaluation_check status unique_identifier) copies(base_values) other(id project_id platform_id is_master is_active created_by created_at updated_at deleted_at deletion_id owner_id master_card_id group_id template_group_id tag_id tour_key priority due_date is_due_at_midnight snoozed_until position sort_order base_id version)
groups seen(viewer) by(created_by) scanned ofProject text(title description type) copies(brought) other(id project_id platform_id is_master is_active created_by created_at updated_at deleted_at deletion_id master_group_id board_id template_board_id is_collapsed color icon position template_key is_clearing version)
boards seen(viewer) by(created_by) scanned ofProject text(title description) copies(brought) other(id project_id platform_id is_master is_active created_by created_at updated_at deleted_at deletion_id master_board_id tool_key position template_key rolled_out_id version)
tags seen(viewer) by(created_by) scanned ofProject text(name) other(id project_id color icon position is_active created_by created_at updated_at deleted_at deletion_id version)
deletions seen(member) by(user_id) scanned other(id project_id noun subject_id count user_id cause_id card_ids deleted_at)
webhooks seen(owner) by(created_by) secret(secret previous_secret) text(url) other(id project_id types previous_expires_at is_active disabled_reason after_transaction after_event failures first_failed_at next_attempt_at leased_until lease_holder kept_until pace_milliseconds test_requested_at deliveries resend_events redelivery_ends_at created_by key_id right_lost_at created_at updated_at)
webhook_deliveries key(webhook_id number) other(webhook_id number event_id type attempt status response_status milliseconds error created_at)
identities by(user_id) delete about(issuer subject created_at last_used_at) other(id user_id)
sso_flows key(state_hash) by(user_id) delete about(claims) secret(state_hash challenge nonce) other(issuer purpose user_id session_id loopback_port exchanged_at created_at expires_at)
identity_issuers seen(superadmin) by(created_by) text(issuer jwks_uri) other(id jwks created_by created_at)
identity_rules seen(superadmin) by(user_id created_by) text(name subject) other(id issuer_id audience claims user_id scopes project_id lifetime_seconds single_use is_active created_by created_at updated_at)
identity_tokens_used key(rule_id token_hash) secret(token_hash) other(rule_id expires_at)
logout_tokens_used key(token_hash) secret(token_hash) other(expires_at)
checkouts seen(owner) by(created_by) scanned secret(reference checkout_url) other(id subscription_id plan_id created_by price_cents currency provider session_id provider_subscription_id is_past_due past_due_changed_at is_disputed disputed_changed_at ended_at status expires_at created_at updated_at)
subscriptions other(id platform_id product status trial_ends_at plan_id paid_at created_at updated_at)
plans other(id product plan period price_cents currency is_active created_at updated_at)
platforms text(name) other(id created_at updated_at)
projects text(name) other(id platform_id is_active created_at updated_at)
project_tools key(project_id tool_key) other(project_id tool_key)
themes text(name) other(id platform_id created_at updated_at)
theme_versions text(version deprecation_reason) other(id theme_id approval_status theme_status published_at deprecated_at replacement_version_id created_at updated_at)
releases seen(superadmin) by(user_id) scanned text(note) other(id board_id number user_id created_at)
release_rows key(release_id row_id) other(release_id row_id parent_id position)
template_rows copies(content) other(id board_id group_id card_id digest)
project_templates key(project_id board_id) seen(viewer) by(held_by) scanned text(hold_note) other(project_id board_id release_id hold_until held_by pinned)
template_runs seen(superadmin) by(user_id) scanned other(id kind board_id group_id card_id user_id release_id aborted_rollout_id started_at progressed_at finished_at interrupted_at projects_total projects_done projects_with_access projects_skipped projects_changed cards_added boards_updated groups_updated cards_updated)
template_outcomes key(run_id project_id) other(run_id project_id outcome reason boards_added groups_added cards_added boards_updated groups_updated cards_updated)
rollouts seen(superadmin) by(user_id) scanned text(note) other(id board_id release_id previous_release_id state reason stages stage is_soaking overwrite max_failed max_conflicts user_id next_at progressed_at created_at started_at finished_at)
rollout_targets key(rollout_id project_id) other(rollout_id project_id stage state digest is_replanned is_held error attempts rows_added fields_changed fields_kept fields_in_conflict rows_pinned fields_restored rows_removed left_by_rollback previous_release_id updated_at)
rollout_changes key(rollout_id project_id noun copy_id) copies(before base) other(rollout_id project_id noun copy_id row_id undone)
write_positions key(user_id) other(user_id position)
write_epoch other(id epoch)
replicated_epoch other(id epoch)
database_state other(id level version webhooks_paused_at erasures_due_at)
incarnations key(number) other(number id began_at server relation timeline first_timeline timeline_step transaction_offset last_shared takes_unnamed)
`;

type Columns = 'key' | 'seen' | 'by' | 'address' | 'about' | 'secret' | 'text' | 'copies' | 'other';
type Flag = 'scanned' | 'ofProject' | 'delete' | 'blank' | 'sweep';
export type PersonalTable = Record<Columns, string[]> & { flags: ReadonlySet<Flag> };

const NONE: Record<Columns, string[]> = {
  ...{ key: ['id'], seen: [], by: [], address: [], about: [], secret: [], text: [], copies: [], other: [] },
};

export const PERSONAL_DATA: Record<string, PersonalTable> = Object.fromEntries(
  LIST.trim()
    .split('\n')
    .map((line) => {
      const [table, ...words] = line.replaceAll(/\w+\(.*?\)/g, '').split(/ +/);
      const lists = Array.from(line.matchAll(/(\w+)\((.*?)\)/g), ([, name, columns = '']) => [
        name,
        columns.split(' '),
      ]);
      return [table, { ...NONE, ...Object.fromEntries(lists), flags: new Set(words) }];
    }),
);
