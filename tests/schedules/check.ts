import { sql } from 'kysely';
import { type Db, oneRow, query } from '../../server/database/query.ts';
import { anomaliesOf } from '../history/check.ts';
import type { Call, FeedEvent, History, Shown } from '../history/history.ts';
import type { Called } from './attempts.ts';
import { MAIL_SERVER, type Received } from './outside.ts';
import type { World } from './world.ts';

/** Whether no work of the nodes is left. A lease may have been lost behind the last event. */
export async function isAtRest(db: Db): Promise<boolean> {
  const { left } = oneRow(
    await query(
      db,
      sql<{ left: boolean }>`
        select exists (select from webhooks w where exists (
            select from events e where e.project_id = w.project_id and (w.types is null or e.type = any(w.types))
              and (e.transaction_id, e.id) > (w.after_transaction, w.after_event)))
          or exists (select from mails where state = 'waiting') or exists (select from exports where state = 'waiting')
          or exists (select from rollouts where state in ('running', 'rolling_back')) as left`,
    ),
  );
  return !left;
}

type Found = { problem: string };

/** What is wrong after all work is done. */
export async function findProblems(
  db: Db,
  world: World,
  { called, calls }: { called: Called[]; calls: Call[] },
  received: Received,
): Promise<string[]> {
  const problems = [...(await checkCalls(db, called)), ...(await checkMails(db, received))];
  for (const { name, text } of anomaliesOf(await historyOf(db, world, calls, received)))
    problems.push(`${name}: ${text}`);
  for (const rule of RULES) problems.push(...(await query(db, rule)).map(({ problem }) => problem));
  return problems;
}

/** What the clients saw, with the feed, the last rows, and what the webhooks got. */
async function historyOf(db: Db, world: World, calls: Call[], received: Received): Promise<History> {
  const webhooks = await query(
    db,
    sql<{
      url: string;
      types: string[] | null;
    }>`select url, types from webhooks where id = any(${world.webhooks}) order by id`,
  );
  const cards = [...world.cards, ...world.copies].map((id) => `card ${id}`);
  const older = [...cards, ...world.tags.map((id) => `tag ${id}`)];
  return {
    calls,
    events: await query(db, EVENTS),
    rows: await query(db, ROWS),
    webhooks: webhooks.map(({ url, types }) => ({ name: url, types, arrived: [...(received.get(url)?.keys() ?? [])] })),
    older: new Map(older.map((row) => [row, 1])),
    copies: new Set(world.copies.map((id) => `card ${id}`)),
  };
}

/** The events of the project, which its webhooks get. */
const EVENTS = sql<FeedEvent>`
  select id::text, type, request_id, subject_id, data from events where project_id = (select min(id) from projects)
  order by transaction_id, events.id`;

const ROWS = sql<Shown>`
  select 'card ' || id as row, version, jsonb_build_object('title', title, 'group_id', group_id) as fields
  from cards where deleted_at is null and not is_master
  union all select 'comment ' || id, version, jsonb_build_object('comment', comment) from comments where deleted_at is null
  union all select 'tag ' || id, version, jsonb_build_object('name', name) from tags where deleted_at is null`;

/** A repeat with the same key has the same answer; each sync ran as often as its answers say. */
async function checkCalls(db: Db, called: Called[]): Promise<string[]> {
  const problems: string[] = [];
  for (const { path, mark, key, results } of called) {
    const different = new Set(results.map((result) => JSON.stringify(result)));
    if (key !== undefined && different.size > 1)
      problems.push(`${path} ${mark}: repeats have other answers: ${[...different]}`);
  }
  const syncs = called.filter(({ path }) => path === 'masterBoards.sync');
  const answered = syncs.filter(({ results }) => results.length > 0).length;
  const { runs, unfinished, copies } = oneRow(await query(db, RUNS));
  const lost = syncs.reduce((sum, { unknown }) => sum + unknown, 0);
  const takenOver = syncs.reduce((sum, { executed }) => sum + Math.max(0, executed - 1), 0);
  if (runs < answered || runs > answered + lost + takenOver)
    problems.push(`${runs} runs of ${answered} syncs, ${lost} attempts were lost, ${takenOver} taken over.`);
  if (unfinished > lost) problems.push(`${unfinished} runs have no end, but ${lost} attempts were lost.`);
  const isUndone = called.some(({ path }) => path === 'rollouts.rollback');
  if (answered > 0 && !isUndone && copies !== 'complete') problems.push('A project lacks cards of a sync.');
  return problems;
}

const RUNS = sql<{ runs: number; unfinished: number; copies: string }>`
  select count(*)::int as runs, count(*) filter (where finished_at is null)::int as unfinished,
    case when exists (select from projects p join cards m on m.is_master
      where not exists (select from cards c where c.project_id = p.id and c.master_card_id = m.id)) then 'missing' else 'complete' end as copies
  from template_runs`;

/** Each mail was sent. */
async function checkMails(db: Db, received: Received): Promise<string[]> {
  const sent = await query(
    db,
    sql<Found>`select 'Mail ' || id || ' is ' || state as problem from mails where state <> 'sent'`,
  );
  const { count } = oneRow(await query(db, sql<{ count: number }>`select count(*)::int as count from mails`));
  const arrived = received.get(MAIL_SERVER)?.size ?? 0;
  const lost = arrived === count ? [] : [`${arrived} of ${count} mails arrived.`];
  return [...lost, ...sent.map(({ problem }) => problem)];
}

const RULES = [
  sql<Found>`
    select coalesce(made.type, told.type) || ' of ' || coalesce(made.id, told.id) || ' has ' || coalesce(told.count, 0) || ' events' as problem
    from (
      select 'card.created' as type, id from cards where created_by is not null and master_card_id is null
      union all select 'comment.created', id from comments
    ) as made full join (
      select type, subject_id as id, count(*) from events where type in ('card.created', 'comment.created') group by type, subject_id
    ) as told on told.type = made.type and told.id = made.id
    where told.count is distinct from 1 or made.id is null`,
  sql<Found>`
    select 'Card ' || c.id || ' is deleted or restored without an event' as problem
    from cards c left join events e on e.type in ('card.deleted', 'card.restored') and e.subject_id = c.id
    where c.project_id is not null and c.title <> 'An old card' group by c.id
    having coalesce(sum(case e.type when 'card.deleted' then 1 when 'card.restored' then -1 end), 0) <> (c.deleted_at is not null)::int`,
  sql<Found>`
    select 'Rollout ' || o.id || ' is ' || o.state || ' with ' || count(e.id) || ' events' as problem
    from rollouts o left join events e on e.subject_id = o.id
      and e.type = case o.state when 'rolled_back' then 'rollout.rolled_back' else 'rollout.finished' end
    group by o.id having count(e.id) <> (o.state in ('done', 'rolled_back'))::int`,
  sql<Found>`
    select 'Rollout ' || o.id || ' is done, but project ' || t.project_id || ' is ' || t.state as problem
    from rollouts o join rollout_targets t on t.rollout_id = o.id where o.state = 'done' and t.state not in ('done', 'unchanged')`,
];
