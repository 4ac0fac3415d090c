import { type RawBuilder, sql } from 'kysely';
import { tooManyRequests } from '../../../shared/errors.ts';
import { type Db, query } from '../../database/query.ts';
import type { Removal } from '../../database/removal.ts';
import { NOW } from '../../database/timestamp.ts';

/** Identifies a call: the same user, procedure and key mean the same call. */
export type KeyedCall = {
  user_id: number;
  procedure: string;
  key: string;
  /** Hashes of the input with each known secret, the current one first. */
  hashes: string[];
  /** Identifies work in several steps; null for work in one transaction. */
  holder: string | null;
};

/** What is stored about an earlier call with the key. */
export type EarlierCall = { input_hash: string; isFinished: boolean; answer: string | null };

/** What the keys of one user may take in 24 hours: above it, responses are not stored, or new keys get a 429. */
const MOST_RESPONSE_BYTES = 32 * 1024 * 1024;
const MOST_KEYS = 250_000;

/** How long a call in several steps may be silent before a repeat takes over. */
const HOLD_SECONDS = 30;
export const RENEW_MILLISECONDS = (HOLD_SECONDS * 1000) / 3;

/**
 * Claims a key for a call, and returns undefined; or returns the earlier call with this key. While another transaction has the
 * key, it waits for the end of that one. An expired key is free again, and so is one whose call was lost with its process.
 * Throws a 429 for a new key of a user who has used too many: without the key, a repeat would be executed again.
 */
export async function claimKey(db: Db, call: KeyedCall): Promise<EarlierCall | undefined> {
  const { user_id, procedure, key, hashes, holder } = call;
  const heldUntil = holder === null ? sql`null::timestamptz` : heldFromNow();
  for (;;) {
    const [claimed] = await query(
      db,
      sql`
        insert into idempotency_keys as k (user_id, procedure, key, input_hash, holder, held_until)
        select ${user_id}::int, ${procedure}, ${key}, ${hashes.at(0) ?? null}, ${holder}::uuid, ${heldUntil}
        from (${usageOf(user_id)}) as used where used.keys < ${sql.lit(MOST_KEYS)}
        on conflict (user_id, procedure, key) do update set input_hash = excluded.input_hash, created_at = now(),
          holder = excluded.holder, held_until = excluded.held_until, finished_at = null, answer = null
        where ${isExpired(sql`k.created_at`)}
          or (k.finished_at is null and k.held_until < now() and k.input_hash = any(${hashes}::text[]))
        returning k.key`,
    );
    if (claimed) return undefined;

    const [earlier] = await query(
      db,
      sql<EarlierCall>`
        select input_hash, finished_at is not null as "isFinished", answer from idempotency_keys
        where ${isOf(call)} and not ${isExpired(sql`created_at`)}`,
    );
    if (earlier) return earlier;
    const [used] = await query(db, usageOf(user_id));
    if (used && used.keys >= MOST_KEYS) throw usedUp();
    // The earlier call failed in between, which freed its key.
  }
}

/** Stores the response, unless it is null or the user has stored too much; calls at the same time may exceed that by a few. */
export async function finishKey(db: Db, call: KeyedCall, response: string | null): Promise<void> {
  const bytes = response === null ? 0 : Buffer.byteLength(response);
  await query(
    db,
    sql`
      with kept as (
        select ${bytes}::int as bytes from (${usageOf(call.user_id)}) as used
        where used.answer_bytes + ${bytes}::int <= ${sql.lit(MOST_RESPONSE_BYTES)}
      ), counted as (
        insert into idempotency_usage as u (user_id, hour, keys, answer_bytes)
        values (${call.user_id}, date_trunc('hour', now()), 1, coalesce((select bytes from kept), 0))
        on conflict (user_id, hour) do update set keys = u.keys + 1, answer_bytes = u.answer_bytes + excluded.answer_bytes
      )
      update idempotency_keys set finished_at = ${NOW}, answer = case when exists (select from kept) then ${response}::text end
      where ${isHeldBy(call)}`,
  );
}

/** What the keys of a user that have not expired take, by whole hours: at most 25 rows. */
const usageOf = (user_id: number) => sql<{ keys: number; answer_bytes: number }>`
  select coalesce(sum(keys), 0)::int as keys, coalesce(sum(answer_bytes), 0)::int as answer_bytes from idempotency_usage
  where user_id = ${user_id} and hour > now() - interval '25 hours'`;

const usedUp = () =>
  tooManyRequests(
    `You have used ${MOST_KEYS} idempotency keys in 24 hours. Wait, or call without a key.`,
    3600 - (Math.floor(Date.now() / 1000) % 3600),
    'idempotency_keys_used_up',
  );

export async function renewHold(db: Db, call: KeyedCall): Promise<void> {
  await query(db, sql`update idempotency_keys set held_until = ${heldFromNow()} where ${isHeldBy(call)}`);
}

/** After a failure: the key can be used again. */
export async function releaseKey(db: Db, call: KeyedCall): Promise<void> {
  await query(db, sql`delete from idempotency_keys where ${isHeldBy(call)}`);
}

export const KEY_REMOVALS: Removal[] = [
  { table: 'idempotency_keys', due: (now) => isExpired(sql`t.created_at`, now), by: 'created_at' },
  { table: 'idempotency_usage', due: (now) => sql`t.hour < ${now} - interval '25 hours'`, by: 'hour' },
];

const isExpired = (created: RawBuilder<unknown>, now: RawBuilder<Date> = NOW) =>
  sql`${created} < ${now} - interval '24 hours'`;

const heldFromNow = () => sql`now() + make_interval(secs => ${sql.lit(HOLD_SECONDS)})`;

const isOf = ({ user_id, procedure, key }: KeyedCall) =>
  sql`user_id = ${user_id} and procedure = ${procedure} and key = ${key}`;

const isHeldBy = (call: KeyedCall) => sql`${isOf(call)} and holder is not distinct from ${call.holder}::uuid`;
