/** What can happen. Without Zod, so that the page for people can list it. */

type EventTraits = {
  /** What happened. */
  text: string;
  /** Whether it is in the audit trail; without it, only what a superadmin does in a project without being a member. */
  audit?: 'always' | 'never';
  /** Whether it may change what a follower of events sees. */
  changesRights?: true;
  /** Nodes of the previous version don't know it: it is written, and webhooks can be for it, from this level on. */
  level?: number;
};

/**
 * Every type of event. The subject is named before the dot. What a template did to each project is not in the audit trail:
 * `template.started` is, once.
 */
const TYPES_WITH_TRAITS = {
  'board.created': { text: 'A board was created.' },
  'board.updated': { text: 'A board was changed.' },
  'board.reordered': { text: 'Boards got other positions.' },
  'board.deleted': { text: 'A board was deleted, with its groups and cards.' },
  'board.restored': { text: 'The deletion of a board was undone.', level: 1 },
  'group.created': { text: 'A group was created.' },
  'group.updated': { text: 'A group was changed.' },
  'group.reordered': { text: 'Groups got other positions.' },
  'group.deleted': { text: 'A group was deleted, with its cards.' },
  'group.restored': { text: 'The deletion of a group was undone.', level: 1 },
  'card.created': { text: 'A card was created.' },
  'card.updated': { text: 'A card was changed.' },
  'card.moved': { text: 'A card was moved.' },
  'card.deleted': { text: 'A card was deleted.' },
  'card.restored': { text: 'The deletion of a card was undone.', level: 1 },
  'comment.created': { text: 'A comment was added to a card.' },
  'comment.read': { text: 'A comment was marked as read.' },
  'comment.deleted': { text: 'A comment was deleted.' },
  'comment.restored': { text: 'The deletion of a comment was undone, with its replies.', level: 1 },
  'tag.created': { text: 'A tag was created.' },
  'tag.updated': { text: 'A tag was changed.' },
  'tag.reordered': { text: 'Tags got other positions.' },
  'tag.deleted': { text: 'A tag was deleted.' },
  'tag.restored': { text: 'The deletion of a tag was undone: its cards have it again.', level: 1 },
  'tour.dismissed': { text: 'A user dismissed tour cards.' },
  'tour.restarted': { text: 'A user restarted the tours.' },
  'master_board.created': { text: 'A master board was created.' },
  'master_board.updated': { text: 'A master board was changed.' },
  'master_board.reordered': { text: 'Master boards got other positions.' },
  'master_board.deleted': { text: 'A master board was deleted.' },
  'master_board.restored': { text: 'The deletion of a master board was undone.', level: 1 },
  'master_group.created': { text: 'A master group was created.' },
  'master_group.updated': { text: 'A master group was changed.' },
  'master_group.reordered': { text: 'Master groups got other positions.' },
  'master_group.deleted': { text: 'A master group was deleted.' },
  'master_group.restored': { text: 'The deletion of a master group was undone.', level: 1 },
  'master_card.created': { text: 'A master card was created.' },
  'master_card.updated': { text: 'A master card was changed.' },
  'master_card.reordered': { text: 'Master cards got other positions.' },
  'master_card.deleted': { text: 'A master card was deleted.' },
  'master_card.restored': { text: 'The deletion of a master card was undone.', level: 1 },
  'template.started': { text: 'A sync or push of a template began.', audit: 'always' },
  'template.applied': {
    text: 'A sync, a push, or the new identifier or the restore of a master card changed a project.',
    audit: 'never',
  },
  'template.removed': { text: 'Copies of a deleted master card were deleted from a project.', audit: 'never' },
  'release.published': { text: 'A release of a master board was published.', audit: 'always', level: 2 },
  'rollout.planned': { text: 'A rollout of a release was planned.', audit: 'always', level: 2 },
  'rollout.started': { text: 'A rollout was started.', audit: 'always', level: 2 },
  'rollout.paused': { text: 'A rollout was paused, by a call or by its limits.', audit: 'always', level: 2 },
  'rollout.resumed': { text: 'A rollout goes on after a pause.', audit: 'always', level: 2 },
  'rollout.advanced': { text: 'A rollout goes on with its next stage.', audit: 'always', level: 2 },
  'rollout.stage_finished': { text: 'A stage of a rollout is finished.', audit: 'always', level: 2 },
  'rollout.retried': { text: 'A rollout tries again what failed.', audit: 'always', level: 2 },
  'rollout.aborted': { text: 'A rollout was aborted, by a call or by a sync or push.', audit: 'always', level: 2 },
  'rollout.finished': { text: 'A rollout has reached all of its projects.', audit: 'always', level: 2 },
  'rollout.rollback_started': { text: 'A rollout is taken back.', audit: 'always', level: 2 },
  'rollout.rolled_back': { text: 'A rollout was taken back everywhere.', audit: 'always', level: 2 },
  'template.rolled_out': { text: 'A rollout changed a project.', audit: 'never', level: 2 },
  'template.rolled_back': { text: 'The rollback of a rollout changed a project.', audit: 'never', level: 2 },
  'template.held': { text: 'A project holds changes of a master board.', audit: 'always', level: 2 },
  'template.unheld': { text: 'A project takes changes of a master board again.', audit: 'always', level: 2 },
  'template.unpinned': { text: 'A project takes contents again that were rolled back.', audit: 'always', level: 2 },
  'platform.created': { text: 'A platform was created.', audit: 'always' },
  'platform.updated': { text: 'A platform was changed.', audit: 'always' },
  'project.created': { text: 'A project was created.', audit: 'always', changesRights: true },
  'project.updated': { text: 'A project was changed.', audit: 'always', changesRights: true },
  'member.added': { text: 'A user became a member of a project.', audit: 'always', changesRights: true },
  'member.updated': { text: 'A member got another role.', audit: 'always', changesRights: true },
  'member.removed': { text: 'A user is no longer a member of a project.', audit: 'always', changesRights: true },
  'invitation.created': { text: 'Somebody was invited to a project.', audit: 'always' },
  'invitation.withdrawn': { text: 'An invitation was withdrawn.', audit: 'always' },
  'invitation.declined': { text: 'An invitation was declined.', audit: 'always' },
  'subscription.trial_set': { text: 'A trial was set.', audit: 'always' },
  'subscription.upgrade_started': { text: 'A checkout was started.', audit: 'always' },
  'subscription.paid': { text: 'A subscription was activated.', audit: 'always' },
  'subscription.changed': { text: 'A subscription got another state.', audit: 'always' },
  'plan.set': { text: 'A plan was set.', audit: 'always' },
  'theme.created': { text: 'A theme was created.' },
  'theme_version.submitted': { text: 'A version of a theme was submitted.' },
  'theme_version.approved': { text: 'A version of a theme was approved.' },
  'theme_version.rejected': { text: 'A version of a theme was rejected.' },
  'theme_version.published': { text: 'A version of a theme was published.' },
  'theme_version.deprecated': { text: 'A version of a theme was deprecated.' },
  'theme_version.restored': { text: 'The deprecation of a version was undone.' },
  'user.created': { text: 'A user was created.', audit: 'always', changesRights: true },
  'user.updated': { text: 'A user was changed.', audit: 'always', changesRights: true },
  'user.password_changed': { text: 'A user got another password.', audit: 'always', changesRights: true },
  'user.erased': { text: 'A user was erased: their id stays.', audit: 'always', changesRights: true, level: 3 },
  'export.started': { text: 'A user asked for an export of their data.', audit: 'always', level: 3 },
  'second_factor.started': { text: 'A user began to set up a second factor.', audit: 'always' },
  'second_factor.enabled': { text: 'A user enabled a second factor.', audit: 'always' },
  'second_factor.dropped': { text: 'A second factor was dropped.', audit: 'always' },
  'recovery_codes.renewed': { text: 'A user renewed their recovery codes.', audit: 'always' },
  'identity.linked': { text: 'A person linked an account of an identity provider.', audit: 'always', level: 3 },
  'identity.unlinked': {
    text: 'An account of an identity provider was unlinked.',
    audit: 'always',
    changesRights: true,
    level: 3,
  },
  'session.started': { text: 'A user signed in.', audit: 'always' },
  'session.proven': {
    text: 'A user gave their password again, for what needs fresh proof.',
    audit: 'always',
    level: 1,
  },
  'session.ended': { text: 'A user signed out.', audit: 'always', changesRights: true },
  'sessions.ended': { text: 'All sessions of a user were ended.', audit: 'always', changesRights: true },
  'key.created': { text: 'An API key was created.', audit: 'always' },
  'key.exchanged': {
    text: 'A token of another issuer was exchanged for a credential of a service account.',
    audit: 'always',
    level: 3,
  },
  'key.rotated': { text: 'An API key got another secret.', audit: 'always', changesRights: true },
  'key.revoked': { text: 'An API key was revoked.', audit: 'always', changesRights: true },
  'mail.retried': { text: 'A mail that had failed is tried again.', audit: 'always', level: 3 },
  'identity_issuer.created': { text: 'An issuer of tokens was added.', audit: 'always', level: 3 },
  'identity_issuer.deleted': {
    text: 'An issuer of tokens was deleted, with its rules and their credentials.',
    ...{ audit: 'always', changesRights: true, level: 3 },
  },
  'identity_rule.created': { text: 'A rule for tokens of an issuer was created.', audit: 'always', level: 3 },
  'identity_rule.updated': {
    text: 'A rule for tokens was changed: unless only its name was, its credentials ended.',
    ...{ audit: 'always', changesRights: true, level: 3 },
  },
  'identity_rule.deleted': {
    text: 'A rule for tokens was deleted, with its credentials.',
    ...{ audit: 'always', changesRights: true, level: 3 },
  },
  'webhook.created': { text: 'A webhook was created.', audit: 'always' },
  'webhook.updated': { text: 'A webhook was changed.', audit: 'always' },
  'webhook.deleted': { text: 'A webhook was deleted.', audit: 'always' },
  'webhook.rotated': { text: 'A webhook got another secret.', audit: 'always' },
  'webhook.redelivered': { text: 'Events are sent to a webhook again.', audit: 'always' },
  'webhook.skipped': { text: 'An event was skipped, which a webhook could not deliver.', audit: 'always', level: 1 },
  'webhook.tested': { text: 'A test event was sent to a webhook.', audit: 'always' },
  'webhook.disabled': {
    text: 'A webhook was switched off: its receiver is gone or failed for days, or its maker lost the right to it.',
    audit: 'always',
  },
} as const satisfies Record<string, EventTraits>;

export type EventType = keyof typeof TYPES_WITH_TRAITS;
export const EVENT_TYPES: Readonly<Record<EventType, EventTraits>> = TYPES_WITH_TRAITS;

/** The traits of a type that another version may have written; undefined if this one does not know it. */
export const traitsOf = (type: string): EventTraits | undefined => (EVENT_TYPES as Record<string, EventTraits>)[type];

/** Whether it can happen in a project: its owners see it, and its webhooks get it. */
export const isOfProjects = (type: string): boolean => !OUTSIDE_OF_PROJECTS.test(type);
const OUTSIDE_OF_PROJECTS =
  /^(master_|release|rollout|platform|subscription|plan|theme|user|export|identity|mail|second_factor|recovery|session)/;
