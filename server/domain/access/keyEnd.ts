import { type RawBuilder, sql } from 'kysely';
import type { Db } from '../../database/query.ts';
import { countRows } from '../../database/rows.ts';
import type { With } from './context.ts';

/** The largest age of a secret in days; null for no limit. */
export type MaxDays = RawBuilder<number | null>;

export const maxDays = (days: number | undefined): MaxDays => sql`${days ?? null}`;

const column = (key: string, name: string) => sql.ref<Date | null>(`${key}.${name}`);

export const secretMadeAt = (key: string) =>
  sql<Date>`coalesce(${column(key, 'rotated_at')}, ${column(key, 'created_at')})`;

/** When its secret reaches the largest age; null for never. */
export const secretEnd = (key: string, days: MaxDays) =>
  sql<Date | null>`(${secretMadeAt(key)} + make_interval(days => ${days}::int))`;

/** When a key ends: at its expiry, or when its secret is too old; null for never. */
export const endOfKey = (key: string, days: MaxDays) =>
  sql<Date | null>`least(${column(key, 'expires_at')}, ${secretEnd(key, days)})`;

export const isValidKey = (key: string, days: MaxDays) =>
  sql<boolean>`(${column(key, 'revoked_at')} is null and coalesce(${endOfKey(key, days)} > now(), true))`;

/** Of a user; not those of `auth.exchange`. */
export function countValidKeys({ db, services: { keyMaxDays } }: { db: Db } & With<'keyMaxDays'>, userId: number) {
  const isValid = isValidKey('api_keys', maxDays(keyMaxDays));
  return countRows(db, 'api_keys', sql`user_id = ${userId} and rule_id is null and ${isValid}`);
}
