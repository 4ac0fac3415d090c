import { sql } from 'kysely';
import { connect } from '../../server/database/connect.ts';
import { query } from '../../server/database/query.ts';
import { readSettings } from '../../server/runtime/env.ts';
import type { Operation, Sent } from './load.ts';
import { NO_ANSWER } from './request.ts';
import { CARDS_OF_MASTER_BOARD } from './world.ts';

/** Compares what was acknowledged with what is stored; returns a line for each violation. */
export async function findViolations(settings: Record<string, string>, sent: Sent[]): Promise<string[]> {
  const database = await connect(readSettings(settings));
  try {
    const select = <Row>(statement: string) => query(database.db, sql.raw<Row>(statement));
    const cards = await select<StoredRow>(
      'select id, title as text, description, group_id as place, deleted_at from cards where not is_master and master_card_id is null',
    );
    const comments = await select<StoredRow>('select id, comment as text, card_id as place, deleted_at from comments');
    const groups = await select<{ id: number; position: number }>(
      'select id, position from groups where not is_master',
    );
    return [
      ...answerViolations(sent),
      ...creationViolations(sent, 'cards.create', cards, ({ title, description = null, group_id }) => ({
        text: title,
        description,
        place: group_id,
      })),
      ...creationViolations(sent, 'comments.create', comments, ({ comment, card_id }) => ({
        text: comment,
        place: card_id,
      })),
      ...deletionViolations(sent, cards),
      ...orderViolations(sent, new Map(groups.map(({ id, position }) => [id, position]))),
      ...templateViolations(sent, await select<MasterCard>(MASTER_CARDS), await select<Copied>(COPIED)),
      ...(await select<{ violation: string }>(INVARIANTS)).map(({ violation }) => violation),
    ];
  } finally {
    await database.close();
  }
}

/** Whether a request may have had an effect: it got a 5xx, or its connection broke. */
const isUncertain = ({ outcome, status = 0 }: Sent) => outcome === 'lost' || status >= 500;
const isAcknowledged = ({ outcome }: Sent) => outcome === 'acknowledged';
const sentTo = (sent: Sent[], wanted: Operation) => sent.filter(({ operation }) => operation === wanted);
const summaryOf = ({ operation, surface, outcome, status, code, input }: Sent) =>
  `${surface} ${operation} ${JSON.stringify(input)}, ${outcome} with ${status ?? code}`;

function answerViolations(sent: Sent[]): string[] {
  return sent.flatMap((one) => [
    ...one.undocumented.map((line) => `${summaryOf(one)}: ${line}`),
    ...(one.code === NO_ANSWER ? [`${summaryOf(one)}: never answered`] : []),
  ]);
}

type StoredRow = {
  id: number;
  text: string;
  description?: string | null;
  place: number | null;
  deleted_at: Date | null;
};

/** Acknowledged writes are stored once, as sent; refused ones are not stored; uncertain ones at most once. */
function creationViolations(
  sent: Sent[],
  operation: Operation,
  stored: StoredRow[],
  wanted: (input: any) => Partial<StoredRow>,
): string[] {
  const byText = Map.groupBy(stored, ({ text }) => text);
  return sentTo(sent, operation).flatMap((one) => {
    const expected = wanted(one.input);
    const found = byText.get(expected.text!) ?? [];
    if (found.length > 1) return [`${summaryOf(one)}: stored ${found.length} times`];
    if (!isAcknowledged(one))
      return found.length === 1 && !isUncertain(one) ? [`${summaryOf(one)}: stored, though not acknowledged`] : [];
    if (found.length === 0) return [`${summaryOf(one)}: lost`];
    const isAsSent = Object.entries({ ...expected, id: one.id }).every(
      ([field, value]) => found[0]![field as 'id'] === value,
    );
    return isAsSent ? [] : [`${summaryOf(one)}: stored as ${JSON.stringify(found[0])}`];
  });
}

function deletionViolations(sent: Sent[], cards: StoredRow[]): string[] {
  const deletions = new Map(sentTo(sent, 'cards.delete').map((one) => [one.input.id as number, one]));
  return cards.flatMap(({ id, deleted_at }) => {
    const deletion = deletions.get(id);
    if (deletion && isUncertain(deletion)) return [];
    if (deletion && isAcknowledged(deletion)) return deleted_at ? [] : [`${summaryOf(deletion)}: not deleted`];
    return deleted_at ? [`card ${id} is deleted without a request`] : [];
  });
}

/** Groups must have the positions of one reorder: the last acknowledged one, or a later or uncertain one. */
function orderViolations(sent: Sent[], positions: Map<number, number>): string[] {
  const groupIds = ({ input }: Sent) => input.groups.map(({ id }: { id: number }) => id).join();
  return [...Map.groupBy(sentTo(sent, 'groups.reorder'), groupIds).values()].flatMap((reorders) => {
    const ids: number[] = reorders[0]!.input.groups.map(({ id }: { id: number }) => id);
    const found = ids.map((id) => positions.get(id)!);
    const isStored = ({ input }: Sent) => input.groups.every(({ position }: any, at: number) => position === found[at]);
    const effective = reorders.filter((one) => isAcknowledged(one) || isUncertain(one));
    const last = reorders.filter(isAcknowledged).reduce((latest, { sentAt }) => Math.max(latest, sentAt), 0);
    // Reorders answered before the last one was sent have been overwritten.
    const possible = effective.filter((one) => one.sentAt + one.milliseconds >= last || isUncertain(one));
    if (possible.some(isStored) || (!reorders.some(isAcknowledged) && found.every((position) => position === 0)))
      return [];
    return [`groups ${ids} are at ${found}, which no possible reorder sent`];
  });
}

type MasterCard = { id: number; title: string; board_id: number; copies: number; projects: number };
type Copied = { board_id: number; project_id: number; cards: number };

const MASTER_CARDS = `
  select m.id, m.title, g.board_id, (select count(*)::int from cards c where c.master_card_id = m.id) as copies,
    (select count(*)::int from projects where is_active) as projects
  from cards m join groups g on g.id = m.group_id where m.is_master`;

const COPIED = `
  select mg.board_id, c.project_id, count(*)::int as cards
  from cards c join cards m on m.id = c.master_card_id join groups mg on mg.id = m.group_id
  group by mg.board_id, c.project_id`;

/** A pushed card is in every project or in none; a synced board is in a project with all of its cards or not at all. */
function templateViolations(sent: Sent[], masterCards: MasterCard[], copied: Copied[]): string[] {
  const byTitle = Map.groupBy(masterCards, ({ title }) => title);
  const pushes = sentTo(sent, 'masterCards.create');
  const pushed = pushes.flatMap((one) => {
    const found = byTitle.get(one.input.title) ?? [];
    if (found.length === 0) return isAcknowledged(one) ? [`${summaryOf(one)}: lost`] : [];
    if (found.length > 1 || found[0]!.copies !== found[0]!.projects)
      return [`${summaryOf(one)}: stored as ${JSON.stringify(found)}`];
    return isAcknowledged(one) || isUncertain(one) ? [] : [`${summaryOf(one)}: stored, though not acknowledged`];
  });

  const synced = sentTo(sent, 'masterBoards.sync')
    .filter(isAcknowledged)
    .flatMap((one) => {
      const cards = masterCards.filter(({ board_id }) => board_id === one.input.board_id);
      const missing = cards.filter(({ copies, projects }) => copies !== projects);
      return missing.length > 0 ? [`${summaryOf(one)}: ${missing.length} cards are not in every project`] : [];
    });
  const pushedBoard = masterCards.find(({ title }) => pushes.some(({ input }) => input.title === title))?.board_id;
  const partial = copied.filter(({ board_id, cards }) => board_id !== pushedBoard && cards !== CARDS_OF_MASTER_BOARD);
  return [...pushed, ...synced, ...partial.map((copy) => `partial copy of a master board: ${JSON.stringify(copy)}`)];
}

/** Cards and comments that requests have created. */
const CREATED = `
  select 'card' as kind, id from cards where not is_master and master_card_id is null
  union all select 'comment', id from comments`;

const INVARIANTS = `
  select 'master card ' || master_card_id || ' has ' || count(*) || ' copies in project ' || project_id as violation
  from cards where master_card_id is not null group by master_card_id, project_id having count(*) > 1
  union all
  select 'subscription ' || s.id || ' is ' || s.status || ' with ' || count(c.id) || ' paid checkouts'
  from subscriptions s left join checkouts c on c.subscription_id = s.id and c.status = 'paid'
  group by s.id having count(c.id) <> (case when s.status = 'paid' then 1 else 0 end)
  union all
  select 'subscription ' || s.id || ' has the plan of another checkout' from subscriptions s
  where s.status = 'paid' and not exists (select from checkouts c where c.subscription_id = s.id and c.status = 'paid' and c.plan_id = s.plan_id)
  union all
  select r.kind || ' ' || r.id || ' has ' || count(e.id) || ' events of its creation' from (${CREATED}) as r
  left join events e on e.type = r.kind || '.created' and e.subject_id = r.id group by r.kind, r.id having count(e.id) <> 1
  union all
  select 'event ' || e.id || ' of a row that is not there' from events e
  where e.type in ('card.created', 'comment.created') and not exists (select from (${CREATED}) as r where r.id = e.subject_id and e.type = r.kind || '.created')
  union all
  select 'card ' || c.id || ' is ' || case when c.deleted_at is null then 'not ' else '' end || 'deleted with ' || count(e.id) || ' events'
  from cards c left join events e on e.type = 'card.deleted' and e.subject_id = c.id where not c.is_master
  group by c.id, c.deleted_at having count(e.id) <> (case when c.deleted_at is null then 0 else 1 end)`;
