import type { Random } from '../harness/random.ts';
import type { Write } from '../history/history.ts';
import type { World } from './world.ts';

/** A call that a client makes, with what each row has afterwards. */
export type Sending = {
  path: string;
  input: object;
  writes: Write[];
  /** Its card: a 404 says that it is gone. */
  card?: number;
  who?: 'owner';
  isKeyed?: boolean;
};

/** The rows that all clients work on: few, so that they meet. */
export type Pool = World & { deleted: number[]; comments: number[] };

/** What a call is made of. Titles and comments begin with the mark, which no other call writes. */
type Choice = {
  pool: Pool;
  random: Random;
  mark: string;
  card: number;
  /** The version of a card that the client has seen, if the call is to require it. */
  seenVersion: (card: number) => string | undefined;
};

export const getCard = (id: number): Sending => ({ path: 'cards.get', input: { id }, writes: [], card: id });

export const nextSending = (choice: Choice): Sending => choice.random.pick(OPERATIONS)(choice);

const OPERATIONS: ((choice: Choice) => Sending)[] = [
  createCard,
  createCard,
  ({ pool: { groups }, random: { pick }, mark }) => {
    const cards = [1, 2].map((number) => ({ title: `${mark}-${number}`, group_id: pick(groups) }));
    const writes = cards.map((fields): Write => ({ verb: 'created', fields }));
    return { path: 'cards.createMany', input: { cards }, writes, isKeyed: true };
  },
  moveCard,
  moveCard,
  updateCard,
  updateCard,
  updateCards,
  ({ card, random }) => ({ ...changeOf('deleted', 'cards.delete', { id: card }), isKeyed: random.isTrue(0.7) }),
  ({ pool: { deleted }, card }) =>
    changeOf('restored', 'cards.restore', { id: deleted.at(-1) ?? card }, { mayBeVoid: true }),
  ({ card, mark }) => {
    const input = { card_id: card, comment: mark };
    return { path: 'comments.create', input, writes: [{ verb: 'created', fields: input }], isKeyed: true };
  },
  ({ pool: { comments }, card }) => {
    const id = comments.at(-1);
    if (id === undefined) return getCard(card);
    const write: Write = { row: `comment ${id}`, verb: 'read', fields: {}, mayBeVoid: true };
    return { path: 'comments.markRead', input: { id }, writes: [write] };
  },
  ({ pool: { groups }, random: { below } }) => ({
    path: 'groups.reorder',
    input: { groups: groups.map((id) => ({ id, position: 1 + below(9) })) },
    writes: [],
  }),
  ({ pool: { tags }, random: { pick } }) => {
    const id = pick(tags);
    return { path: 'tags.delete', input: { id }, writes: [{ row: `tag ${id}`, verb: 'deleted', fields: {} }] };
  },
  asOwner('members.invite', ({ mark }) => ({ email: `${mark}@example.test`, role: 'viewer' })),
  asOwner('webhooks.rotateSecret', ({ pool: { webhooks }, random: { pick } }) => ({ id: pick(webhooks) })),
  () => ({ path: 'account.startExport', input: {}, writes: [] }),
  asOwner('masterCards.update', ({ pool: { masterCards }, random: { pick }, mark }) => ({
    id: pick(masterCards),
    title: mark,
  })),
  (choice) => ({ ...asOwner('masterBoards.sync', syncedBoard)(choice), isKeyed: true }),
];

const syncedBoard = ({ pool }: Choice) => ({ board_id: pool.masterBoard });

function asOwner(path: string, input: (choice: Choice) => object): (choice: Choice) => Sending {
  return (choice) => ({ path, input: input(choice), writes: [], who: 'owner' });
}

function createCard({ pool: { groups }, random, mark }: Choice): Sending {
  const fields = { title: mark, group_id: random.pick(groups) };
  return {
    ...{ path: 'cards.create', input: fields, writes: [{ verb: 'created', fields }] },
    isKeyed: random.isTrue(0.5),
  };
}

function moveCard({ pool: { groups }, random: { pick, below }, card, seenVersion }: Choice): Sending {
  const group_id = pick(groups);
  const input = {
    id: card,
    group_id,
    position: 1 + below(3),
    if_version: below(4) === 0 ? seenVersion(card) : undefined,
  };
  return changeOf('moved', 'cards.move', input, { fields: { group_id }, mayBeVoid: true });
}

function updateCard({ pool: { tags }, random, mark, card, seenVersion }: Choice): Sending {
  const if_version = random.isTrue(0.7) ? seenVersion(card) : undefined;
  const tag = random.isTrue(0.3) ? { tag_id: random.pick(tags) } : {};
  const change = changeOf(
    'updated',
    'cards.update',
    { id: card, title: mark, ...tag, if_version },
    { fields: { title: mark } },
  );
  return { ...change, isKeyed: random.isTrue(0.5) };
}

function updateCards({ pool, random, mark, card, seenVersion }: Choice): Sending {
  const mayBeRefused = random.isTrue(0.6);
  const cards = [...new Set([card, random.pick(pool.cards), random.pick(pool.cards)])].map((id, number) => ({
    ...{ id, title: `${mark}-${number}`, if_version: random.isTrue(0.7) ? seenVersion(id) : undefined },
  }));
  const writes = cards.flatMap(
    (row) => changeOf('updated', '', row, { fields: { title: row.title }, mayBeRefused }).writes,
  );
  return { path: 'cards.updateMany', input: { cards, ...(mayBeRefused && { mode: 'each' }) }, writes };
}

/** A change of one card. */
function changeOf(
  verb: Write['verb'],
  path: string,
  input: { id: number; if_version?: string | undefined; [field: string]: unknown },
  more: Partial<Write> = {},
): Sending {
  const condition = input.if_version === undefined ? {} : { condition: Number.parseInt(input.if_version, 10) };
  const write: Write = { row: `card ${input.id}`, verb, fields: {}, ...condition, ...more };
  return { path, input, writes: [write], card: input.id };
}
