import type { Given } from './input.ts';

/** The ids of own rows, by the field that names them. */
export type Rows = Record<string, number>;

/** A call that changes something; the rows that it creates are used by later ones. */
export type Step = {
  call: string;
  /** Tells calls of the same operation apart. */
  title?: string;
  input: (rows: Rows) => Given;
  /** The rows that must have been created. */
  needs: string[];
  creates?: (data: never) => Rows | undefined;
  /** Its status, if it must be refused. */
  fails?: 400 | 404 | 422;
  /** Fields that depend on other rows. */
  ignores?: string[];
};

/** The title of all own rows. */
export const OWN = 'Deckhand contract check';

/** Characters of two, three and four bytes. */
const TEXT = 'Can be deleted: Grüße, 日本語, 🚢';

/** The id of the created row, as this field of later inputs. */
const as =
  (row: string, field: string) =>
  (data: Record<string, { id: number } | undefined> | undefined): Rows | undefined => {
    const { id } = data?.[row] ?? {};
    return id === undefined ? undefined : { [field]: id };
  };

/** The id of the first card of a list of results. */
function cardOfList(data: { results?: { card?: { id: number } }[] } | undefined): Rows | undefined {
  const id = data?.results?.[0]?.card?.id;
  return id === undefined ? undefined : { listed_card_id: id };
}

const step = (call: string, needs: string[], input: Step['input'], more: Partial<Step> = {}): Step => ({
  call,
  needs,
  input,
  ...more,
});

/** On a board of its own. Positions beside other boards and tags depend on these. */
export const BOARD_STEPS: Step[] = [
  step('boards.create', [], () => ({ title: OWN, description: TEXT }), {
    creates: as('board', 'board_id'),
    ignores: ['position'],
  }),
  step('boards.create', [], () => ({ title: '' }), { title: 'without a title', fails: 422 }),
  step('boards.update', ['board_id'], ({ board_id }) => ({ id: board_id, description: null }), {
    ignores: ['position'],
  }),
  step('groups.create', ['board_id'], ({ board_id }) => ({ board_id, title: 'First' }), {
    creates: as('group', 'group_id'),
  }),
  step('groups.create', ['board_id'], ({ board_id }) => ({ board_id, title: TEXT, color: '#8a4baf' }), {
    title: 'again',
    creates: as('group', 'other_group_id'),
  }),
  step('groups.update', ['group_id'], ({ group_id }) => ({ id: group_id, title: 'Next', color: null })),
  step('groups.configure', ['group_id'], ({ group_id }) => ({ id: group_id, is_active: true })),
  step('groups.reorder', ['group_id', 'other_group_id'], ({ group_id, other_group_id }) => ({
    groups: [
      { id: group_id, position: 2 },
      { id: other_group_id, position: 1 },
    ],
  })),
  step('tags.create', [], () => ({ name: OWN, color: '#8a4baf' }), {
    creates: as('tag', 'tag_id'),
    ignores: ['position'],
  }),
  step('tags.update', ['tag_id'], ({ tag_id }) => ({ id: tag_id, color: null }), { ignores: ['position'] }),
  step(
    'cards.create',
    ['group_id', 'tag_id'],
    ({ group_id, tag_id }) => ({ title: OWN, group_id, tag_id, priority: 'high', due_date: '2099-01-31' }),
    { creates: as('card', 'card_id') },
  ),
  step('cards.create', ['group_id'], ({ group_id }) => ({ title: OWN, group_id }), {
    title: 'again',
    creates: as('card', 'other_card_id'),
  }),
  step('cards.get', ['card_id'], ({ card_id }) => ({ id: card_id }), { ignores: ['version'] }),
  step('cards.list', ['group_id'], ({ group_id }) => ({ group_id })),
  step('cards.update', ['card_id'], ({ card_id }) => ({ id: card_id, status: 'closed', description: TEXT })),
  step('cards.update', ['card_id'], ({ card_id }) => ({ id: card_id, priority: 'nonsense' }), {
    title: 'with a wrong priority',
    fails: 422,
  }),
  step('cards.move', ['card_id', 'other_group_id'], ({ card_id, other_group_id }) => ({
    id: card_id,
    group_id: other_group_id,
    position: 1,
  })),
  step(
    'cards.createMany',
    ['group_id'],
    ({ group_id }) => ({ cards: [{ title: OWN, group_id }, { title: '' }], mode: 'each' }),
    { creates: cardOfList },
  ),
  step('cards.updateMany', ['listed_card_id'], ({ listed_card_id }) => ({
    cards: [{ id: listed_card_id, priority: 'low' }],
  })),
  step('cards.snooze', ['card_id'], ({ card_id }) => ({ id: card_id, until: '2099-01-31T09:30:00Z' })),
  step('comments.create', ['card_id'], ({ card_id }) => ({ card_id, comment: TEXT }), {
    creates: as('comment', 'comment_id'),
  }),
  step(
    'comments.create',
    ['card_id', 'comment_id'],
    ({ card_id, comment_id }) => ({ card_id, comment: 'A reply', parent_comment_id: comment_id }),
    { title: 'as a reply', creates: as('comment', 'reply_comment_id') },
  ),
  step('comments.list', ['card_id'], ({ card_id }) => ({ card_id })),
  step('comments.listReplies', ['comment_id'], ({ comment_id }) => ({ id: comment_id })),
  step('comments.markRead', ['reply_comment_id'], ({ reply_comment_id }) => ({ id: reply_comment_id })),
  step('comments.delete', ['reply_comment_id'], ({ reply_comment_id }) => ({ id: reply_comment_id })),
  step('comments.restore', ['reply_comment_id'], ({ reply_comment_id }) => ({ id: reply_comment_id })),
  step('boards.get', ['board_id'], ({ board_id }) => ({ id: board_id }), { ignores: ['position', 'version'] }),
  step('cards.delete', ['card_id'], ({ card_id }) => ({ id: card_id })),
  step('cards.get', ['card_id'], ({ card_id }) => ({ id: card_id }), { title: 'after its deletion', fails: 404 }),
  step('cards.restore', ['card_id'], ({ card_id }) => ({ id: card_id })),
  step('groups.delete', ['group_id'], ({ group_id }) => ({ id: group_id })),
  step('groups.update', ['group_id'], ({ group_id }) => ({ id: group_id, title: 'x' }), {
    title: 'after its deletion',
    fails: 404,
  }),
  step('groups.restore', ['group_id'], ({ group_id }) => ({ id: group_id })),
  step('tags.delete', ['tag_id'], ({ tag_id }) => ({ id: tag_id })),
  step('tags.restore', ['tag_id'], ({ tag_id }) => ({ id: tag_id }), { ignores: ['position'] }),
];

/** What would change other rows of a shared project. */
export const PROJECT_STEPS: Step[] = [
  step('boards.create', [], () => ({ title: OWN }), {
    title: 'to reorder',
    creates: as('board', 'board_id'),
    ignores: ['position'],
  }),
  step('boards.reorder', ['board_id'], ({ board_id }) => ({ boards: [{ id: board_id, position: 1 }] })),
  step('members.list', ['project_id'], ({ project_id }) => ({ project_id })),
  step('boards.delete', ['board_id'], ({ board_id }) => ({ id: board_id })),
  step('boards.restore', ['board_id'], ({ board_id }) => ({ id: board_id }), { ignores: ['position'] }),
];

/** No project has this tool, so no copies are made. */
const TOOL = 'deckhand-contract-check';

/** A template of its own; beside others, its position depends on them. */
export const TEMPLATE_STEPS: Step[] = [
  step('masterBoards.create', [], () => ({ title: OWN, tool_key: TOOL }), {
    creates: as('board', 'board_id'),
    ignores: ['position'],
  }),
  step('masterBoards.update', ['board_id'], ({ board_id }) => ({ id: board_id, description: TEXT }), {
    ignores: ['position'],
  }),
  step('masterGroups.create', ['board_id'], ({ board_id }) => ({ board_id, title: 'First' }), {
    creates: as('group', 'group_id'),
  }),
  step('masterGroups.update', ['group_id'], ({ group_id }) => ({ id: group_id, description: TEXT })),
  step('masterGroups.configure', ['group_id'], ({ group_id }) => ({ id: group_id, is_collapsed: true })),
  step('masterGroups.reorder', ['board_id', 'group_id'], ({ board_id, group_id }) => ({
    board_id,
    groups: [{ id: group_id, position: 1 }],
  })),
  step('masterGroups.list', ['board_id'], ({ board_id }) => ({ board_id })),
  step('masterCards.create', ['group_id'], ({ group_id }) => ({ group_id, title: 'Say hello' }), {
    creates: as('card', 'card_id'),
    ignores: ['unique_identifier'],
  }),
  step('masterCards.update', ['card_id'], ({ card_id }) => ({ id: card_id, priority: 'low' }), {
    ignores: ['unique_identifier'],
  }),
  step('masterCards.reorder', ['group_id', 'card_id'], ({ group_id, card_id }) => ({
    group_id,
    cards: [{ id: card_id, position: 1 }],
  })),
  step('masterCards.previewPush', ['card_id'], ({ card_id }) => ({ card_id, limit: 1 })),
  step('masterGroups.previewPush', ['group_id'], ({ group_id }) => ({ group_id, limit: 1 })),
  step('masterBoards.previewPush', ['board_id'], ({ board_id }) => ({ board_id, limit: 1 })),
  step('masterBoards.previewSync', ['board_id'], ({ board_id }) => ({ board_id, limit: 1 })),
  step('masterBoards.get', ['board_id'], ({ board_id }) => ({ id: board_id }), {
    ignores: ['position', 'unique_identifier', 'version'],
  }),
  step('masterCards.delete', ['card_id'], ({ card_id }) => ({ id: card_id })),
  step('masterGroups.delete', ['group_id'], ({ group_id }) => ({ id: group_id })),
  step('masterGroups.restore', ['group_id'], ({ group_id }) => ({ id: group_id })),
  step('masterBoards.delete', ['board_id'], ({ board_id }) => ({ id: board_id })),
  step('masterBoards.restore', ['board_id'], ({ board_id }) => ({ id: board_id }), { ignores: ['position'] }),
];
