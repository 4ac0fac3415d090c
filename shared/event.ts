import { z } from 'zod';
import { EVENT_TYPES, type EventType } from './eventType.ts';
import { count, id, storedChoice, timestamp, untrimmed } from './fields.ts';
import { requestExamples } from './requestExample.ts';

export { EVENT_TYPES, type EventType, isOfProjects, traitsOf } from './eventType.ts';

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
      example: [24, 25],
    }),
    board_id: id.nullable().meta({ description: 'The board of the subject.', example: 3 }),
    version: count.meta({
      description: 'The version of the row after the change: the number that its `ETag` begins with.',
      example: 7,
    }),
    group_id: id.nullable().meta({ description: 'The group of the subject.', example: 8 }),
    card_id: id.nullable().meta({ description: 'The card of the subject.', example: 16 }),
    parent_comment_id: id.nullable().meta({ description: 'The comment that was replied to.', example: null }),
    user_id: id.nullable().meta({ description: 'The user that it is about.', example: 4 }),
    rule_id: id.meta({ description: 'The identity rule.', example: 2 }),
    invitation_id: id.meta({ description: 'The invitation that ended with it.', example: 5 }),
    theme_id: id.meta({ description: 'The theme of the version.', example: 1 }),
    role: z.string().meta({ description: 'The role of the member.', example: 'member' }),
    run_id: id.meta({ description: 'The run of the sync or push.', example: 12 }),
    rollout_id: id.meta({ description: 'The rollout.', example: 6 }),
    number: count.meta({ description: 'The number of the release, or of the stage.', example: 2 }),
    kind: z.string().meta({ description: 'What kind of run it is.', example: 'sync' }),
    count: count.meta({ description: 'How many rows it changed, if it does not name them.', example: 2 }),
    product: z.string().meta({ description: 'The product of the subscription.', example: 'websites' }),
    plan: z.string().meta({ description: 'The plan of the subscription.', example: 'pro' }),
    status: z.string().meta({ description: 'The state of the subscription.', example: 'trial' }),
    event_id: z.string().meta({ description: 'The event that is sent again or skipped.', example: '1042' }),
    reason: z.string().meta({ description: 'Why it was refused or switched off.', example: 'gone' }),
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
    user_id: id.nullable().meta({ description: 'Who did it; null without an account.', example: 4 }),
    key_id: id.nullable().meta({ description: 'The API key that was used.', example: null }),
    surface: storedChoice(SURFACES).meta({ description: 'Where the change came from.', example: 'rest' }),
    request_id: z
      .string()
      .nullable()
      .meta({ description: 'The id of the request.', example: 'a3f1c2d4-5b6e-4f70-8a91-b2c3d4e5f607' }),
    subject_id: id
      .nullable()
      .meta({ description: 'The row that it happened to; its type says which table.', example: 23 }),
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
  card_id: id.nullish().meta({
    description:
      'Only the history of this card, also of a deleted one: its events, and those of its comments except for read marks. Empty if you have no access to the card.',
  }),
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
