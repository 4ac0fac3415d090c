import { sql } from 'kysely';
import { expect, vi } from 'vitest';
import { FEED_END } from '../../server/database/incarnation.ts';
import { query } from '../../server/database/query.ts';
import type { EventRow } from '../../server/domain/event/feed.ts';
import { testDb } from './world.ts';

/** The data of an event `card.created` or `card.moved` that a test inserts. */
export const CARD_DATA = sql`'{"group_id": null, "version": 1}'::jsonb`;

/** The events that some work writes, in order. Nothing else writes meanwhile. */
export async function eventsOf(work: () => Promise<unknown>): Promise<EventRow[]> {
  return rowsWrittenBy('events', work);
}

/** The entries that some work adds to the audit trail. */
export async function auditOf(work: () => Promise<unknown>): Promise<EventRow[]> {
  return rowsWrittenBy('audit_entries', work);
}

/** Waits until the feed shows all events: it ends before the oldest transaction that another suite is running on the server. */
export async function feedComplete(): Promise<void> {
  const hidden = sql`select from events where transaction_id >= ${FEED_END} limit 1`;
  await vi.waitFor(async () => expect(await query(await testDb(), hidden)).toEqual([]), {
    interval: 20,
  });
}

async function rowsWrittenBy(name: string, work: () => Promise<unknown>): Promise<EventRow[]> {
  const [db, table] = [await testDb(), sql.table(name)];
  const [last] = await query(db, sql<{ id: string }>`select coalesce(max(id), 0) as id from ${table}`);
  await work();
  return query(db, sql<EventRow>`select * from ${table} where id > ${last!.id} order by id`);
}
