import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { type Db, query } from '../../server/database/query.ts';
import type { Client, NextRequest, Request, Sent } from './load.ts';
import { PASSWORD, PROJECTS_WITH_TOOL, type UpgradeWorld } from './upgradeWorld.ts';

/** Deleted cards can be restored once the upgrade is finished. */
export type Phase = { isFinished: boolean };

/** Requests that every version since the first one accepts, and restores at the end: none may fail during an upgrade. */
export const clientsOf = (world: UpgradeWorld, { isRecent }: { isRecent: boolean }, phase: Phase): Client[] => [
  ...world.members.map(({ token, groups }) => ({ token, next: workOf(groups, isRecent), pauseMilliseconds: 20 })),
  ...world.members.slice(0, 2).map(({ token, groups }) => ({
    token,
    next: deletesOf(groups, phase),
    pauseMilliseconds: 50,
  })),
  { token: world.superadmin, next: pushesOf(world), pauseMilliseconds: 1000 },
  { token: world.superadmin, next: signInsOf(world), pauseMilliseconds: 200 },
];

/** With idempotency keys, each create is sent twice, through two nodes. */
function workOf(groups: number[], hasKeys: boolean): NextRequest {
  let card: number | undefined;
  let comment: number | undefined;
  let round = 0;
  let repeated: Request | undefined;
  const next = (): Request => {
    const text = randomUUID();
    const work: Request[] = [
      { operation: 'cards.create', input: { title: text, description: text, group_id: groups[0] } },
      { operation: 'comments.create', input: { card_id: card, comment: text } },
      { operation: 'cards.list', input: { limit: 20 } },
      { operation: 'comments.create', input: { card_id: card, comment: text, parent_comment_id: comment } },
      { operation: 'cards.move', input: { id: card, group_id: groups[1], position: 1 } },
      { operation: 'comments.list', input: { card_id: card } },
      { operation: 'cards.update', input: { id: card, priority: 'high' } },
      { operation: 'boards.list', input: {} },
    ];
    return work[round++ % work.length]!;
  };
  return (previous) => {
    if (previous?.operation === 'cards.create') card = previous.id;
    if (previous?.operation === 'comments.create') comment = previous.id;
    if (repeated) {
      const again = repeated;
      repeated = undefined;
      return again;
    }
    // Without the card of a failed request there is nothing to work on.
    if (card === undefined) round = 0;
    const request = next();
    if (hasKeys && request.operation.endsWith('.create')) {
      request.idempotencyKey = randomUUID();
      repeated = request;
    }
    return request;
  };
}

/** Creates and deletes cards; once the upgrade is finished, it also restores every deleted card. */
function deletesOf(groups: number[], phase: Phase): NextRequest {
  const deleted: number[] = [];
  return (previous) => {
    const isAcknowledged = previous?.outcome === 'acknowledged';
    if (previous?.operation === 'cards.create' && isAcknowledged)
      return { operation: 'cards.delete', input: { id: previous.id } };
    if (previous?.operation === 'cards.delete' && isAcknowledged) deleted.push(previous.input.id);
    const [id] = phase.isFinished ? deleted.splice(0, 1) : [];
    if (id !== undefined) return { operation: 'cards.restore', input: { id } };
    return { operation: 'cards.create', input: { title: randomUUID(), group_id: groups[2] } };
  };
}

const pushesOf =
  ({ masterGroup }: UpgradeWorld): NextRequest =>
  () => ({
    operation: 'masterCards.create',
    input: { group_id: masterGroup, title: randomUUID(), push_to_projects: true },
  });

const signInsOf = ({ members }: UpgradeWorld): NextRequest => {
  let round = 0;
  return () => ({
    operation: 'auth.authenticate',
    input: { email: members[round++ % members.length]!.email, password: PASSWORD },
  });
};

type Stored = { id: number; text: string } & Record<string, unknown>;

/** A line for each acknowledged write that is not stored once and as sent. */
export async function findChanged(db: Db, sent: Sent[]): Promise<string[]> {
  const acknowledged = sent.filter(({ outcome }) => outcome === 'acknowledged');
  const expected = new Map<string, Stored>();
  const deleted = new Map<string, Stored>();
  for (const { operation, input, id } of acknowledged) {
    if (operation === 'cards.create')
      expected.set(`cards ${id}`, { id: id!, text: input.title, place: input.group_id, priority: 'normal' });
    if (operation === 'cards.move') expected.get(`cards ${input.id}`)!.place = input.group_id;
    if (operation === 'cards.update') expected.get(`cards ${input.id}`)!.priority = input.priority;
    if (operation === 'cards.delete') moveBetween(expected, deleted, `cards ${input.id}`);
    if (operation === 'cards.restore') moveBetween(deleted, expected, `cards ${input.id}`);
    if (operation === 'comments.create')
      expected.set(`comments ${id}`, {
        id: id!,
        text: input.comment,
        place: input.card_id,
        parent: input.parent_comment_id ?? null,
      });
    if (operation === 'masterCards.create')
      expected.set(`templates ${id}`, { id: id!, text: input.title, copies: PROJECTS_WITH_TOOL });
  }
  const texts = JSON.stringify([...expected.values(), ...deleted.values()].map(({ text }) => text));
  const found = await query(
    db,
    sql<{ key: string; row: Stored }>`
    with sent as materialized (select value as text from json_array_elements_text(${texts}::json))
    select 'cards ' || id as key, json_build_object('id', id, 'text', title, 'place', group_id, 'priority', priority) as row
    from cards where title in (select text from sent) and not is_master and master_card_id is null and deleted_at is null
    union all
    select 'comments ' || id, json_build_object('id', id, 'text', comment, 'place', card_id, 'parent', parent_comment_id)
    from comments where comment in (select text from sent) and deleted_at is null
    union all
    select 'templates ' || m.id, json_build_object('id', m.id, 'text', m.title, 'copies', (select count(*) from cards c where c.master_card_id = m.id))
    from cards m where m.is_master and m.title in (select text from sent) and m.deleted_at is null`,
  );
  const stored = new Map(found.map(({ key, row }) => [key, row]));
  const extra = found
    .filter(({ key }) => !expected.has(key))
    .map(
      ({ key }) => `${key} is stored, though it was ${deleted.has(key) ? 'deleted' : 'acknowledged as another row'}`,
    );
  const changed = [...expected].flatMap(([key, wanted]) => {
    const row = stored.get(key);
    if (!row) return [`${key} is lost`];
    return Object.entries(wanted).every(([field, value]) => row[field] === value)
      ? []
      : [`${key} is stored as ${JSON.stringify(row)} instead of ${JSON.stringify(wanted)}`];
  });
  return [...extra, ...changed];
}

function moveBetween<Value>(from: Map<string, Value>, to: Map<string, Value>, key: string): void {
  to.set(key, from.get(key)!);
  from.delete(key);
}
