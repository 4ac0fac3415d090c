import { z } from 'zod';
import { count, id, storedChoice, timestamp, untrimmed } from './fields.ts';
import { requestExamples } from './requestExample.ts';

/** Every type of event, with what happened. The subject is named before the dot. */
export const EVENT_TYPES = {
  'board.created': 'A board was created.',
  'board.updated': 'A board was changed.',
  'board.reordered': 'Boards got other positions.',
  'board.deleted': 'A board was deleted, with its groups and cards.',
  'board.restored': 'The deletion of a board was undone.',
  'group.created': 'A group was created.',
  'group.updated': 'A group was changed.',
  'group.reordered': 'Groups got other positions.',
  'group.deleted': 'A group was deleted, with its cards.',
  'group.restored': 'The deletion of a group was undone.',
  'card.created': 'A card was created.',
  'card.updated': 'A card was changed.',
  'card.moved': 'A card was moved.',
  'card.deleted': 'A card was deleted.',
  'card.restored': 'The deletion of a card was undone.',
  'comment.created': 'A comment was added to a card.',
  'comment.read': 'A comment was marked as read.',
  'comment.deleted': 'A comment was deleted.',
  'comment.restored': 'The deletion of a comment was undone, with its replies.',
  'tag.created': 'A tag was created.',
  'tag.updated': 'A tag was changed.',
  'tag.reordered': 'Tags got other positions.',
  'tag.deleted': 'A tag was deleted.',
  'tag.restored': 'The deletion of a tag was undone: its cards have it again.',
  'tour.dismissed': 'A user dismissed tour cards.',
  'tour.restarted': 'A user restarted the tours.',
  'master_board.created': 'A master board was created.',
  'master_board.updated': 'A master board was changed.',
  'master_board.reordered': 'Master boards got other positions.',
  'master_board.deleted': 'A master board was deleted.',
  'master_board.restored': 'The deletion of a master board was undone.',
  'master_group.created': 'A master group was created.',
  'master_group.updated': 'A master group was changed.',
  'master_group.reordered': 'Master groups got other positions.',
  'master_group.deleted': 'A master group was deleted.',
  'master_group.restored': 'The deletion of a master group was undone.',
  'master_card.created': 'A master card was created.',
  'master_card.updated': 'A master card was changed.',
  'master_card.reordered': 'Master cards got other positions.',
  'master_card.deleted': 'A master card was deleted.',
  'master_card.restored': 'The deletion of a master card was undone.',
  'template.started': 'A sync or push of a template began.',
  'template.applied': 'A sync, a push, or the new identifier or the restore of a master card changed a project.',
  'template.removed': 'Copies of a deleted master card were deleted from a project.',
  'platform.created': 'A platform was created.',
  'platform.updated': 'A platform was changed.',
  'project.created': 'A project was created.',
  'project.updated': 'A project was changed.',
  'member.added': 'A user became a member of a project.',
  'member.updated': 'A member got another role.',
  'member.removed': 'A user is no longer a member of a project.',
  'invitation.created': 'Somebody was invited to a project.',
  'invitation.withdrawn': 'An invitation was withdrawn.',
  'invitation.declined': 'An invitation was declined.',
  'subscription.trial_set': 'A trial was set.',
  'subscription.upgrade_started': 'A checkout was started.',
  'subscription.paid': 'A subscription was activated.',
  'subscription.changed': 'A subscription got another state.',
  'plan.set': 'A plan was set.',
  'theme.created': 'A theme was created.',
  'theme_version.submitted': 'A version of a theme was submitted.',
  'theme_version.approved': 'A version of a theme was approved.',
  'theme_version.rejected': 'A version of a theme was rejected.',
  'theme_version.published': 'A version of a theme was published.',
  'theme_version.deprecated': 'A version of a theme was deprecated.',
  'theme_version.restored': 'The deprecation of a version was undone.',
  'user.created': 'A user was created.',
  'user.updated': 'A user was changed.',
  'user.password_changed': 'A user got another password.',
  'second_factor.started': 'A user began to set up a second factor.',
  'second_factor.enabled': 'A user enabled a second factor.',
  'second_factor.dropped': 'A second factor was dropped.',
  'recovery_codes.renewed': 'A user renewed their recovery codes.',
  'session.started': 'A user signed in.',
  'session.proven': 'A user gave their password again, for what needs fresh proof.',
  'session.ended': 'A user signed out.',
  'sessions.ended': 'All sessions of a user were ended.',
  'key.created': 'An API key was created.',
  'key.rotated': 'An API key got another secret.',
  'key.revoked': 'An API key was revoked.',
  'webhook.created': 'A webhook was created.',
  'webhook.updated': 'A webhook was changed.',
  'webhook.deleted': 'A webhook was deleted.',
  'webhook.rotated': 'A webhook got another secret.',
  'webhook.redelivered': 'Events are sent to a webhook again.',
  'webhook.skipped': 'An event was skipped, which a webhook could not deliver.',
  'webhook.tested': 'A test event was sent to a webhook.',
  'webhook.disabled':
    'A webhook was switched off: its receiver is gone or failed for days, or its maker lost the right to it.',
} as const;

export type EventType = keyof typeof EVENT_TYPES;

/** Types that nodes of the previous version don't know. From level 1 on they are written, and webhooks can be for them. */
export const TYPES_OF_LEVEL_1: ReadonlySet<EventType> = new Set<EventType>([
  ...(['board.restored', 'group.restored', 'card.restored', 'comment.restored', 'tag.restored'] as const),
  ...(['master_board.restored', 'master_group.restored', 'master_card.restored'] as const),
  ...(['session.proven', 'webhook.skipped'] as const),
]);
const TYPES = Object.keys(EVENT_TYPES) as [EventType, ...EventType[]];

/** Where a change came from. */
const SURFACES = ['rest', 'rpc', 'mcp', 'command_line', 'payment', 'service'] as const;
export type EventSurface = (typeof SURFACES)[number];

/** Ids and names only: receivers fetch what they may see. */
const KnownData = z
  .object({
    fields: z.array(z.string()).meta({ description: 'The changed fields.', example: ['title'] }),
    ids: z.array(id).meta({
      description:
        'Further rows that it changed, up to 1,000: those that got another position; cards that lost the deleted tag or the removed member.',
    }),
    board_id: id.nullable().meta({ description: 'The board of the subject.' }),
    group_id: id.nullable().meta({ description: 'The group of the subject.' }),
    card_id: id.nullable().meta({ description: 'The card of the subject.' }),
    parent_comment_id: id.nullable().meta({ description: 'The comment that was replied to.' }),
    user_id: id.nullable().meta({ description: 'The user that it is about.' }),
    invitation_id: id.meta({ description: 'The invitation that ended with it.' }),
    theme_id: id.meta({ description: 'The theme of the version.' }),
    role: z.string().meta({ description: 'The role of the member.', example: 'member' }),
    run_id: id.meta({ description: 'The run of the sync or push.' }),
    kind: z.string().meta({ description: 'What kind of run it is.', example: 'sync' }),
    count: count.meta({ description: 'How many rows it changed, if it does not name them.', example: 2 }),
    product: z.string().meta({ description: 'The product of the subscription.' }),
    plan: z.string().meta({ description: 'The plan of the subscription.' }),
    status: z.string().meta({ description: 'The state of the subscription.' }),
    event_id: z.string().meta({ description: 'The event that is sent again or skipped.', example: '1042' }),
    reason: z.string().meta({ description: 'Why it was refused or switched off.' }),
  })
  .partial();
/** What this version writes. */
export type EventData = z.output<typeof KnownData>;

/** What is read: fields that a later version wrote are passed on. */
export const EventData = KnownData.loose().meta({
  id: 'EventData',
  description: 'Ids and names of changed fields, no contents. Later versions may have further fields.',
});

const WHAT_HAPPENED = { description: 'What happened.', example: 'card.created' };

/** A type in a request. */
export const eventType = z.enum(TYPES).meta(WHAT_HAPPENED);
/** A type in a response: later versions have further ones. */
export const storedEventType = storedChoice(TYPES).meta(WHAT_HAPPENED);

export const Event = z
  .object({
    id: z.string().meta({ description: 'Its id. An event that arrives twice has the same one.', example: '1042' }),
    type: storedEventType,
    created_at: timestamp.meta({ description: 'When the change began.' }),
    platform_id: id.nullable().meta({ description: 'The platform of its project.' }),
    project_id: id.nullable().meta({ description: 'The project where it happened; null outside of projects.' }),
    user_id: id.nullable().meta({ description: 'Who did it; null without an account.' }),
    key_id: id.nullable().meta({ description: 'The API key that was used.' }),
    surface: storedChoice(SURFACES).meta({ description: 'Where the change came from.', example: 'rest' }),
    request_id: z.string().nullable().meta({ description: 'The id of the request.' }),
    subject_id: id.nullable().meta({ description: 'The row that it happened to; its type says which table.' }),
    data: EventData,
  })
  .meta({ id: 'ChangeEvent', description: 'Something that happened.' });

const LARGEST_EVENT_PAGE = 500;

export const EventList = z.object({
  after: untrimmed(100).nullish().meta({
    description:
      '`cursor` of the previous page. The oldest events if not sent; `latest` returns no events, but the cursor of now.',
    example: null,
  }),
  types: z
    .array(eventType)
    .min(1)
    .max(TYPES.length)
    .nullish()
    .meta({ description: 'Only events of these types.', example: ['card.created', 'card.moved'] }),
  project_id: id.nullish().meta({ description: 'Only events of this project.' }),
  limit: z
    .int()
    .min(1)
    .max(LARGEST_EVENT_PAGE)
    .default(100)
    .meta({ description: `The maximum number of events, 1 to ${LARGEST_EVENT_PAGE}; 100 if not sent.` }),
});
EventList.register(requestExamples, { example: { types: ['card.created', 'card.moved'], limit: 20 } });
export type EventList = z.output<typeof EventList>;

const cursor = untrimmed(100).nullish();

export const EventFollow = EventList.pick({ types: true, project_id: true }).extend({
  after: cursor.meta({
    description: '`cursor` of a page of `events.list`, to begin behind it. Now if not sent, as with `latest`.',
    example: null,
  }),
  lastEventId: cursor.meta({
    description: 'The id of the last event that was received, to go on behind it; counts more than `after`.',
    example: null,
  }),
});
EventFollow.register(requestExamples, { example: { types: ['card.created', 'card.moved'] } });
export type EventFollow = z.output<typeof EventFollow>;

export const EventPage = z.object({
  events: z.array(Event).meta({ description: 'The events of this page, in order.' }),
  cursor: z.string().meta({ description: 'Where the next page begins: send it as `after`.' }),
  has_more: z.boolean().meta({ description: 'Whether there are further events already.' }),
});
