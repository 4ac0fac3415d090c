import { isDeepStrictEqual } from 'node:util';
import { type RawBuilder, sql } from 'kysely';
import { EVENT_TYPES, type EventData, type EventSurface, type EventType } from '../../../shared/event.ts';
import type { ValueOf } from '../../database/prepared.ts';
import { query } from '../../database/query.ts';
import type { Caller, Context } from '../access/context.ts';
import { bound } from '../access/permission.ts';

/** Something that happened in a call, without what is known of the call itself. */
export type Happened = {
  type: EventType;
  /** Undefined outside of projects; the platform is then sent, if there is one. */
  project_id?: number | null;
  platform_id?: number | null;
  subject_id?: number | null;
  data?: EventData;
  /** Who did it, if it is not the caller: at sign-in nobody is known yet. */
  user_id?: number | null;
};

/** Who did it, and how. */
export type Actor = {
  actor_id: number | null;
  is_superadmin: boolean;
  key_id: number | null;
  surface: EventSurface;
  request_id: string | null;
  address: string;
};

/** What the events of a call need of its context. */
export type EventContext = Pick<Context, 'origin'> & { caller: Caller | undefined };

/** The same with the database: `writeEvents` needs the transaction of the change. */
export type WriteContext = EventContext & Pick<Context, 'db'>;

/** For what the service does by itself. */
export const BY_THE_SERVICE = {
  caller: undefined,
  origin: { surface: 'service', requestId: null, address: 'service', serviceUrl: '' },
} as const;

export const actorOf = ({ caller, origin }: EventContext): Actor => ({
  actor_id: caller?.id ?? null,
  is_superadmin: caller?.superadmin ?? false,
  key_id: caller?.key?.id ?? null,
  surface: origin.surface,
  request_id: origin.requestId,
  address: origin.address,
});

/** Whether the statement of a change needs the part that writes the audit trail. */
export const isAudited = (caller: Caller | undefined, ...types: EventType[]) =>
  types
    .map((type) => EVENT_TYPES[type].audit)
    .some((audit) => audit === 'always' || (caller?.superadmin && audit !== 'never'));

/** Types that are in the audit trail, whoever did it and wherever. */
const ALWAYS_AUDITED = sql.join(
  Object.entries(EVENT_TYPES).flatMap(([type, { audit }]) => (audit === 'always' ? [sql.lit(type)] : [])),
);

/**
 * The parts of a statement that write an event for each of these rows, which have the columns of `ROW`.
 *
 * - `noted`: the events.
 * - `audited`: those of the audit trail: some types, and whatever a superadmin does in a project without being a member.
 */
export const eventParts = (
  rows: RawBuilder<unknown>,
  value: ValueOf<Actor>,
  hasAudit: boolean,
): RawBuilder<unknown> => sql`
  noted as (
    insert into events (${ROW}, user_id, ${CALL})
    select ${ROW}, coalesce(by_user_id, ${value('actor_id')}::int), ${value('key_id')}::int, ${value('surface')}, ${value('request_id')}
    from (${rows}) as happened
    ${hasAudit ? sql`returning ${ROW}, user_id, ${CALL}` : sql``}
  )${hasAudit ? audited(value) : sql``}`;

/** The same for a statement that is built for one call. */
export const eventPartsOf = (context: EventContext, rows: RawBuilder<unknown>, type: EventType): RawBuilder<unknown> =>
  eventParts(rows, bound(actorOf(context)), isAudited(context.caller, type));

const ROW = sql`type, platform_id, project_id, subject_id, data`;
const CALL = sql`key_id, surface, request_id`;

/** A scalar subquery, which is found by its key: with `not exists` the planner would read all members. */
const audited = (value: ValueOf<Actor>) => sql`, audited as (
    insert into audit_entries (${ROW}, user_id, ${CALL}, address)
    select ${ROW}, user_id, ${CALL}, ${value('address')} from noted
    where type in (${ALWAYS_AUDITED}) or (${value('is_superadmin')}::boolean and project_id is not null and (
      select true from members m where m.project_id = noted.project_id and m.user_id = noted.user_id) is null))`;

/** The platform of a project. */
export const platformOf = (project: RawBuilder<unknown>) =>
  sql<number>`(select platform_id from projects where projects.id = ${project})`;

/** The planner expects a hundred rows otherwise, and looks up what is for one as if it was for all of them. */
const ONE = sql`limit 1`;

/** Writes what happened, in the transaction of the change. */
export async function writeEvents(context: WriteContext, happened: readonly Happened[]): Promise<void> {
  if (!context.db.isTransaction) throw new Error('Events are written in the transaction of their change.');
  if (happened.length === 0) return;
  const hasAudit = isAudited(context.caller, ...happened.map(({ type }) => type));
  const rows = sql`
    select type, coalesce(e.platform_id, ${platformOf(sql`e.project_id`)}) as platform_id, project_id, subject_id,
      coalesce(data, '{}') as data, user_id as by_user_id
    from jsonb_to_recordset(${JSON.stringify(happened)}::jsonb)
      as e (type text, platform_id int, project_id int, subject_id int, data jsonb, user_id int)
    ${happened.length === 1 ? ONE : sql``}`;
  await query(context.db, sql`with ${eventParts(rows, bound(actorOf(context)), hasAudit)} select`);
}

/** What the event of a new row says: rows begin with version 1. */
export const NEW_ROW = { version: 1 };

/** An event names up to this many rows besides its subject. */
export const MOST_IDS = 1000;

/** The rows that a change touched besides its subject: their ids or, of many, only how many there are. */
export const furtherRows = (ids: readonly number[]): Pick<EventData, 'ids' | 'count'> => {
  if (ids.length === 0) return {};
  return ids.length > MOST_IDS ? { count: ids.length } : { ids: [...ids] };
};

/** The fields of a row that have another value than before. */
export const differingFields = <Row extends object>(before: Row, after: Row): string[] =>
  (Object.keys(after) as (keyof Row & string)[])
    .filter((field) => field !== 'updated_at' && !isDeepStrictEqual(before[field], after[field]))
    .sort();
