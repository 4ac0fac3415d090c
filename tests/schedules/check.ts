import { sql } from 'kysely';
import { type Db, oneRow, query } from '../../server/database/query.ts';
import type { Called } from './clients.ts';
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
export async function findProblems(db: Db, world: World, called: Called[], received: Received): Promise<string[]> {
  const problems = [...(await checkCalls(db, called)), ...(await checkReceived(db, world, received))];
  for (const rule of RULES) problems.push(...(await query(db, rule)).map(({ problem }) => problem));
  return problems;
}

/** Each call was executed as often as its answers say; a repeat with the same key changes nothing. */
async function checkCalls(db: Db, called: Called[]): Promise<string[]> {
  const problems: string[] = [];
  for (const { path, mark, key, results, unknown } of called) {
    const made = MADE[path];
    if (!made) continue;
    const { count } = oneRow(await query(db, made(mark)));
    const least = key === undefined ? results.length : Math.min(results.length, 1);
    const most = key === undefined ? results.length + unknown : 1;
    if (count < least || count > most) problems.push(`${path} ${mark}: ${count} rows, not ${least} to ${most}.`);
    const ids = new Set(results.map((result) => JSON.stringify(result)));
    if (key !== undefined && ids.size > 1) problems.push(`${path} ${mark}: repeats have other answers: ${[...ids]}`);
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

const MADE: Record<string, (mark: string) => ReturnType<typeof sql<{ count: number }>>> = {
  'cards.create': (mark) => sql`select count(*)::int as count from cards where title = ${mark} and not is_master`,
  'comments.create': (mark) => sql`select count(*)::int as count from comments where comment = ${mark}`,
};

/** Each receiver got each event that it wants, in the order of the feed; each mail was sent. */
async function checkReceived(db: Db, { webhooks }: World, received: Received): Promise<string[]> {
  const problems: string[] = [];
  for (const id of webhooks) {
    const wanted = await query(
      db,
      sql<{ id: string; url: string }>`
        select e.id, w.url from webhooks w join events e on e.project_id = w.project_id and (w.types is null or e.type = any(w.types))
        where w.id = ${id} order by e.transaction_id, e.id`,
    );
    const got = [...(received.get(wanted[0]?.url ?? '')?.keys() ?? [])];
    const expected = wanted.map((event) => event.id);
    if (got.join() !== expected.join()) problems.push(`Webhook ${id} got ${got}, not ${expected}.`);
  }
  const sent = await query(
    db,
    sql<Found>`select 'Mail ' || id || ' is ' || state as problem from mails where state <> 'sent'`,
  );
  const { count } = oneRow(await query(db, sql<{ count: number }>`select count(*)::int as count from mails`));
  const arrived = received.get(MAIL_SERVER)?.size ?? 0;
  if (arrived !== count) problems.push(`${arrived} of ${count} mails arrived.`);
  return [...problems, ...sent.map(({ problem }) => problem)];
}

const RULES = [
  sql<Found>`
    select 'Card ' || c.id || ' has ' || count(e.id) || ' events ' || kind as problem
    from cards c cross join (values ('card.created'), ('card.deleted')) as kinds (kind)
    left join events e on e.type = kind and e.subject_id = c.id
    where c.project_id is not null and c.master_card_id is null and c.title <> 'An old card' group by c.id, kind
    having count(e.id) <> (case kind when 'card.created' then c.created_by is not null else c.deleted_at is not null end)::int`,
  sql<Found>`
    select 'Rollout ' || o.id || ' is ' || o.state || ' with ' || count(e.id) || ' events' as problem
    from rollouts o left join events e on e.subject_id = o.id
      and e.type = case o.state when 'rolled_back' then 'rollout.rolled_back' else 'rollout.finished' end
    group by o.id having count(e.id) <> (o.state in ('done', 'rolled_back'))::int`,
  sql<Found>`
    select 'Rollout ' || o.id || ' is done, but project ' || t.project_id || ' is ' || t.state as problem
    from rollouts o join rollout_targets t on t.rollout_id = o.id where o.state = 'done' and t.state not in ('done', 'unchanged')`,
];
