import { sql } from 'kysely';
import type { BackgroundWork } from '../../database/background.ts';
import { type Db, query, withShortTimeout } from '../../database/query.ts';
import type { Row } from '../../database/tables.ts';
import type { Log } from '../../runtime/log.ts';
import { endOfKey, isValidKey, type MaxDays, maxDays, secretEnd, secretMadeAt } from '../access/keyEnd.ts';

/** How many days before the end of a key the metrics count it; the log names it from the first ones on. */
const WARNING_DAYS = [14, 3] as const;

type EndingKey = Pick<Row<'api_keys'>, 'id' | 'name' | 'user_id' | 'last_used_at'> & { owner: string; ends_at: Date };

/** How many keys one step names; of the others it logs the number. */
const MOST_NAMED = 20;

/** Logs once a day which keys end soon. Whichever node notes the warning logs it. */
export const keyWarnings = (keyMaxDays: number | undefined, log: Log): BackgroundWork => ({
  table: 'api_keys',
  step: async (db, { rows }) => {
    const days = maxDays(keyMaxDays);
    const warned = await query(
      db,
      sql<EndingKey>`
        update api_keys set warned_at = now() from users
        where users.id = api_keys.user_id and api_keys.id in (
          select k.id from ${KEYS_IN_USE} where ${endsSoon(WARNING_DAYS[0], days)}
            and coalesce(k.warned_at <= now() - interval '1 day', true)
          order by ${endOfKey('k', days)} limit ${sql.lit(rows)} for update of k skip locked)
        returning api_keys.id, api_keys.name, api_keys.user_id, users.name as owner, ${endOfKey('api_keys', days)} as ends_at,
          api_keys.last_used_at`,
    );
    const soonest = warned.toSorted((one, other) => one.ends_at.getTime() - other.ends_at.getTime());
    for (const { id: key, user_id: user, ...more } of soonest.slice(0, MOST_NAMED))
      log.warn({ key, user, ...more }, 'An API key ends soon: rotate it, or create another one.');
    const keys = soonest.length - MOST_NAMED;
    if (keys > 0) log.warn({ keys }, 'Further API keys end soon, after those named before.');
    return { count: warned.length };
  },
});

/** Logs how many keys do not work any more because of their age alone: a new setting can end many at once. */
export async function warnOfAge(db: Db, keyMaxDays: number, log: Log): Promise<void> {
  const days = maxDays(keyMaxDays);
  const [counted] = await query(
    db,
    sql<{ keys: number }>`
      select count(*)::int as keys from ${KEYS_IN_USE}
      where ${isValidKey('k', NO_LIMIT)} and ${secretEnd('k', days)} <= now()`,
  );
  const keys = counted?.keys ?? 0;
  if (keys > 0) log.warn({ keys }, 'API keys are older than API_KEYS_MAX_DAYS, and not accepted: create new ones.');
}
const NO_LIMIT = maxDays(undefined);

/** How many keys end within each of the warning days. */
export async function countEndingKeys(db: Db, keyMaxDays: number | undefined): Promise<Map<number, number>> {
  const counts = WARNING_DAYS.map(
    (before, at) =>
      sql`count(*) filter (where ${endsSoon(before, maxDays(keyMaxDays))})::int as ${sql.ref(String(at))}`,
  );
  const count = sql<Record<string, number>>`select ${sql.join(counts)} from ${KEYS_IN_USE}`;
  const [counted] = await query(db, withShortTimeout(count));
  return new Map(WARNING_DAYS.map((before, at) => [before, counted?.[at] ?? 0]));
}

/** Not those of `auth.exchange`, which end all the time. */
const KEYS_IN_USE = sql`api_keys k join users u on u.id = k.user_id and u.is_active and k.rule_id is null`;

/** Whether a key ends within so many days; one with a short life, in its last quarter. */
const endsSoon = (before: number, days: MaxDays) => {
  const isNear = (end: ReturnType<typeof secretEnd>, begin: ReturnType<typeof secretMadeAt>) =>
    sql`coalesce(${end} - now() < least(make_interval(days => ${sql.lit(before)}), (${end} - ${begin}) / 4), false)`;
  const hasNearEnd = sql`(${isNear(sql.ref('k.expires_at'), sql.ref('k.created_at'))} or ${isNear(secretEnd('k', days), secretMadeAt('k'))})`;
  return sql`${isValidKey('k', days)} and ${hasNearEnd}`;
};
