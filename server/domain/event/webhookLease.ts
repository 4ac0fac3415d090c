import { randomUUID } from 'node:crypto';
import { type RawBuilder, sql } from 'kysely';
import { type Db, query } from '../../database/query.ts';
import { NOW } from '../../database/timestamp.ts';

/**
 * A process that delivers to a webhook has its lease, so that no other one does. It renews its leases every few seconds, and sets
 * `kept_until` to the same time. Other processes take over a lease 10 seconds after it was renewed last. Nodes of the version
 * before know only `leased_until`, which is a minute ahead. They never set `kept_until`, and renew a lease only with a success: if
 * both times differ, the lease is theirs, and lasts until its end.
 */

/** Where webhooks are stored, and the clock for their attempts. */
export type WebhookStore = {
  db: Db;
  /** The database's clock, or that of a test. */
  now?: RawBuilder<Date>;
  services?: { keyMaxDays: number | undefined };
  /** Which process delivers; in tests, several in one process. */
  holder?: string;
};

const OWN = randomUUID();
export const holderOf = ({ holder = OWN }: WebhookStore): string => holder;

/** Longer than the longest call. */
export const LEASE = sql`interval '1 minute'`;
/** How much of a renewed lease is left when its process counts as dead: it is taken over after 10 seconds. */
const LEFT = sql`interval '50 seconds'`;
export const RENEW_MILLISECONDS = 3000;

const IS_KEPT = sql`w.kept_until = w.leased_until`;

/** When a lease can be taken over; null without a lease. */
export const LEASE_END = sql`case when ${IS_KEPT} then w.leased_until - ${LEFT} else w.leased_until end`;

/** Whether this process still has the lease. */
export const isHeld = (store: WebhookStore) => sql`w.lease_holder = ${holderOf(store)} and ${IS_KEPT}`;

/** The lease of a process that renews it stays, so that there is one delivery at a time. It ends after the current message. */
export const LEASE_AFTER_CHANGE = sql<Date>`case when kept_until = leased_until then leased_until end`;

/** Renews the leases of all deliveries that are under way. */
export async function renewLeases(store: WebhookStore, ids: number[]): Promise<void> {
  const { db, now = NOW } = store;
  await query(
    db,
    sql`
      update webhooks w set leased_until = ${now} + ${LEASE}, kept_until = ${now} + ${LEASE}
      where w.id = any(${ids}::int[]) and ${isHeld(store)}`,
  );
}

/** Ends the lease of a delivery that found its webhook changed, or failed. */
export async function endLease(store: WebhookStore, id: number): Promise<void> {
  await query(store.db, sql`update webhooks w set leased_until = null where w.id = ${id} and ${isHeld(store)}`);
}
