import { type RawBuilder, sql } from 'kysely';
import { z } from 'zod';
import { invalid } from '../../../shared/errors.ts';
import { Event, type EventList, type EventType } from '../../../shared/event.ts';
import type { Database } from '../../database/connect.ts';
import { type Db, oneRow, query, withShortTimeout } from '../../database/query.ts';
import type { Removal } from '../../database/removal.ts';
import { daysBefore } from '../../database/timestamp.ts';
import type { Caller, Context, ProjectContext } from '../access/context.ts';
import { namedProject } from '../account/member.ts';
import { selectionOf } from '../rows/row.ts';
import type { EventRow, Place } from './following.ts';

export type { EventRow, Place } from './following.ts';

/**
 * The feed of events. Ids are given out before their transactions commit, so that an event can appear behind one with a larger id.
 * The feed is therefore ordered by transaction, and ends before the oldest one that is still running: a cursor never skips an
 * event that commits late.
 */

/** Whose events a reader may see: those of these projects, or all. */
export type Readable = readonly number[] | 'all';

/** How many events one page reads at most, whatever it filters. */
const MOST_READ = 1000;
/** The events of up to this many projects are found by project, those of more by reading all. */
const FEW_PROJECTS = 20;

/** Events are removed a day later than they are kept, since a cursor is as old as the transaction of its event. */
export const eventRemoval = (days: number): Removal => ({
  table: 'events',
  due: (now) => sql`t.created_at < ${daysBefore(now, days + 1)}`,
  by: 'created_at',
});

/** A page of the events that the caller may see. */
export async function listEvents(context: ProjectContext, { after, types, project_id, limit }: EventList) {
  const project = project_id == null ? undefined : await namedProject(context, { project_id });
  const readable = await readableBy(context, project);
  if (after === 'latest') return { events: [], cursor: toCursor(await latestPlace(context.db)), has_more: false };
  const place = after == null ? START : await readPlace(context, after);
  const { events, next, hasMore } = await readEvents(context.db, { place, types, limit }, readable);
  return { events, cursor: toCursor(next), has_more: hasMore };
}

/** The projects whose events a caller may see: the named one, else the selected one, else all of theirs. */
export async function readableBy(
  { db, caller }: Pick<Context, 'db'> & { caller: Caller },
  project: number | undefined,
): Promise<Readable> {
  if (project !== undefined) return [project];
  if (caller.isProjectChosen) return caller.project ? [caller.project.id] : [];
  if (caller.superadmin) return 'all';
  const projects = await query(
    db,
    sql<{ id: number }>`
      select p.id from members m join projects p on p.id = m.project_id and p.is_active where m.user_id = ${caller.id}`,
  );
  return projects.map(({ id }) => id);
}

type Read = { place: Place; types?: readonly EventType[] | null | undefined; limit: number };

/**
 * Reads events behind a place, and tells where to go on: behind each of them (`places`), and behind all that was read (`next`).
 *
 * - `horizon`: the oldest transaction that is still running.
 * - `read`: the next events before it, up to a number. Of few projects, as many of each are read, so that none is left out.
 * - `page`: those of the wanted types.
 */
export async function readEvents(db: Db, { place, types, limit }: Read, readable: Readable) {
  const isByProject = readable !== 'all' && readable.length <= FEW_PROJECTS;
  const isFiltered = types != null || !(isByProject || readable === 'all');
  const share = isByProject ? Math.floor(MOST_READ / Math.max(1, readable.length)) : MOST_READ;
  const most = isFiltered ? Math.max(limit + 1, share) : limit + 1;
  const next = (which: RawBuilder<unknown>) => sql`
    select e.* from events e
    where ${which} and (e.transaction_id, e.id) > (${place.transaction}::xid8, ${place.id}::bigint)
      and e.transaction_id < (select xmin from horizon)
    order by e.transaction_id, e.id limit ${sql.lit(most)}`;
  const source = isByProject
    ? sql`select e.* from unnest(${readable}::int[]) as p (id) cross join lateral (${next(sql`e.project_id = p.id`)}) as e
          order by e.transaction_id, e.id limit ${sql.lit(most)}`
    : next(sql`true`);
  const isWanted = sql.join(
    [
      types ? sql`type = any(${types}::text[])` : sql`true`,
      isByProject || readable === 'all' ? sql`true` : sql`project_id = any(${readable}::int[])`,
    ],
    sql` and `,
  );
  const found = await query(
    db,
    sql<Partial<EventRow> & Horizon & { transaction: string }>`
      with horizon as materialized (
        select pg_snapshot_xmin(pg_current_snapshot()) as xmin, extract(epoch from now())::bigint as seconds
      ), read as materialized (${source}
      ), page as (
        select * from read where ${isWanted} order by transaction_id, id limit ${limit}
      )
      select ${selectionOf(COLUMNS, 'page')}, page.id::text as id, page.transaction_id::text as transaction,
        horizon.xmin::text as xmin, horizon.seconds::float8 as seconds, (select count(*)::int from read) as read_count,
        last.transaction_id::text as last_transaction, last.id::text as last_id, extract(epoch from last.created_at)::float8 as last_seconds
      from horizon left join (select * from read order by transaction_id desc, id desc limit 1) as last on true
      left join page on true order by page.transaction_id, page.id`,
  );
  const horizon = found[0] as (typeof found)[number];
  const rows = found.filter(({ id }) => id !== null);
  const events = rows.map(toEvent);
  const places = rows.map((row) => placeOf(row as EventRow & typeof row));
  const isFull = events.length === limit;
  const isCut = horizon.read_count === most;
  const hasMore = isCut || (isFull && events.at(-1)?.id !== horizon.last_id);
  return { events, places, hasMore, next: (isFull && places.at(-1)) || placeAfter(horizon, isCut) };
}

/** The columns that are the same in every row of the statement. */
type Horizon = {
  xmin: string;
  seconds: number;
  read_count: number;
  last_transaction: string | null;
  last_id: string | null;
  last_seconds: number | null;
};

const COLUMNS = Event.keyof().options.filter((column) => column !== 'id');

const toEvent = (row: Partial<EventRow>): EventRow =>
  Object.fromEntries(Event.keyof().options.map((field) => [field, row[field]])) as EventRow;

const placeOf = ({ transaction, id, created_at }: EventRow & { transaction: string }): Place => ({
  transaction,
  id,
  seconds: Math.floor(created_at.getTime() / 1000),
});

/** Behind what was read; if that was all, at the horizon. */
function placeAfter(horizon: Horizon, isCut: boolean): Place {
  if (isCut && horizon.last_transaction !== null && horizon.last_id !== null)
    return {
      transaction: horizon.last_transaction,
      id: horizon.last_id,
      seconds: Math.floor(horizon.last_seconds ?? 0),
    };
  return { transaction: horizon.xmin, id: '0', seconds: horizon.seconds };
}

/** Whether one place is behind another, or the same. */
export function isAtLeast(place: Place, other: Place): boolean {
  const [own, others] = [BigInt(place.transaction), BigInt(other.transaction)];
  return own === others ? BigInt(place.id) >= BigInt(other.id) : own > others;
}

/** The end of the feed: later events are behind it. */
export async function latestPlace(db: Db): Promise<Place> {
  const found = await query(
    db,
    sql<Place>`
      select pg_snapshot_xmin(pg_current_snapshot())::text as transaction, '0' as id, extract(epoch from now())::float8 as seconds`,
  );
  const { seconds, ...place } = oneRow(found);
  return { ...place, seconds: Math.floor(seconds) };
}

/** How long the oldest event has been waiting for a transaction that is still running; 0 if there is none. */
export async function eventDelaySeconds(db: Db): Promise<number> {
  const found = await query(
    db,
    withShortTimeout(sql<{ seconds: number }>`
      select greatest(0, coalesce(extract(epoch from now() - min(created_at)), 0))::float8 as seconds
      from events where transaction_id >= pg_snapshot_xmin(pg_current_snapshot())`),
  );
  return oneRow(found).seconds;
}

/**
 * Events that were restored from another database server have the numbers of its transactions. If these are larger than the own
 * ones, nobody would see the events, so they become the oldest ones. Cursors of before are refused (`readPlace`).
 */
export async function adoptEvents({ db, withoutTimeouts }: Pick<Database, 'db' | 'withoutTimeouts'>): Promise<void> {
  const isForeign = sql`transaction_id > pg_snapshot_xmax(pg_current_snapshot())`;
  const found = await query(db, sql`select from events where ${isForeign} limit 1`);
  if (found.length === 0) return;
  await withoutTimeouts(({ db }) => query(db, sql`update events set transaction_id = '3' where ${isForeign}`));
}

const START: Place = { transaction: '0', id: '0', seconds: 0 };

/** Only the service reads it. */
export const toCursor = ({ transaction, id, seconds }: Place): string =>
  Buffer.from(JSON.stringify([transaction, id, seconds])).toString('base64url');

/** The end of the year 9999. */
const LAST_SECOND = 253_402_300_799;

const Cursor = z.tuple([
  z.string().regex(/^\d{1,18}$/),
  z.string().regex(/^\d{1,18}$/),
  z.int().min(0).max(LAST_SECOND),
]);

/** Decodes a cursor. Refuses one that is older than the kept events, or of another database, whose transactions count from the start. */
export async function readPlace(
  { db, eventsKeptDays }: Pick<ProjectContext, 'db' | 'eventsKeptDays'>,
  cursor: string,
  /** The field of the input, for the error. */
  field = 'after',
): Promise<Place> {
  const parsed = Cursor.safeParse(jsonIn(cursor));
  if (!parsed.success) throw invalid({ [field]: 'is invalid: send `cursor` of the previous page' }, 'cursor_invalid');
  const [transaction, id, seconds] = parsed.data;
  const found = await query(
    db,
    sql<{ is_kept: boolean }>`
      select ${transaction}::xid8 <= pg_snapshot_xmax(pg_current_snapshot())
        and to_timestamp(${seconds}) > ${daysBefore(sql`now()`, eventsKeptDays)} as is_kept`,
  );
  if (!oneRow(found).is_kept)
    throw invalid(
      { [field]: 'is older than the events that are kept: read the rows again, and start anew' },
      'cursor_too_old',
    );
  return { transaction, id, seconds };
}

function jsonIn(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString());
  } catch {
    return undefined;
  }
}
