import { randomUUID } from 'node:crypto';
import type { Write } from './history.ts';

/** What a caller sends next, with what each row has afterwards. */
export type Sending = { operation: string; input: Record<string, unknown>; writes: Write[]; card?: number };

/** The rows that all callers work on: few, so that they meet. */
export type Pool = {
  groups: number[];
  cards: number[];
  deleted: number[];
  comments: number[];
  tags: number[];
  copies: number[];
};

/** A whole number below a limit. */
export type Random = (limit: number) => number;

const MOST_CARDS = 12;

export const getCard = (id: number): Sending => ({ operation: 'cards.get', input: { id }, writes: [], card: id });

/** The next call of a caller. Without `versionOf`, only reads. Titles are unique, so that a value tells who wrote it. */
export function nextSending(pool: Pool, random: Random, versionOf?: (row: string) => string | undefined): Sending {
  const any = <Row>(rows: Row[]) => rows[random(rows.length)]!;
  const group_id = any(pool.groups);
  const id = random(6) === 0 && pool.copies.length > 0 ? any(pool.copies) : any(pool.cards);
  if (!versionOf && id !== undefined) return getCard(id);
  const isNew = pool.cards.length < MOST_CARDS || random(30) === 0;
  const create = () => ({ title: randomUUID(), group_id });
  const update = (card: number, required: boolean) => {
    const if_version = required ? versionOf?.(`card ${card}`) : undefined;
    return { id: card, title: randomUUID(), ...(if_version && { if_version }) };
  };
  const created = (noun: string, input: Record<string, unknown>, fields = input): Sending => ({
    ...{ operation: `${noun}.create`, input, writes: [{ verb: 'created', fields }] },
  });
  const changed = (
    verb: Write['verb'],
    operation: string,
    row: string,
    { if_version, ...input }: Record<string, any>,
    more: Partial<Write> = {},
  ): Sending => {
    const condition = if_version === undefined ? {} : { condition: Number.parseInt(if_version, 10) };
    const write: Write = { row, verb, fields: {}, ...condition, ...more };
    const card = operation.startsWith('cards.') ? { card: input.id } : {};
    return { operation, input: { ...input, ...(if_version && { if_version }) }, writes: [write], ...card };
  };
  if (isNew || pool.cards.length === 0) {
    if (random(3) > 0) return created('cards', create());
    const cards = [create(), create(), create()];
    return {
      operation: 'cards.createMany',
      input: { cards },
      writes: cards.map((fields) => ({ verb: 'created', fields })),
    };
  }

  const choice = random(100);
  if (choice < 25) return getCard(id);
  if (choice < 50) {
    const input = update(id, random(2) > 0);
    const tag = pool.tags.length > 0 && random(3) === 0 ? { tag_id: any(pool.tags) } : {};
    return changed('updated', 'cards.update', `card ${id}`, { ...input, ...tag }, { fields: { title: input.title } });
  }
  if (choice < 62) {
    const rows = [...new Set([id, any(pool.cards), any(pool.cards)])].map((card) => update(card, random(3) > 0));
    const mayBeRefused = random(2) > 0;
    const writes = rows.map(
      (row) => changed('updated', '', `card ${row.id}`, row, { fields: { title: row.title }, mayBeRefused }).writes[0]!,
    );
    return { operation: 'cards.updateMany', input: { cards: rows, ...(mayBeRefused && { mode: 'each' }) }, writes };
  }
  if (choice < 77) {
    const { title, ...named } = update(id, random(4) === 0);
    const input = { ...named, group_id, ...(random(3) > 0 && { position: 1 + random(4) }) };
    return changed('moved', 'cards.move', `card ${id}`, input, { fields: { group_id }, mayBeVoid: true });
  }
  if (choice < 80 && !pool.copies.includes(id)) {
    pool.cards.splice(pool.cards.indexOf(id), 1);
    return changed('deleted', 'cards.delete', `card ${id}`, { id });
  }
  if (choice < 83 && pool.deleted.length > 0) {
    const gone = pool.deleted.shift()!;
    return changed('restored', 'cards.restore', `card ${gone}`, { id: gone }, { mayBeVoid: true });
  }
  if (choice < 86) return created('tags', { name: randomUUID() });
  if (choice < 88 && pool.tags.length > 4) {
    const tag = pool.tags.shift()!;
    return changed('deleted', 'tags.delete', `tag ${tag}`, { id: tag });
  }
  if (choice < 92) {
    const groups = pool.groups.map((group) => ({ id: group, position: 1 + random(9) }));
    return { operation: 'groups.reorder', input: { groups }, writes: [] };
  }
  const comment = pool.comments.at(-1 - random(3));
  if (choice < 96 && comment !== undefined)
    return changed('read', 'comments.markRead', `comment ${comment}`, { id: comment }, { mayBeVoid: true });
  return created('comments', { card_id: id, comment: randomUUID() });
}
