import type { EventType } from './eventType.ts';

/**
 * What the events of each type have: `#` for a subject, then the fields of `data`. A field with `?` may be missing. A field with
 * `!` is missing only in events that an earlier version of the service wrote. Without Zod, for the typed client.
 */
const FIELDS = {
  'board.created': '# version! ids? count?',
  'board.updated': '# version! fields',
  'board.reordered': 'ids? count?',
  'board.deleted': '# version!',
  'board.restored': '# version! count',
  'group.created': '# version! board_id ids? count?',
  'group.updated': '# version! fields',
  'group.reordered': 'ids? count?',
  'group.deleted': '# version!',
  'group.restored': '# version! board_id count',
  'card.created': '# version! group_id',
  'card.updated': '# version! fields',
  'card.moved': '# version! group_id ids? count?',
  'card.deleted': '# version!',
  'card.restored': '# version! group_id count',
  'comment.created': '# version! card_id parent_comment_id',
  'comment.read': '# version!',
  'comment.deleted': '# version! card_id',
  'comment.restored': '# version! card_id count',
  'tag.created': '# version! ids? count?',
  'tag.updated': '# version! fields',
  'tag.reordered': 'ids? count?',
  'tag.deleted': '# version! ids? count?',
  'tag.restored': '# version! ids? count',
  'tour.dismissed': 'count',
  'tour.restarted': 'count',
  'master_board.created': '# version! ids? count?',
  'master_board.updated': '# version! fields',
  'master_board.reordered': 'ids? count?',
  'master_board.deleted': '# version!',
  'master_board.restored': '# version! count',
  'master_group.created': '# version! board_id',
  'master_group.updated': '# version! fields',
  'master_group.reordered': 'ids? count?',
  'master_group.deleted': '# version!',
  'master_group.restored': '# version! board_id count',
  'master_card.created': '# version! group_id',
  'master_card.updated': '# version! fields',
  'master_card.reordered': 'ids? count?',
  'master_card.deleted': '# version!',
  'master_card.restored': '# version! group_id count',
  'template.started': '# kind run_id',
  'template.applied': '# count run_id? card_id?',
  'template.removed': '# card_id count',
  'release.published': '# board_id number',
  'rollout.planned': '# board_id',
  'rollout.started': '# board_id',
  'rollout.paused': '# board_id reason?',
  'rollout.resumed': '# board_id',
  'rollout.advanced': '# board_id',
  'rollout.stage_finished': '# board_id number',
  'rollout.retried': '# board_id',
  'rollout.aborted': '# board_id reason?',
  'rollout.finished': '# board_id',
  'rollout.rollback_started': '# board_id',
  'rollout.rolled_back': '# board_id',
  'template.rolled_out': '# rollout_id count',
  'template.rolled_back': '# rollout_id count',
  'template.held': '# board_id',
  'template.unheld': '# board_id',
  'template.unpinned': '# board_id',
  'platform.created': '#',
  'platform.updated': '# fields',
  'project.created': '#',
  'project.updated': '# fields count?',
  'member.added': 'user_id role invitation_id?',
  'member.updated': 'user_id role',
  'member.removed': 'user_id role ids? count?',
  'invitation.created': '# role',
  'invitation.withdrawn': '#',
  'invitation.declined': '#',
  'subscription.trial_set': '# product status',
  'subscription.upgrade_started': '# product plan',
  'subscription.paid': '# product plan status',
  'subscription.changed': '# product plan status',
  'plan.set': '# product plan',
  'theme.created': '#',
  'theme_version.submitted': '# theme_id',
  'theme_version.approved': '# theme_id',
  'theme_version.rejected': '# theme_id',
  'theme_version.published': '# theme_id',
  'theme_version.deprecated': '# theme_id',
  'theme_version.restored': '# theme_id',
  'user.created': '#',
  'user.updated': '# fields',
  'user.password_changed': '#',
  'user.erased': '#',
  'export.started': 'user_id',
  'second_factor.started': 'user_id',
  'second_factor.enabled': 'user_id',
  'second_factor.dropped': 'user_id',
  'recovery_codes.renewed': 'user_id',
  'identity.linked': '# user_id',
  'identity.unlinked': '# user_id',
  'session.started': '',
  'session.proven': '',
  'session.ended': '',
  'sessions.ended': 'user_id count',
  'key.created': '# user_id',
  'key.exchanged': '# rule_id user_id',
  'key.rotated': '# user_id fields?',
  'key.revoked': '# user_id',
  'mail.retried': '#',
  'identity_issuer.created': '#',
  'identity_issuer.deleted': '# count?',
  'identity_rule.created': '# user_id',
  'identity_rule.updated': '# fields count?',
  'identity_rule.deleted': '# count?',
  'webhook.created': '#',
  'webhook.updated': '# fields',
  'webhook.deleted': '#',
  'webhook.rotated': '#',
  'webhook.redelivered': '# event_id count',
  'webhook.skipped': '# event_id',
  'webhook.tested': '#',
  'webhook.disabled': '# reason',
} as const satisfies Record<EventType, string>;

/** Whether a field is always there, sometimes, or in all events of this version. */
type Presence = 'always' | 'sometimes' | 'since this version';

/** What the events of a type have. */
export function fieldsOf(type: EventType): { hasSubject: boolean; fields: Map<string, Presence> } {
  const words: string[] = FIELDS[type].split(' ').filter(Boolean);
  const fields = words
    .filter((word) => word !== '#')
    .map((word) => [word.replace(/\W/, ''), presenceOf(word)] as const);
  return { hasSubject: words[0] === '#', fields: new Map(fields) };
}

function presenceOf(word: string): Presence {
  if (word.endsWith('?')) return 'sometimes';
  return word.endsWith('!') ? 'since this version' : 'always';
}

type WordsIn<Text extends string> = Text extends `${infer Word} ${infer Rest}` ? Word | WordsIn<Rest> : Text;
type WordsOf<Type extends EventType> = Exclude<WordsIn<(typeof FIELDS)[Type]>, '#' | ''>;

/** The names of the fields that events of a type always have, and of those that may be missing. */
export type CertainField<Type extends EventType> = Exclude<WordsOf<Type>, `${string}${'?' | '!'}`>;
export type PossibleField<Type extends EventType> =
  WordsOf<Type> extends infer Word ? (Word extends `${infer Name}${'?' | '!'}` ? Name : never) : never;

/** The id of the subject: null for types whose events have none. */
export type SubjectOf<Type extends EventType> = '#' extends WordsIn<(typeof FIELDS)[Type]> ? number : null;
