import { randomBytes } from 'node:crypto';
import { type RawBuilder, sql } from 'kysely';
import { VERSION } from '../runtime/version.ts';
import { LATEST_LEVEL } from './level.ts';
import { MIGRATION_LOCK, retryLocked, SET_SHORT_LOCK_TIMEOUT } from './lockRetry.ts';
import { type Db, query, queryOne, transact } from './query.ts';

/**
 * Transaction ids belong to one server: a restore or a copy starts them anew, and after a fail-over the new primary gives out
 * those that it never got from the old one. The database therefore knows its incarnations, the latest one last.
 *
 * - The order of events is not the transaction id itself, but `id + transaction_offset + timeline_step * (timeline - first_timeline)`.
 *   The default of `events.transaction_id` and the end of the feed are computed like that. After a restore or a copy, the offset
 *   puts new events behind all stored ones and behind all places of webhooks. PostgreSQL counts the timeline up at each fail-over,
 *   so events of the new primary are behind all of the old one, even before any node has noticed the fail-over.
 * - Ids of events and of the audit trail jump ahead in the same way: receivers that skip known ids never skip a new event.
 * - Cursors name their incarnation. One from before a restore or a copy is refused. One from before a fail-over is good up to
 *   `last_shared`, the last event that both servers have.
 *
 * Below level 1, nodes of the previous version run, which know only plain transaction ids: `timeline_step` is 0, and cursors name
 * no incarnation. The first incarnation of a database accepts such cursors (`takes_unnamed`).
 */

/** It is no entity: a copied database has its own incarnations. */
export const INCARNATIONS = 'incarnations';

/** More than any server gives out in one timeline. Ids have to stay safe integers in JavaScript, so that their step is smaller. */
const TRANSACTIONS_PER_TIMELINE = 10_000_000_000_000;
const IDS_PER_TIMELINE = 1_000_000_000;

/** The tables whose ids must not be given out again. */
export const TABLES_OF_LASTING_IDS = ['events', 'audit_entries'];

/**
 * The timeline is the hexadecimal digits that names of files of the log begin with. With a constant position, PostgreSQL would
 * compute it while it plans a statement, which fails on a replica.
 */
const LOG_FILE = 'pg_walfile_name(pg_current_wal_insert_lsn())';
const TIMELINE = `('x' || left(${LOG_FILE}, 8))::bit(32)::int`;

/** A replica can not tell its timeline. */
const timelineNow = sql`case when pg_is_in_recovery() then i.timeline else ${sql.raw(TIMELINE)} end`;

/**
 * The current incarnation. `feed_end` and `feed_next` are the order of the oldest running transaction and of the next one: null as
 * long as a restored database was not adopted. `is_here` is false if another incarnation has to begin first.
 */
export const CURRENT = sql`
  select i.number, i.id, i.timeline_step > 0 as is_named,
    ${orderOf(sql`pg_snapshot_xmin(pg_current_snapshot())`)} as feed_end, ${orderOf(sql`pg_snapshot_xmax(pg_current_snapshot())`)} as feed_next,
    i.relation = i.tableoid and (i.timeline_step = 0 or i.timeline = now.timeline) as is_here
  from (select *, tableoid from incarnations order by number desc limit 1) as i, lateral (select ${timelineNow} as timeline) as now`;

function orderOf(transaction: RawBuilder<unknown>): RawBuilder<string> {
  return sql`case when i.relation = i.tableoid then (${transaction}::text::bigint + i.transaction_offset
    + i.timeline_step * (now.timeline - i.first_timeline))::text::xid8 end`;
}

/** The end of the feed: all events before it are committed and visible. */
export const FEED_END = sql<string>`(select c.feed_end from (${CURRENT}) as c)`;

/** How far the ids of lasting tables are ahead of their sequences. */
export const ID_SHIFT = sql<string>`(
  select case when i.timeline_step > 0 then ${sql.lit(IDS_PER_TIMELINE)}::bigint * (now.timeline - i.first_timeline) else 0 end
  from (select * from incarnations order by number desc limit 1) as i, lateral (select ${timelineNow} as timeline) as now)`;

/** Which kind of incarnation has begun. */
export type Begun = 'first' | 'restored' | 'failed over' | 'timelines counted';

/** What an operator should know of it; undefined for nothing. */
export const noticeOf = (begun: Begun | undefined): string | undefined => begun && NOTICES[begun];
const NOTICES: Partial<Record<Begun, string>> = {
  restored:
    'This database was restored or copied: cursors of events from before are refused, and ids of events have jumped ahead.',
  'failed over':
    'Another server has become the primary: cursors of events are refused if the old primary had later events that were lost.',
};

/** Begins a new incarnation if the database is on another server, or on another timeline, than at the last look. */
export async function adoptDatabase(db: Db): Promise<Begun | undefined> {
  const server = await serverOf(db);
  const [current] = await query(
    db,
    sql<{ is_settled: boolean }>`
      select pg_is_in_recovery() or (c.is_here and i.server = ${server} and (i.timeline_step > 0 or not ${isCounted})
        and not ${isMarkedAsRestored} and not ${isAhead}) as is_settled
      from (${CURRENT}) as c join incarnations i using (number)`,
  );
  return current?.is_settled ? undefined : underLock(db, (db) => adopt(db, server));
}

/** Begins a new incarnation of a database whose rows came from another one, or went back in time. */
export async function beginRestored(db: Db, options: { keepsWebhooks?: boolean } = {}): Promise<void> {
  const server = await serverOf(db);
  await underLock(db, (db) => restore(db, server, options));
}

/** For a backup of an earlier version, which has no table of incarnations: the next start adopts it. */
export async function markAsRestored(db: Db): Promise<void> {
  await query(db, sql.raw(`alter database "${await nameOf(db)}" set deckhand.restored = 'on'`));
}
/** From the catalog, since the embedded database does not apply such settings. */
const isMarkedAsRestored = sql`exists (
  select from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase
  where d.datname = current_database() and 'deckhand.restored=on' = any (s.setconfig))`;

/** From this level on, no node counts on plain transaction ids. */
const isCounted = sql`exists (select from database_state where level >= 1)`;

/** Migrations are complete, and no other node adopts the database meanwhile. */
const underLock = <Result>(db: Db, work: (db: Db) => Promise<Result>): Promise<Result> =>
  retryLocked(() =>
    transact(db, async (db) => {
      await query(db, sql.raw(SET_SHORT_LOCK_TIMEOUT));
      await query(db, sql`select pg_advisory_xact_lock(${MIGRATION_LOCK})`);
      return work(db);
    }),
  );

type Incarnation = { id: string; server: string; timeline: number; step: string; is_adopted: boolean };

async function adopt(db: Db, server: string): Promise<Begun | undefined> {
  const [last] = await query(
    db,
    sql<Incarnation>`
      select id, server, timeline, timeline_step::text as step, relation = tableoid as is_adopted
      from incarnations order by number desc limit 1`,
  );
  const { timeline, is_counted, is_restored } = await queryOne(
    db,
    sql<{ timeline: number; is_counted: boolean; is_restored: boolean }>`
      select ${timelineHere} as timeline, ${isCounted} as is_counted,
        ${isMarkedAsRestored} or ${last ? isAhead : hasForeignEvents} as is_restored`,
  );
  if (is_restored || (last && !(last.is_adopted && last.server === server))) {
    await restore(db, server);
    return 'restored';
  }
  if (!last) await begin(db, { server, takes_unnamed: true });
  const begun = last ? undefined : 'first';
  if (is_counted && (last?.step ?? '0') === '0') {
    await countTimelines(db);
    return begun ?? 'timelines counted';
  }
  if (last && is_counted && last.timeline !== timeline) {
    await failOver(db, last, timeline);
    return 'failed over';
  }
  return begun;
}

const NEXT_TRANSACTION = sql`pg_snapshot_xmax(pg_current_snapshot())`;

/** Places that this server has not reached, for servers that hide who they are: their tables may have the same ids elsewhere. */
const isAhead = sql`exists (
  select from (${CURRENT}) as c where c.is_here and c.feed_next < greatest(
    (select transaction_id from events order by transaction_id desc limit 1),
    (select after_transaction from webhooks order by after_transaction desc limit 1)))`;

/**
 * Whether a database of the version before, which knows no incarnations, was restored: it has transactions that this server has not
 * reached, or from before its table was created here. The version before gave the events of a restored database the transaction 3.
 * The second test ends before transaction ids of 32 bits, which the catalog has, begin anew.
 */
const hasForeignEvents = sql`(
  exists (select from events where transaction_id > ${NEXT_TRANSACTION})
  or exists (select from pg_attribute a
    where a.attrelid = 'events'::regclass and a.attname = 'type' and ${NEXT_TRANSACTION} < '2147483648'
      and (select transaction_id::text::bigint from events where transaction_id > '3' order by transaction_id limit 1)
        < ${NEXT_TRANSACTION}::text::bigint - age(a.xmin)))`;

/**
 * - `stored`: the last place that an event or a webhook has.
 * - `oldest`: the oldest running transaction.
 */
async function restore(db: Db, server: string, { keepsWebhooks = false } = {}): Promise<void> {
  const { transaction_offset } = await queryOne(
    db,
    sql<{ transaction_offset: string }>`
      select greatest(0, stored + 1 - pg_snapshot_xmin(pg_current_snapshot())::text::bigint)::text as transaction_offset
      from (select greatest(
        coalesce((select transaction_id::text::bigint from events order by transaction_id desc limit 1), 0),
        coalesce((select after_transaction::text::bigint from webhooks order by after_transaction desc limit 1), 0)) as stored) as last`,
  );
  for (const table of TABLES_OF_LASTING_IDS) await jumpAhead(db, table);
  await begin(db, { server, transaction_offset });
  const paused = keepsWebhooks
    ? sql`null`
    : sql`(select now() where exists (select from webhooks) or exists (select from mails))`;
  await query(
    db,
    sql`
      insert into database_state (id, level, version, webhooks_paused_at, erasures_due_at)
      values (1, ${sql.lit(LATEST_LEVEL)}, ${VERSION}, ${paused}, (select now() where exists (select from users)))
      on conflict (id) do update set level = excluded.level, version = excluded.version, webhooks_paused_at = excluded.webhooks_paused_at,
        erasures_due_at = excluded.erasures_due_at`,
  );
  await countTimelines(db);
  const marked = await query(db, sql`select where ${isMarkedAsRestored}`);
  // Only then, since a server need not belong to this role.
  if (marked.length > 0) await query(db, sql.raw(`alter database "${await nameOf(db)}" reset deckhand.restored`));
}

/**
 * Microseconds since 1970 are behind the ids of any earlier incarnation, also of what was written after the backup. Soon after a
 * restore or a fail-over, ids are ahead of the time. The microseconds are then added, so that a backup that is restored twice does
 * not give out the same ids twice.
 */
const jumpAhead = (db: Db, table: string) =>
  query(
    db,
    sql`
      select setval(pg_get_serial_sequence(${table}, 'id'), greatest(
        last_value + coalesce(${ID_SHIFT}, 0) + ${sql.lit(IDS_PER_TIMELINE)} + microseconds % ${sql.lit(IDS_PER_TIMELINE)}, microseconds))
      from ${sql.raw(`${table}_id_seq`)}, (select (extract(epoch from now()) * 1000000)::bigint as microseconds) as time`,
  );

type Beginning = { server: string; transaction_offset?: string; takes_unnamed?: boolean };

const begin = (db: Db, { server, transaction_offset = '0', takes_unnamed = false }: Beginning) =>
  query(
    db,
    sql`
      insert into incarnations (number, id, server, relation, timeline, first_timeline, timeline_step, transaction_offset, takes_unnamed)
      select coalesce(max(number), 0) + 1, ${newId()}, ${server}, 'incarnations'::regclass, ${timelineHere}, ${timelineHere}, 0,
        ${transaction_offset}::bigint, ${takes_unnamed} from incarnations`,
  );

/** Lets new events count the timelines from here on. */
async function countTimelines(db: Db): Promise<void> {
  const { timeline, transaction_offset } = await queryOne(
    db,
    sql<{ timeline: number; transaction_offset: string }>`
      update incarnations set timeline = ${timelineHere}, first_timeline = ${timelineHere},
        timeline_step = ${sql.lit(TRANSACTIONS_PER_TIMELINE)}
      where number = (select max(number) from incarnations) returning timeline, transaction_offset::text`,
  );
  const isSame = `starts_with(${LOG_FILE}, '${timeline.toString(16).toUpperCase().padStart(8, '0')}')`;
  const timelines = `(${TIMELINE} - ${timeline})`;
  const own = 'pg_current_xact_id()';
  const shifted = (shift: string) => `(${own}::text::bigint + ${transaction_offset}${shift})::text::xid8`;
  const ordinary = transaction_offset === '0' ? own : shifted('');
  const counted = shifted(` + ${TRANSACTIONS_PER_TIMELINE} * ${timelines}`);
  // The ordinary case first, which costs a microsecond.
  const transaction = `case when ${isSame} then ${ordinary} else ${counted} end`;
  await query(db, sql.raw(`alter table events alter column transaction_id set default ${transaction}`));
  for (const table of TABLES_OF_LASTING_IDS) {
    const next = `nextval('${table}_id_seq')`;
    const id = `case when ${isSame} then ${next} else ${next} + ${IDS_PER_TIMELINE}::bigint * ${timelines} end`;
    await query(db, sql.raw(`alter table ${table} alter column id set default ${id}`));
  }
}

/** Events of the timeline before are all before the first possible one of the next timeline. */
const failOver = (db: Db, { id }: Incarnation, timeline: number) =>
  query(
    db,
    sql`
      insert into incarnations (number, id, server, relation, timeline, first_timeline, timeline_step, transaction_offset, last_shared)
      select i.number + 1, ${newId()}, i.server, i.relation, ${timeline}::int, i.first_timeline, i.timeline_step, i.transaction_offset,
        coalesce((select transaction_id from events
          where transaction_id < (i.transaction_offset + i.timeline_step * (i.timeline + 1 - i.first_timeline))::text::xid8
          order by transaction_id desc limit 1), '0')
      from incarnations i where i.id = ${id}`,
  );

const timelineHere = sql.raw(TIMELINE);

const newId = () => randomBytes(9).toString('base64url');

/** The cluster and the database. Hosted servers may hide the cluster. */
async function serverOf(db: Db): Promise<string> {
  const { database, can_ask } = await queryOne(
    db,
    sql<{ database: string; can_ask: boolean }>`
      select oid::text as database, has_function_privilege('pg_control_system()', 'execute') as can_ask
      from pg_database where datname = current_database()`,
  );
  if (!can_ask) return database;
  const [cluster] = await query(db, sql<{ id: string }>`select system_identifier::text as id from pg_control_system()`);
  return `${cluster?.id}/${database}`;
}

const nameOf = async (db: Db) =>
  (await queryOne(db, sql<{ name: string }>`select replace(current_database(), '"', '""') as name`)).name;
