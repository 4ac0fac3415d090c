import { type RawBuilder, sql } from 'kysely';
import { z } from 'zod';
import { invalid } from '../../../shared/errors.ts';
import { Event, type EventList, type EventType } from '../../../shared/event.ts';
import { CARD_OF_EVENT } from '../../database/entities/cardOfEvent.ts';
import { adoptDatabase, CURRENT, FEED_END } from '../../database/incarnation.ts';
import { allOf, type Db, query, queryOne, withShortTimeout } from '../../database/query.ts';
import type { Removal } from '../../database/removal.ts';
import { selectionOf } from '../../database/selection.ts';
import { daysBefore } from '../../database/timestamp.ts';
import type { Caller, Context, ProjectContext, With } from '../access/context.ts';
import { isManager } from '../access/permission.ts';
import { namedProject } from '../account/member.ts';
import type { EventRow, FeedPlace } from './following.ts';
import { isShownRow, type Reader } from './visibility.ts';

export type { EventRow, FeedPlace } from './following.ts';

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

/**
 * Events are removed a day later than they are kept, since a cursor is as old as the transaction of its event. The first page
 * begins with events that are kept, and cursors are valid for half a day longer, so that a reader has time for the next page.
 */
export const eventRemoval = (days: number): Removal => ({
  table: 'events',
  due: (now) => sql`t.created_at < ${daysBefore(now, days + 1)}`,
  by: 'created_at',
});

/** A page of the events that the caller may see. */
export async function listEvents(context: ProjectContext, { after, types, project_id, card_id, limit }: EventList) {
  const named = project_id == null ? undefined : await namedProject(context, { project_id });
  const project = card_id == null ? named : await projectOfCard(context, card_id, named);
  const { readable, reader } = await readableBy(context, project);
  if (after === 'latest') return { events: [], cursor: toCursor(await latestPlace(context.db)), has_more: false };
  const place = after == null ? await oldestPlace(context) : await readPlace(context, after);
  const { events, next, hasMore } = await readEvents(context.db, { place, types, card_id, limit, reader }, readable);
  return { events, cursor: toCursor(next), has_more: hasMore };
}

/** The project of a card, also of a deleted one; none if the card is unknown, or if another project is named or selected. */
async function projectOfCard({ db, caller }: ProjectContext, card_id: number, named: number | undefined) {
  const chosen = named ?? selectedProject(caller);
  const card = await db.selectFrom('cards').select('project_id').where('id', '=', card_id).executeTakeFirst();
  const project = card?.project_id ?? NO_PROJECT;
  return chosen === undefined || chosen === project ? project : NO_PROJECT;
}

/**
 * The projects whose events a caller may see: the named one, else the selected one, else all of theirs. Those whom `reader` is
 * for see not all of their events.
 */
export async function readableBy(
  { db, caller }: Pick<Context, 'db'> & { caller: Caller },
  project: number | undefined,
): Promise<{ readable: Readable; reader?: Reader }> {
  const chosen = project ?? selectedProject(caller);
  if (caller.superadmin) return { readable: chosen === undefined ? 'all' : [chosen] };
  const projects = await query(
    db,
    sql<{ id: number; is_owner: boolean }>`
      select p.id, ${isManager('m')} as is_owner from members m join projects p on p.id = m.project_id and p.is_active
      where m.user_id = ${caller.id} ${chosen === undefined ? sql`` : sql`and p.id = ${chosen}`}`,
  );
  const owned = new Set(projects.filter(({ is_owner }) => is_owner).map(({ id }) => id));
  return { readable: projects.map(({ id }) => id), reader: { owned, userId: caller.id } };
}

/** The project of X-Project-Id. */
const selectedProject = ({ isProjectChosen, project }: Caller) =>
  isProjectChosen ? (project?.id ?? NO_PROJECT) : undefined;
const NO_PROJECT = 0;

type Read = {
  place: FeedPlace;
  types?: readonly string[] | null | undefined;
  /** A card of the only readable project. */
  card_id?: number | null | undefined;
  limit: number;
  reader?: Reader | undefined;
};
type Found = { events: EventRow[]; places: FeedPlace[]; hasMore: boolean; next: FeedPlace; feedEnd: FeedPlace };

/**
 * Reads events behind a place, and tells where to go on: behind each of them (`places`), and behind all that was read (`next`).
 * Throws a 422 if a fail-over has lost events that were before the place.
 */
export async function readEvents(db: Db, read: Read, readable: Readable): Promise<Found> {
  const { place, limit } = read;
  const most = mostRead(read, readable);
  const found = await query(db, eventsStatement(read, readable, most));
  const [horizon] = found as [(typeof found)[number]];
  if (!horizon.is_known) {
    await adoptDatabase(db);
    if (place.incarnation) await mustBeKnown(db, place);
    return readEvents(db, read, readable);
  }
  const rows = found.filter(({ id }) => id !== null);
  const events = rows.map(toEvent);
  const places = rows.map((row) => placeOf(row as EventRow & typeof row, horizon));
  const isFull = events.length === limit;
  const isCut = horizon.read_count === most;
  const hasMore = isCut || (isFull && events.at(-1)?.id !== horizon.last_id);
  const behind = (isFull && places.at(-1)) || placeAfter(place, horizon, isCut);
  return { events, places, hasMore, next: behind, feedEnd: endOf(horizon) };
}

/** Whether events are found by the index of their project: only for callers who may read few projects. */
const isByProject = (readable: Readable) => readable !== 'all' && readable.length <= FEW_PROJECTS;

/** How many events a page reads: more than it returns if it filters them. With few projects, each project has a share of them. */
function mostRead({ types, limit }: Read, readable: Readable): number {
  if (types == null && (readable === 'all' || isByProject(readable))) return limit + 1;
  const shares = readable !== 'all' && isByProject(readable) ? Math.max(1, readable.length) : 1;
  return Math.max(limit + 1, Math.floor(MOST_READ / shares));
}

const FEED_ORDER = sql`e.transaction_id, e.id`;
/**
 * Only indexes that begin with the project have this order, if the project is one of an array. With `=`, the planner leaves the
 * project out of the order, and may search for the few events of a quiet project among all events.
 */
const PROJECT_ORDER = sql`e.project_id, e.transaction_id, e.id`;

/**
 * - `horizon`: the end of the feed, and the last event before it.
 * - `read`: the next events before it, up to a number. Of few projects, as many of each are read, so that none is left out.
 * - `page`: those of the wanted types that the reader may see.
 */
function eventsStatement({ place, types, card_id, limit, reader }: Read, readable: Readable, most: number) {
  const next = (which: RawBuilder<unknown>, order: RawBuilder<unknown>) => sql`
    select e.* from events e
    where ${which} and (e.transaction_id, e.id) > (${place.transaction}::xid8, ${place.id}::bigint)
      and e.transaction_id < (select feed_end from horizon)
    order by ${order} limit ${sql.lit(most)}`;
  const isOfCard = card_id == null ? sql`` : sql`and ${sql.raw(CARD_OF_EVENT)} = ${card_id}`;
  const source = isByProject(readable)
    ? sql`select e.* from unnest(${readable}::int[]) as p (id)
          cross join lateral (${next(sql`e.project_id = any(array[p.id]) ${isOfCard}`, PROJECT_ORDER)}) as e
          order by ${FEED_ORDER} limit ${sql.lit(most)}`
    : next(sql`true`, FEED_ORDER);
  const isWanted = allOf([
    types ? sql`type = any(${types}::text[])` : sql`true`,
    isByProject(readable) || readable === 'all' ? sql`true` : sql`project_id = any(${readable}::int[])`,
    isShownRow(reader),
  ]);
  return sql<Partial<EventRow> & Horizon & { transaction: string }>`
    with horizon as materialized (${horizonFor(place)}
    ), read as materialized (${source}
    ), page as (
      select * from read where ${isWanted} order by transaction_id, id limit ${limit}
    )
    select ${selectionOf(COLUMNS, 'page')}, page.id::text as id, page.transaction_id::text as transaction,
      horizon.newest::text as newest, horizon.incarnation, horizon.is_known, horizon.seconds, (select count(*)::int from read) as read_count,
      last.transaction_id::text as last_transaction, last.id::text as last_id, extract(epoch from last.created_at)::float8 as last_seconds
    from horizon left join (select * from read order by transaction_id desc, id desc limit 1) as last on true
    left join page on true order by page.transaction_id, page.id`;
}

/** An event of a project by its id; undefined if it was removed. */
export async function readEvent(db: Db, id: string, project_id: number): Promise<EventRow | undefined> {
  const [row] = await query(
    db,
    sql<EventRow>`
      select ${selectionOf(COLUMNS, 'e')}, e.id::text as id from events e where e.id = ${id}::bigint and e.project_id = ${project_id}`,
  );
  return row && toEvent(row);
}

/** The columns that are the same in every row of the statement. */
type Horizon = Current & {
  read_count: number;
  last_transaction: string | null;
  last_id: string | null;
  last_seconds: number | null;
};

const COLUMNS = Event.keyof().options.filter((column) => column !== 'id');

/** Until an invitation is accepted, the project knows only the address that was typed, and not whose it is, nor what else they do. */
const WITHOUT_ACTOR: EventType = 'invitation.declined';
export const HIDES_ACTOR = sql<boolean>`(type = ${sql.lit(WITHOUT_ACTOR)})`;

function toEvent(row: Partial<EventRow>): EventRow {
  const event = Object.fromEntries(Event.keyof().options.map((field) => [field, row[field]])) as EventRow;
  return event.type === WITHOUT_ACTOR ? { ...event, user_id: null, request_id: null } : event;
}

const placeOf = (
  { transaction, id, created_at }: EventRow & { transaction: string },
  { incarnation }: Pick<Horizon, 'incarnation'>,
): FeedPlace => ({ transaction, id, seconds: Math.floor(created_at.getTime() / 1000), incarnation });

/** Behind what was read; if that was all, behind the last event of the feed. */
function placeAfter(from: FeedPlace, horizon: Horizon, isCut: boolean): FeedPlace {
  const { incarnation, last_transaction, last_id, last_seconds } = horizon;
  if (isCut && last_transaction !== null && last_id !== null)
    return { transaction: last_transaction, id: last_id, seconds: Math.floor(last_seconds ?? 0), incarnation };
  const end = endOf(horizon);
  return isAtLeast(from, end) ? { ...from, seconds: end.seconds, incarnation } : end;
}

/** Behind the last event of the feed. */
const endOf = ({ newest, seconds, incarnation }: Current): FeedPlace => ({
  transaction: newest ?? '0',
  id: BEHIND_ALL,
  seconds: Math.floor(seconds),
  incarnation,
});

/** Ids of events are safe integers. */
const BEHIND_ALL = String(Number.MAX_SAFE_INTEGER);

/** Whether one place is behind another, or the same. */
export function isAtLeast(place: FeedPlace, other: FeedPlace): boolean {
  const [own, others] = [BigInt(place.transaction), BigInt(other.transaction)];
  return own === others ? BigInt(place.id) >= BigInt(other.id) : own > others;
}

/** The end of the feed: later events are behind it. */
export async function latestPlace(db: Db): Promise<FeedPlace> {
  const current = await queryOne(db, sql<Current>`select *, newest::text as newest from (${horizonFor()}) as horizon`);
  if (current.is_known) return endOf(current);
  await adoptDatabase(db);
  return latestPlace(db);
}

/** What a read has to know of the feed. */
type Current = { newest: string | null; seconds: number; incarnation: string | null; is_known: boolean };

/** The end of the feed, and the last event before it. After a fail-over, that event tells whether the reader has seen lost ones. */
const horizonFor = (place?: FeedPlace) => sql`
  select c.feed_end, extract(epoch from now())::float8 as seconds, case when c.is_named then c.id end as incarnation,
    (select e.transaction_id from events e where e.transaction_id < c.feed_end order by e.transaction_id desc limit 1) as newest,
    ${place?.incarnation ? isKnown(place) : sql`coalesce(c.is_here, false)`} as is_known
  from (select) as one left join (${CURRENT}) as c on true`;

/**
 * False if the place is of another database, if events before it were lost, or if a new incarnation has to begin first. A later
 * incarnation without shared events began with a restore or a copy.
 */
const isKnown = ({
  transaction,
  incarnation,
}: FeedPlace) => sql`coalesce(c.is_here and ${transaction}::xid8 <= c.feed_next, false) and exists (
  select from incarnations i where ${incarnation ? sql`i.id = ${incarnation}` : sql`i.takes_unnamed`} and not exists (
    select from incarnations later
    where later.number > i.number and (later.last_shared is null or later.last_shared < ${transaction}::xid8)))`;

/** Throws a 422 if the place is not part of this database. */
async function mustBeKnown(db: Db, place: FeedPlace, field = 'after'): Promise<void> {
  const found = await queryOne(
    db,
    sql<{
      is_known: boolean;
    }>`select ${isKnown(place)} as is_known from (select) as one left join (${CURRENT}) as c on true`,
  );
  if (found.is_known) return;
  const text =
    'is of another state of the database, from before a restore or a fail-over: read the rows again, and start anew';
  throw invalid({ [field]: text }, 'cursor_too_old');
}

/** How long the first event of the feed has been waiting for a transaction that is still running; 0 if there is none. */
export async function eventDelaySeconds(db: Db): Promise<number> {
  const [first] = await query(
    db,
    withShortTimeout(sql<{ seconds: number }>`
      select greatest(0, extract(epoch from now() - created_at))::float8 as seconds
      from events where transaction_id >= ${FEED_END} order by transaction_id, id limit 1`),
  );
  return first?.seconds ?? 0;
}

/** The place before the oldest event that is kept. */
async function oldestPlace({ db, services }: Pick<ProjectContext, 'db'> & With<'eventsKeptDays'>): Promise<FeedPlace> {
  const [oldest] = await query(
    db,
    sql<FeedPlace>`
      select transaction_id::text as transaction, (id - 1)::text as id, 0 as seconds from events
      where created_at > ${daysBefore(sql`now()`, services.eventsKeptDays)} order by created_at limit 1`,
  );
  return oldest ?? START;
}

const START: FeedPlace = { transaction: '0', id: '0', seconds: 0 };

/** Only the service reads it. */
export const toCursor = ({ transaction, id, seconds, incarnation }: FeedPlace): string =>
  Buffer.from(JSON.stringify([transaction, id, seconds, ...(incarnation ? [incarnation] : [])])).toString('base64url');

/** The end of the year 9999. */
const LAST_SECOND = 253_402_300_799;

/** Cursors from before level 1 have no incarnation. */
const Cursor = z.tuple([
  z.string().regex(/^\d{1,18}$/),
  z.string().regex(/^\d{1,18}$/),
  z.int().min(0).max(LAST_SECOND),
  z
    .string()
    .regex(/^[\w-]{1,20}$/)
    .optional(),
]);

/** For how long the cursor of the oldest kept event stays valid, before events behind it are removed. */
const GRACE = sql`interval '12 hours'`;

/** Decodes a cursor. Refuses one that is older than the kept events, or of another incarnation of the database. */
export async function readPlace(
  { db, services }: Pick<ProjectContext, 'db'> & With<'eventsKeptDays'>,
  cursor: string,
  /** The field of the input, for the error. */
  field = 'after',
): Promise<FeedPlace> {
  const parsed = Cursor.safeParse(jsonIn(cursor));
  if (!parsed.success) throw invalid({ [field]: 'is invalid: send `cursor` of the previous page' }, 'cursor_invalid');
  const [transaction, id, seconds, incarnation] = parsed.data;
  const place = { transaction, id, seconds, incarnation };
  const found = await queryOne(
    db,
    sql<{ is_kept: boolean; is_known: boolean }>`
      select ${isKnown(place)} as is_known,
        to_timestamp(${seconds}) > ${daysBefore(sql`now()`, services.eventsKeptDays)} - ${GRACE} as is_kept
      from (select) as one left join (${CURRENT}) as c on true`,
  );
  const { is_kept, is_known } = found;
  if (!is_known) {
    await adoptDatabase(db);
    await mustBeKnown(db, place, field);
  }
  if (!is_kept)
    throw invalid(
      { [field]: 'is older than the events that are kept: read the rows again, and start anew' },
      'cursor_too_old',
    );
  return place;
}

function jsonIn(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString());
  } catch {
    return undefined;
  }
}
