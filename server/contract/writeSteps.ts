import type { Given } from './input.ts';

/** The ids of own rows, by the field that names them, and what else later steps need. */
export type Rows = Record<string, unknown>;

/** A call that changes something; the rows that it creates are used by later ones. */
export type Step = {
  call: string;
  /** Tells calls of the same operation apart. */
  title?: string;
  /** `$card_id` stands for the id of the row with this name. */
  input: Given | ((rows: Rows) => Promise<Given>);
  /** A row without which the answer can't have what it keeps: then there is no call. */
  needs?: string;
  /** The name of the created row. */
  creates?: string;
  /** Its status, if it must be refused. */
  fails?: 400 | 404 | 422;
  /** Fields that depend on other rows. */
  ignores?: string[];
  /** The name of the token that it is called with, instead of the caller's; null for none. */
  as?: string | null;
  /** What later steps need of its answer: its name there, and its path in the answer. Asked for until the answer has it. */
  keeps?: Record<string, string>;
};

/** The title of all own rows. */
export const OWN = 'Deckhand contract check';

/** Characters of two, three and four bytes. */
const TEXT = 'Can be deleted: Grüße, 日本語, 🚢';

/** Beside other boards, tags or templates. */
const ignores = ['position'];

const BOARD = { id: '$board_id' };
const GROUP = { id: '$group_id' };
const TAG = { id: '$tag_id' };
const CARD = { id: '$card_id' };
const REPLY = { id: '$reply_comment_id' };
const ORDER = [
  { id: '$group_id', position: 2 },
  { id: '$other_group_id', position: 1 },
];
const FULL_CARD = { title: OWN, group_id: '$group_id', tag_id: '$tag_id', priority: 'high', due_date: '2099-01-31' };

/** On a board of its own. */
export const BOARD_STEPS: Step[] = [
  { call: 'boards.create', input: { title: OWN, description: TEXT }, creates: 'board_id', ignores },
  { call: 'boards.create', title: 'without a title', input: { title: '' }, fails: 422 },
  { call: 'boards.update', input: { ...BOARD, description: null }, ignores },
  { call: 'groups.create', input: { board_id: '$board_id', title: 'First' }, creates: 'group_id' },
  {
    call: 'groups.create',
    title: 'again',
    input: { board_id: '$board_id', title: TEXT, color: '#8a4baf' },
    creates: 'other_group_id',
  },
  { call: 'groups.update', input: { ...GROUP, title: 'Next', color: null } },
  { call: 'groups.configure', input: { ...GROUP, is_active: true } },
  { call: 'groups.reorder', input: { groups: ORDER } },
  { call: 'tags.create', input: { name: OWN, color: '#8a4baf' }, creates: 'tag_id', ignores },
  { call: 'tags.update', input: { ...TAG, color: null }, ignores },
  { call: 'cards.create', input: FULL_CARD, creates: 'card_id' },
  { call: 'cards.create', title: 'again', input: { title: OWN, group_id: '$group_id' }, creates: 'other_card_id' },
  { call: 'cards.get', input: CARD },
  { call: 'cards.list', input: { group_id: '$group_id' } },
  { call: 'cards.update', input: { ...CARD, status: 'closed', description: TEXT } },
  { call: 'cards.update', title: 'with a wrong priority', input: { ...CARD, priority: 'nonsense' }, fails: 422 },
  { call: 'cards.move', input: { ...CARD, group_id: '$other_group_id', position: 1 } },
  {
    call: 'cards.createMany',
    input: { cards: [{ title: OWN, group_id: '$group_id' }, { title: '' }], mode: 'each' },
    creates: 'listed_card_id',
  },
  { call: 'cards.updateMany', input: { cards: [{ id: '$listed_card_id', priority: 'low' }] } },
  { call: 'cards.snooze', input: { ...CARD, until: '2099-01-31T09:30:00Z' } },
  { call: 'comments.create', input: { card_id: '$card_id', comment: TEXT }, creates: 'comment_id' },
  {
    call: 'comments.create',
    title: 'as a reply',
    input: { card_id: '$card_id', comment: 'A reply', parent_comment_id: '$comment_id' },
    creates: 'reply_comment_id',
  },
  { call: 'comments.list', input: { card_id: '$card_id' } },
  { call: 'comments.listReplies', input: { id: '$comment_id' } },
  { call: 'comments.markRead', input: REPLY },
  { call: 'comments.delete', input: REPLY },
  { call: 'comments.restore', input: REPLY },
  { call: 'boards.get', input: BOARD, ignores },
  { call: 'cards.delete', input: CARD },
  { call: 'cards.get', title: 'after its deletion', input: CARD, fails: 404 },
  { call: 'cards.restore', input: CARD },
  { call: 'groups.delete', input: GROUP },
  { call: 'groups.update', title: 'after its deletion', input: { ...GROUP, title: 'x' }, fails: 404 },
  { call: 'groups.restore', input: GROUP },
  { call: 'tags.delete', input: TAG },
  { call: 'tags.restore', input: TAG, ignores },
];

/** What would change other rows of a shared project. */
export const PROJECT_STEPS: Step[] = [
  { call: 'boards.create', title: 'to reorder', input: { title: OWN }, creates: 'board_id', ignores },
  { call: 'boards.reorder', input: { boards: [{ ...BOARD, position: 1 }] } },
  { call: 'members.list', input: { project_id: '$project_id' } },
  { call: 'boards.delete', input: BOARD },
  { call: 'boards.restore', input: BOARD, ignores },
];

/** No project has this tool, so no copies are made. */
const TOOL = 'deckhand-contract-check';

const GENERATED = ['unique_identifier'];

/** A template of its own. */
export const TEMPLATE_STEPS: Step[] = [
  { call: 'masterBoards.create', input: { title: OWN, tool_key: TOOL }, creates: 'board_id', ignores },
  { call: 'masterBoards.update', input: { ...BOARD, description: TEXT }, ignores },
  { call: 'masterGroups.create', input: { board_id: '$board_id', title: 'First' }, creates: 'group_id' },
  { call: 'masterGroups.update', input: { ...GROUP, description: TEXT } },
  { call: 'masterGroups.configure', input: { ...GROUP, is_collapsed: true } },
  { call: 'masterGroups.reorder', input: { board_id: '$board_id', groups: [{ ...GROUP, position: 1 }] } },
  { call: 'masterGroups.list', input: { board_id: '$board_id' } },
  {
    call: 'masterCards.create',
    input: { group_id: '$group_id', title: 'Say hello' },
    creates: 'card_id',
    ignores: GENERATED,
  },
  { call: 'masterCards.update', input: { ...CARD, priority: 'low' }, ignores: GENERATED },
  { call: 'masterCards.reorder', input: { group_id: '$group_id', cards: [{ ...CARD, position: 1 }] } },
  { call: 'masterCards.previewPush', input: { card_id: '$card_id', limit: 1 } },
  { call: 'masterGroups.previewPush', input: { group_id: '$group_id', limit: 1 } },
  { call: 'masterBoards.previewPush', input: { board_id: '$board_id', limit: 1 } },
  { call: 'masterBoards.previewSync', input: { board_id: '$board_id', limit: 1 } },
  { call: 'masterBoards.get', input: BOARD, ignores: [...ignores, ...GENERATED] },
  { call: 'masterCards.delete', input: CARD },
  { call: 'masterGroups.delete', input: GROUP },
  { call: 'masterGroups.restore', input: GROUP },
  { call: 'masterBoards.delete', input: BOARD },
  { call: 'masterBoards.restore', input: BOARD, ignores },
];
