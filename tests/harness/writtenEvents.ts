import type { EventRow } from '../../server/domain/event/feed.ts';

/**
 * An event as text: its type, `#` for a subject, its place, and its data; ids, counts and random texts are `#`. Changed fields that
 * the expected text does not name, such as new ones, are left out.
 */
export function inShort({ type, project_id, platform_id, subject_id, data }: EventRow, expected = ''): string {
  const place = project_id !== null ? ' in a project' : platform_id !== null ? ' in a platform' : '';
  const named = /fields=([\w,]+)/.exec(expected)?.[1]?.split(',') ?? [];
  const parts = Object.entries(data).map(([name, value]) =>
    name === 'fields'
      ? `fields=${(value as string[]).filter((field) => named.includes(field))}`
      : `${name}=${hideIds(value)}`,
  );
  return `${type}${subject_id === null ? '' : ' #'}${place}${parts.length > 0 ? ': ' : ''}${parts.join(' ')}`;
}

const hideIds = (value: unknown) => String(value).replaceAll(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}|^\d[\d,]*$/g, '#');

/** The events that each mutation writes about its start state. */
export const WRITTEN: Record<string, string[]> = {
  'auth.authenticate': ['session.started'],
  'account.signOut': ['session.ended'],
  'account.signOutEverywhere': ['sessions.ended: count=# user_id=#'],
  'account.setDefaultProject': ['user.updated #: fields=default_project_id'],
  'account.acceptInvitation': ['member.added in a project: role=member user_id=# invitation_id=#'],
  'account.declineInvitation': ['invitation.declined # in a project'],
  'account.prove': ['session.proven'],
  'account.changePassword': ['user.password_changed #'],
  'account.startSecondFactor': ['second_factor.started: user_id=#'],
  'account.confirmSecondFactor': ['second_factor.enabled: user_id=#'],
  'account.dropSecondFactor': ['second_factor.dropped: user_id=#'],
  'account.renewRecoveryCodes': ['recovery_codes.renewed: user_id=#'],
  'boards.create': ['board.created # in a project: ids=#'],
  'boards.update': [
    'board.reordered in a project: ids=#',
    'board.updated # in a project: fields=description,title,tool_key',
  ],
  'boards.reorder': ['board.reordered in a project: ids=#'],
  'boards.delete': ['board.deleted # in a project'],
  'boards.restore': ['board.restored # in a project: count=#'],
  'groups.create': ['group.created # in a project: ids=# board_id=#'],
  'groups.update': [
    'group.reordered in a project: ids=#',
    'group.updated # in a project: fields=color,description,icon,title,type',
  ],
  'groups.configure': ['group.updated # in a project: fields=is_active'],
  'groups.reorder': ['group.reordered in a project: ids=#'],
  'groups.delete': ['group.deleted # in a project'],
  'groups.restore': ['group.restored # in a project: count=# board_id=#'],
  'cards.create': ['card.created # in a project: group_id=#'],
  'cards.createMany': ['card.created # in a project: group_id=#'],
  'cards.delete': ['card.deleted # in a project'],
  'cards.restore': ['card.restored # in a project: count=# group_id=null'],
  'cards.update': [
    'card.updated # in a project: fields=description,due_date,owner_id,priority,short_description,sort_order,tag_id,title',
  ],
  'cards.updateMany': [
    'card.updated # in a project: fields=description,due_date,owner_id,priority,short_description,sort_order,tag_id,title',
  ],
  'cards.move': ['card.moved # in a project: ids=# group_id=#'],
  'cards.snooze': ['card.updated # in a project: fields=snoozed_until'],
  'comments.create': ['comment.created # in a project: card_id=# parent_comment_id=null'],
  'comments.markRead': ['comment.read # in a project'],
  'comments.delete': ['comment.deleted # in a project: card_id=#'],
  'comments.restore': ['comment.restored # in a project: count=# card_id=#'],
  'tags.create': ['tag.created # in a project: ids=#'],
  'tags.update': ['tag.reordered in a project: ids=#', 'tag.updated # in a project: fields=color,icon,name'],
  'tags.delete': ['tag.deleted # in a project: ids=#'],
  'tags.restore': ['tag.restored # in a project: ids=# count=#'],
  'tour.dismissAll': ['tour.dismissed in a project: count=#'],
  'tour.restart': ['tour.restarted in a project: count=#'],
  'masterBoards.sync': ['template.started #: kind=sync run_id=#', 'template.applied # in a project: count=# run_id=#'],
  'masterBoards.delete': ['master_board.deleted #'],
  'masterBoards.restore': ['master_board.restored #: count=#'],
  'masterBoards.create': ['master_board.created #: ids=#'],
  'masterBoards.update': ['master_board.reordered: ids=#', 'master_board.updated #: fields=description,title,tool_key'],
  'masterBoards.reorder': ['master_board.reordered: ids=#'],
  'masterBoards.push': [
    'template.started #: kind=push_board run_id=#',
    'template.applied # in a project: count=# run_id=#',
  ],
  'masterGroups.create': ['master_group.created #: board_id=#'],
  'masterGroups.update': ['master_group.updated #: fields=description,title'],
  'masterGroups.reorder': ['master_group.reordered: ids=#'],
  'masterGroups.delete': ['master_group.deleted #'],
  'masterGroups.restore': ['master_group.restored #: count=# board_id=#'],
  'masterGroups.configure': ['master_group.updated #: fields=color,icon,type'],
  'masterGroups.push': [
    'template.started #: kind=push_group run_id=#',
    'template.applied # in a project: count=# run_id=#',
  ],
  'masterCards.create': ['master_card.created #: group_id=#'],
  'masterCards.push': ['template.started #: kind=push run_id=#', 'template.applied # in a project: count=# run_id=#'],
  'masterCards.delete': ['master_card.deleted #', 'template.removed # in a project: count=# card_id=#'],
  'masterCards.restore': ['master_card.restored #: count=# group_id=#'],
  'masterCards.update': [
    'master_card.updated #: fields=description,evaluation_check,priority,short_description,title,tour_key,unique_identifier',
    'template.applied # in a project: count=# card_id=#',
  ],
  'masterCards.reorder': ['master_card.reordered: ids=#'],
  'subscriptions.upgradeTrial': ['subscription.upgrade_started # in a platform: plan=pro product=product-#'],
  'subscriptions.setTrial': ['subscription.trial_set # in a platform: status=trial product=product-#'],
  'themes.deprecateVersion': ['theme_version.deprecated # in a platform: theme_id=#'],
  'themes.deprecateWithNotice': ['theme_version.deprecated # in a platform: theme_id=#'],
  'themes.undoDeprecation': ['theme_version.restored # in a platform: theme_id=#'],
  'themes.create': ['theme.created # in a platform'],
  'themes.submitVersion': ['theme_version.submitted # in a platform: theme_id=#'],
  'themes.approveVersion': ['theme_version.approved # in a platform: theme_id=#'],
  'themes.rejectVersion': ['theme_version.rejected # in a platform: theme_id=#'],
  'themes.publishVersion': ['theme_version.published # in a platform: theme_id=#'],
  'platforms.create': ['platform.created # in a platform'],
  'platforms.update': ['platform.updated # in a platform: fields=name'],
  'projects.create': ['project.created # in a project'],
  'projects.update': ['project.updated # in a project: count=# fields=name,tools'],
  'users.create': ['user.created #'],
  'users.update': ['user.updated #: fields=default_project_id,email,language,name,rate_limit_per_minute'],
  'users.signOut': ['sessions.ended: count=# user_id=#'],
  'users.dropSecondFactor': ['second_factor.dropped: user_id=#'],
  'members.invite': ['invitation.created # in a project: role=viewer'],
  'members.withdrawInvitation': ['invitation.withdrawn # in a project'],
  'members.add': ['member.added in a project: role=viewer user_id=# invitation_id=#'],
  'members.set': ['member.updated in a project: role=viewer user_id=#'],
  'members.remove': ['member.removed in a project: ids=# role=member user_id=#'],
  'members.leave': ['member.removed in a project: ids=# role=member user_id=#'],
  'plans.set': ['plan.set #: plan=x product=product-#'],
  'webhooks.create': ['webhook.created # in a project'],
  'webhooks.update': ['webhook.updated # in a project: fields=url,types,created_by'],
  'webhooks.delete': ['webhook.deleted # in a project'],
  'webhooks.rotateSecret': ['webhook.rotated # in a project'],
  'webhooks.redeliver': ['webhook.redelivered # in a project: count=# event_id=#'],
  'webhooks.resend': ['webhook.redelivered # in a project: count=# event_id=#'],
  'webhooks.skip': ['webhook.skipped # in a project: event_id=#'],
  'webhooks.sendTest': ['webhook.tested # in a project'],
  'keys.create': ['key.created #: user_id=#'],
  'keys.rotateSelf': ['key.rotated #: user_id=#'],
  'keys.rotate': ['key.rotated #: user_id=#'],
  'keys.revoke': ['key.revoked #: user_id=#'],
};
