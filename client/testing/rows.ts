import { EXAMPLES } from './examples.ts';
import type { Rows } from './rowTypes.ts';

let made = 0;

/** A copy, since rows have lists and dates that a test may change. */
const exampleOf = <Name extends keyof Rows>(name: Name): Rows[Name] => structuredClone(EXAMPLES[name]);

/** Complete rows for results of `fakeClient`: each has a new id and the fields that are given, the others are defaults. */
export function aProject(fields: Partial<Rows['project']> = {}): Rows['project'] {
  const id = ++made;
  return { ...exampleOf('project'), id, name: `Project ${id}`, is_active: true, ...fields };
}

/** A board of project 1. Its counts are those of its `groups`, unless they are given: `aBoard({ groups: [aGroup()] })`. */
export function aBoard(fields: Partial<Rows['board']> = {}): Rows['board'] {
  const { groups = [] } = fields;
  const counts = { groups_count: groups.length, cards_count: groups.flatMap(({ cards }) => cards).length };
  return { ...exampleOf('board'), ...IN_PROJECT, id: ++made, ...counts, ...fields };
}

/** A group of project 1: `aGroup({ title: 'To do', cards: [aCard()] })`. */
export const aGroup = (fields: Partial<Rows['group']> = {}): Rows['group'] => ({
  ...exampleOf('group'),
  ...IN_PROJECT,
  id: ++made,
  ...fields,
});

/** A card of project 1, without a group, an owner and a due date: `aCard({ title: 'Write the post' })`. */
export function aCard(fields: Partial<Rows['card']> = {}): Rows['card'] {
  const id = ++made;
  const card_type = fields.tour_key ? 'tour' : 'regular';
  return { ...exampleOf('card'), ...IN_PROJECT, id, unique_identifier: `card-${id}`, card_type, ...fields };
}

/** A comment of project 1, with its `replies`: `aComment({ comment: 'Done?', replies: [aComment()] })`. */
export const aComment = (fields: Partial<Rows['comment']> = {}): Rows['comment'] => ({
  ...exampleOf('comment'),
  id: ++made,
  replies_count: fields.replies?.length ?? 0,
  ...fields,
});

/** A tag of project 1: `aTag({ name: 'Content' })`. */
export const aTag = (fields: Partial<Rows['tag']> = {}): Rows['tag'] => ({
  ...exampleOf('tag'),
  id: ++made,
  ...fields,
});

/** An event in project 1: `anEvent({ type: 'card.created', subject_id: card.id })`. */
export const anEvent = (fields: Partial<Rows['event']> = {}): Rows['event'] => ({
  ...exampleOf('event'),
  ...IN_PROJECT,
  id: String(++made),
  ...fields,
});

const IN_PROJECT = { project_id: 1, platform_id: 1 };
