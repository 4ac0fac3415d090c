import { z } from 'zod';
import { fieldsOfUpdate } from './changes.ts';
import {
  FUTURE_TIMESTAMP,
  flag,
  HTML,
  IS_ACTIVE,
  id,
  ifVersion,
  lifetime,
  optionalChoice,
  optionalDueDate,
  optionalText,
  optionalTimestamp,
  PLAIN_TEXT,
  PLAIN_TITLE,
  position,
  TIMESTAMP_FORMAT,
  text,
  timestamp,
} from './fields.ts';
import { Page, pageOf } from './paging.ts';
import { PRIORITIES } from './priority.ts';
import { requestExamples } from './requestExample.ts';
import { manyOf, resultsOf } from './rows.ts';

export const CARD_TYPES = ['regular', 'tour'] as const;

export const Card = z
  .object({
    id,
    project_id: id.nullable().meta({ description: 'Its project; null for a master card.' }),
    platform_id: id.nullable().meta({ description: 'The platform of its project; null for a master card.' }),
    master_card_id: id.nullable().meta({ description: 'The master card that it is a copy of.', example: null }),
    group_id: id.nullable().meta({ description: 'Its group; null if it is in none.' }),
    owner_id: id.nullable().meta({ description: 'The project member it is assigned to.' }),
    tag_id: id.nullable().meta({ description: 'Its tag.' }),
    created_by: id.nullable().meta({ description: 'The user who created it; null for a copy of a template.' }),
    sort_order: position.meta({ description: 'Its position in the project; ties are ordered by id.' }),
    position: position.meta({ description: 'Its position in the group; ties are ordered by id.' }),
    is_master: z.boolean().meta({ description: 'Whether it is a template.' }),
    is_active: z.boolean().meta({ description: `${IS_ACTIVE}.`, example: true }),
    is_overdue: z.boolean().meta({
      description:
        'Whether it is not closed and its due date has passed; of a date without a time, the whole day (UTC).',
    }),
    unique_identifier: z
      .string()
      .meta({ description: 'A stable identifier; copies have the one of their master card.' }),
    evaluation_check: z.string().nullable().meta({ description: 'The check that decides whether it is done.' }),
    tour_key: z.string().nullable().meta({ description: 'The key of its tour, if it is a tour card.' }),
    short_description: z
      .string()
      .nullable()
      .meta({ description: `A short description; ${PLAIN_TEXT}.` }),
    title: z.string().meta({ description: PLAIN_TITLE, example: 'Write the launch post' }),
    description: z
      .string()
      .nullable()
      .meta({
        description: `Its description. If \`is_master\` or \`master_card_id\` is set, it ${HTML}; otherwise it is ${PLAIN_TEXT}.`,
      }),
    status: z.string().meta({ description: 'The status of the work.', example: 'open' }),
    priority: z.enum(PRIORITIES).meta({ description: 'Its priority.', example: 'normal' }),
    due_date: timestamp.nullable().meta({ description: 'When it is due.', example: FUTURE_TIMESTAMP }),
    snoozed_until: timestamp.nullable().meta({ description: 'Snoozed until this time.', example: null }),
    ...lifetime,
  })
  .meta({ id: 'Card', description: 'A card.' });
export type Card = z.output<typeof Card>;

export const ListedCard = Card.extend({
  is_dismissed: z.boolean().meta({ description: 'Whether it is a tour card that the caller dismissed.' }),
}).meta({ id: 'ListedCard', description: 'A card as the caller sees it.' });

export const CreatedCard = Card.extend({
  card_type: z.enum(CARD_TYPES).meta({ description: '`tour` if it has a tour_key, else `regular`.' }),
}).meta({ id: 'CreatedCard', description: 'The created card.' });

export const CardCreate = z.object({
  title: text(255).meta({ description: PLAIN_TITLE, example: 'Write the launch post' }),
  description: optionalText().meta({
    description: `Its description; ${PLAIN_TEXT}.`,
    example: 'Two paragraphs and a picture.',
  }),
  group_id: id
    .nullish()
    .meta({ description: 'Its group, where it becomes the last card; if not sent, it is in no group.', example: 7 }),
  status: optionalText(50).meta({ description: 'The status of the work; `open` if not sent.', example: 'open' }),
  owner_id: id.nullish().meta({ description: 'The project member it is assigned to.', example: 3 }),
  tag_id: id.nullish().meta({ description: 'A tag of the project.', example: 1 }),
  due_date: optionalDueDate.meta({
    description: `When it is due: ${TIMESTAMP_FORMAT}. A date without a time is overdue from the next day on.`,
  }),
  priority: optionalChoice(PRIORITIES).meta({ description: 'Its priority; `normal` if not sent.' }),
});
export type CardCreate = z.output<typeof CardCreate>;

export const CardGet = z.object({ id }).register(requestExamples, { example: { id: 16 } });
export const CardDelete = z.object({ id: id.meta({ description: 'The card.', example: 23 }), if_version: ifVersion });
export type CardDelete = z.output<typeof CardDelete>;

const content = CardCreate.omit({ title: true, group_id: true }).shape;
const changes = {
  title: optionalText(255).meta({ description: PLAIN_TITLE }),
  ...content,
  description: content.description.meta({
    description: `Its description. If \`master_card_id\` is set, it ${HTML}; otherwise it is ${PLAIN_TEXT}.`,
  }),
  status: content.status.meta({ description: 'The status of the work.' }),
  priority: content.priority.meta({ description: 'Its priority.' }),
  short_description: optionalText().meta({ description: `A short description; ${PLAIN_TEXT}.` }),
  is_active: flag.meta({ description: `${IS_ACTIVE}.` }),
  sort_order: position.nullish().meta({ description: 'Its position in the project, lowest first.' }),
};
export const CardUpdate = z.object({
  id,
  ...fieldsOfUpdate(changes, Card),
  if_version: ifVersion,
});
CardUpdate.register(requestExamples, { example: { id: 16, status: 'closed', owner_id: 3, tag_id: 1, due_date: null } });
export type CardUpdate = z.output<typeof CardUpdate>;

export const CardCreateMany = manyOf('cards', CardCreate);
CardCreateMany.register(requestExamples, { example: { cards: [{ title: 'Write the launch post' }] } });
export type CardCreateMany = z.output<typeof CardCreateMany>;

export const CardUpdateMany = manyOf('cards', CardUpdate);
CardUpdateMany.register(requestExamples, { example: { cards: [{ id: 16, status: 'closed' }] } });
export type CardUpdateMany = z.output<typeof CardUpdateMany>;

export const SavedCard = Card.pick({
  id: true,
  project_id: true,
  group_id: true,
  position: true,
  sort_order: true,
}).meta({
  id: 'SavedCard',
  description: 'A card that was created or updated with others, without its texts.',
});
export type SavedCard = z.output<typeof SavedCard>;
export const CardResults = resultsOf('card', SavedCard);

export const CardMove = z.object({
  id,
  group_id: id.nullable().meta({ description: 'The new group; null for none.' }),
  position: z
    .int32()
    .min(1)
    .nullish()
    .meta({ description: 'Its position among the cards there that the caller sees, from 1; last if not sent.' }),
  if_version: ifVersion,
});
CardMove.register(requestExamples, { example: { id: 16, group_id: 8, position: 1 } });
export type CardMove = z.output<typeof CardMove>;

export const CardSnooze = z.object({
  id,
  until: optionalTimestamp.meta({
    description: `Snooze until this time: ${TIMESTAMP_FORMAT}. Ends snoozing if not sent or null.`,
  }),
  if_version: ifVersion,
});
CardSnooze.register(requestExamples, { example: { id: 16, until: FUTURE_TIMESTAMP } });
export type CardSnooze = z.output<typeof CardSnooze>;

const SHORT_PAGE = 'Among more than 5,000 cards, a page may be short or empty and still have a `next_cursor`.';

/** A card must match all filters. */
export const CardList = Page.extend({
  board_id: id.nullish().meta({ description: 'Only those on this board.' }),
  group_id: id.nullish().meta({ description: 'Only those in this group.' }),
  is_grouped: flag.meta({
    description: `Only those in a group (true), or only those in none (false), which no board shows. ${SHORT_PAGE}`,
  }),
  owner_id: id.nullish().meta({ description: 'Only those of this owner.' }),
  tag_id: id.nullish().meta({ description: 'Only those with this tag.' }),
  status: optionalText(50).meta({ description: `Only those with this status. ${SHORT_PAGE}` }),
  priority: optionalChoice(PRIORITIES).meta({ description: `Only those with this priority. ${SHORT_PAGE}` }),
  is_overdue: flag.meta({ description: `Only those that are overdue, or only those that are not. ${SHORT_PAGE}` }),
  due_before: optionalTimestamp.meta({ description: `Only those that are due before then. ${SHORT_PAGE}` }),
  include_dismissed: flag.meta({
    description: 'Whether tour cards that the caller dismissed are listed, too; false if not sent.',
  }),
  text: optionalText(255).meta({
    description:
      'Only those with this text in title or descriptions, ignoring case. With fewer than three letters or digits in a row, a page may be short or empty and still have a `next_cursor`.',
  }),
});
CardList.register(requestExamples, { example: { status: 'open', is_grouped: true, limit: 20 } });
export type CardList = z.output<typeof CardList>;

export const CardPage = pageOf('cards', ListedCard);
