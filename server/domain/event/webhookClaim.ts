import { type RawBuilder, sql } from 'kysely';
import type { EventType } from '../../../shared/event.ts';
import { CURRENT } from '../../database/incarnation.ts';
import { plannedEachTime, query } from '../../database/query.ts';
import { NOW } from '../../database/timestamp.ts';
import { holderOf, LEASE, LEASE_END, type WebhookStore } from './webhookLease.ts';
import type { NextLook } from './webhookLooks.ts';
import { mayReceive } from './webhookRight.ts';

/**
 * How many receivers a process calls at once, in all and of one project. A call that lasts longer than a second moves to the slow
 * lane, so the others are blocked for a second at most. The slow lane can thus have more calls than places for a while.
 */
export const PLACES = {
  fast: { all: 20, project: 10 },
  slow: { all: 40, project: 10 },
  tested: { all: 4, project: 2 },
};
export type DeliveryLane = keyof typeof PLACES;

export const SLOW_MILLISECONDS = 1000;

/** A webhook that this process delivers to until its lease ends. */
export type Claimed = {
  lane: DeliveryLane;
  id: number;
  project_id: number;
  url: string;
  types: EventType[] | null;
  secret: string;
  previous_secret: string | null;
  failures: number;
  transaction: string;
  event: string;
  /** When an owner last changed it: a delivery ends with the next change. */
  version: string;
  /** For a test: the time that stands for its lease. */
  test: string;
  /** Instead of a test: the event that is sent again on its own. */
  resend: string | null;
  /** False if its maker has lost the right to the events, or it is not active. */
  may_receive: boolean;
};

/** What a delivery under way takes. */
export type Running = Pick<Claimed, 'id' | 'lane' | 'project_id'> & { isTest: boolean };

export type Claims = NextLook & {
  claimed: Claimed[];
  /** False if the database was restored, copied, or is another server's, since the last look. */
  isAdopted: boolean;
};

/** The end of the feed, which no event may pass; none while an operator keeps all webhooks paused. */
const HORIZON = sql`
  select current.is_here, case when not exists (select from database_state where webhooks_paused_at is not null) then current.feed_end end as feed_end
  from (${CURRENT}) as current`;

/** A filtered webhook with this many unwanted events is claimed, too: it moves behind them. */
const MOST_UNWANTED = 100;

const EVENT_ORDER = sql`e.project_id, e.transaction_id, e.id`;

/**
 * The next events of the webhook `w`, in order. Three columns and no equality: only one index has this order, so the planner uses
 * it whatever the statistics say (a plan of the time when the table was empty would not). Without new events, it reads nothing.
 */
export const nextEvents = (columns: RawBuilder<unknown>, limit: number) => sql`
  select ${columns} from events e
  where (${EVENT_ORDER}) > (w.project_id, w.after_transaction, w.after_event) and e.project_id <= w.project_id
  order by ${EVENT_ORDER} limit ${sql.lit(limit)}`;

/** The transaction of the next event that the webhook has to handle. */
const NEXT = sql`case when w.types is null then (${nextEvents(sql`e.transaction_id`, 1)}) else (
  select n.transaction_id from (${nextEvents(sql`e.transaction_id, e.id, e.type, row_number() over (order by ${EVENT_ORDER}) as number`, MOST_UNWANTED)}) as n
  where n.type = any(w.types) or n.number = ${sql.lit(MOST_UNWANTED)} order by n.transaction_id, n.id limit 1) end`;

/**
 * Claims webhooks that have events to get, or a test. No transaction stays open while they are called.
 *
 * - `seen`: the webhooks that could get an event now, with the end of their lease or else their next event.
 * - `due`: those with events before the horizon, and those with a test.
 * - `ranked`: how many places their project would have with this one. One place for each project comes before the second of any.
 * - `locked`: the first ones of each lane, without those that another process is claiming.
 */
export async function claimWebhooks(store: WebhookStore, running: readonly Running[] = []): Promise<Claims> {
  const { db, now = NOW } = store;
  const idsOf = (isTest: boolean) => running.filter((each) => each.isTest === isTest).map(({ id }) => id);
  const held = heldPlaces(running);
  const isDue = sql`w.is_active and w.next_attempt_at <= ${now}`;
  const isFree = sql`coalesce(${LEASE_END} < ${now}, true)`;
  const isForEvents = sql`locked.lane <> 'tested'`;
  const isTested = sql`w.test_requested_at <= ${now}`;
  const rows = await query(
    db,
    plannedEachTime(sql<Omit<Claimed, 'id'> & Status>`
      with horizon as materialized (${HORIZON}
      ), held as materialized (
        select * from unnest(${held.map(({ lane }) => lane)}::text[], ${held.map(({ project_id }) => project_id)}::int[],
          ${held.map(({ places }) => places)}::int[]) as held (lane, project_id, places)
      ), seen as materialized (
        select w.id, w.project_id, w.next_attempt_at as since, ${LEASE_END} as lease_end, ${LANE} as lane, horizon.feed_end,
          case when ${isFree} then ${NEXT} end as next
        from webhooks w join projects p on p.id = w.project_id and p.is_active cross join horizon
        where ${isDue} and w.id <> all(${idsOf(false)}::int[])
      ), due as (
        select id, project_id, lane, since from seen where next < feed_end
        union all
        select w.id, w.project_id, 'tested', w.test_requested_at
        from webhooks w join projects p on p.id = w.project_id and p.is_active cross join horizon
        where ${isTested} and w.id <> all(${idsOf(true)}::int[]) and horizon.feed_end is not null
      ), ranked as (
        select due.*, row_number() over (partition by due.lane, due.project_id order by since, id) + coalesce(held.places, 0) as rank
        from due left join held on held.lane = due.lane and held.project_id = due.project_id
      ), ordered as (
        select ranked.*, row_number() over (partition by lane order by rank, since, id) as turn
        from ranked where rank <= ${byLane((lane) => PLACES[lane].project)}
      ), chosen as (
        select distinct on (id) id, lane from ordered where turn <= ${byLane((lane) => freePlaces(lane, held))} order by id, lane desc
      ), locked as (
        select w.id, chosen.lane from chosen join webhooks w on w.id = chosen.id
        where case when chosen.lane = 'tested' then ${isTested} else ${isDue} and ${isFree} end for update of w skip locked
      ), claimed as (
        update webhooks w set
          leased_until = case when ${isForEvents} then ${now} + ${LEASE} else w.leased_until end,
          kept_until = case when ${isForEvents} then ${now} + ${LEASE} else w.kept_until end,
          lease_holder = case when ${isForEvents} then ${holderOf(store)} else w.lease_holder end,
          test_requested_at = case when ${isForEvents} then w.test_requested_at else ${now} + ${LEASE} end
        from locked where w.id = locked.id
        returning locked.lane, w.id, w.project_id, w.url, w.types, w.secret, w.failures,
          case when w.previous_expires_at > ${now} then w.previous_secret end as previous_secret,
          w.after_transaction::text as transaction, w.after_event::text as event, w.updated_at::text as version,
          w.test_requested_at::text as test, nullif(w.resend_events[1], 0)::text as resend,
          w.is_active and ${mayReceive(store)} as may_receive
      ), status as (
        select count(*)::int as seen, bool_or(next >= feed_end) as is_waiting, (select is_here from horizon) as is_adopted, extract(epoch from least(min(lease_end) filter (where lease_end >= ${now}),
          (select min(next_attempt_at) from webhooks where is_active and next_attempt_at > ${now})) - ${now})::float8 * 1000 as due_in
        from seen
      )
      select claimed.*, status.* from status left join claimed on true`),
  );
  return {
    claimed: rows.filter((row): row is (typeof rows)[number] & Claimed => row.id !== null),
    isWaiting: rows[0]?.is_waiting ?? false,
    dueInMilliseconds: rows[0]?.due_in ?? null,
    seen: rows[0]?.seen ?? 0,
    isAdopted: rows[0]?.is_adopted ?? false,
  };
}

/** The same in every row. */
type Status = {
  id: number | null;
  is_waiting: boolean | null;
  due_in: number | null;
  seen: number;
  is_adopted: boolean | null;
};

/** By how long its messages took. A failing receiver of which that is not known is often one that does not answer. */
const LANE = sql`case when coalesce(w.pace_milliseconds > ${sql.lit(SLOW_MILLISECONDS)}, w.failures > 0) then 'slow' else 'fast' end`;

type Held = { lane: DeliveryLane; project_id: number; places: number };

/** The places of each project. */
function heldPlaces(running: readonly Running[]): Held[] {
  const held = new Map<string, Held>();
  for (const { lane, project_id } of running) {
    const key = `${lane} ${project_id}`;
    held.set(key, { lane, project_id, places: (held.get(key)?.places ?? 0) + 1 });
  }
  return [...held.values()];
}

/** A project with more calls than its share, since they turned out slow, takes no places from others. */
function freePlaces(lane: DeliveryLane, held: readonly Held[]): number {
  const own = held.filter((each) => each.lane === lane);
  return own.reduce((free, { places }) => free - Math.min(places, PLACES[lane].project), PLACES[lane].all);
}

const byLane = (value: (lane: DeliveryLane) => number) =>
  sql`case lane when 'fast' then ${value('fast')}::int when 'slow' then ${value('slow')}::int else ${value('tested')}::int end`;
