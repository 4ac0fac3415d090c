import { type RawBuilder, sql } from 'kysely';
import { prepared, type ValueOf } from '../../database/prepared.ts';
import type { Db } from '../../database/query.ts';
import { type ByKey, type BySession, type Call, type Credential, callerByKey, callerBySession } from './caller.ts';
import type { AccountCaller, Caller, FoundCaller, FoundKey, Unconfirmed } from './context.ts';

/**
 * A caller who was found by an earlier call is remembered. The statement of the next call looks the caller up and compares: if
 * anything differs, it reads and writes nothing, and the call begins again with `findCaller`. So a call needs one round trip, and
 * a right that was revoked is refused by the first statement that begins after the revocation.
 */

/** What is compared, with its type. */
const OF_CALLER = {
  id: 'int',
  superadmin: 'boolean',
  superadmin_billing: 'boolean',
  rate_limit_per_minute: 'int',
  project_id: 'int',
  platform_id: 'int',
  role: 'text',
  highest_role: 'text',
} satisfies Partial<Record<keyof FoundCaller, string>>;
const OF_KEY = {
  ...OF_CALLER,
  key_id: 'int',
  scopes: 'text[]',
  key_project_id: 'int',
} satisfies Partial<Record<keyof (FoundCaller & FoundKey), string>>;

type Compared = Record<string, string>;
type Remembered = Record<`remembered.${string}`, unknown>;

/** What a statement of the same credential needs to confirm the caller; undefined if it can't. */
export function toConfirm(
  credential: Credential,
  call: Call & { keyMaxDays: number | null },
  { found }: Caller,
): Omit<Unconfirmed, 'isConfirmed'> | undefined {
  if (!found) return undefined;
  const isKey = 'keyHash' in credential;
  const compared = Object.keys(isKey ? OF_KEY : OF_CALLER).map(
    (name) => [`remembered.${name}`, found[name as keyof typeof found]] as const,
  );
  return { isKey, values: { ...credential, ...call, ...Object.fromEntries(compared) } };
}

/** Thrown if a remembered caller is not as before. */
export class NotConfirmed extends Error {}

export type Confirmed = { is_confirmed: boolean };

/** Whether the caller is confirmed, in a statement with the part `confirmation`. */
export const IS_CONFIRMED = sql<boolean>`(select is_confirmed from confirmation)`;

/**
 * A prepared statement that confirms a remembered caller. Its text begins with the part `confirmation`; it must read and write
 * nothing without `IS_CONFIRMED`, and return that in its first row.
 */
export function confirming<Values extends object, Row extends Confirmed>(
  build: (value: ValueOf<Values>, confirmation: RawBuilder<unknown>) => RawBuilder<Row>,
  options?: { isShort?: boolean },
): (context: { db: Db; caller: Caller }, values: Values) => Promise<Row[]> {
  const plain = prepared<Values, Row>(
    (value) => build(value, sql`confirmation as (select true as is_confirmed)`),
    options,
  );
  const bySession = prepared<Values & BySession & Remembered, Row>(
    (value) => build(value, isAsBefore(callerBySession(value), OF_CALLER, value)),
    options,
  );
  const byKey = prepared<Values & ByKey & Remembered, Row>(
    (value) => build(value, isAsBefore(callerByKey(value), OF_KEY, value)),
    options,
  );
  return async ({ db, caller: { unconfirmed } }, values) => {
    if (!unconfirmed || unconfirmed.isConfirmed) return plain(db, values);
    const confirm = (unconfirmed.isKey ? byKey : bySession) as typeof plain;
    const rows = await confirm(db, { ...values, ...unconfirmed.values });
    if (rows[0]?.is_confirmed !== true) throw new NotConfirmed();
    unconfirmed.isConfirmed = true;
    return rows;
  };
}

/** A key whose use is due takes the longer way, which stores it. */
function isAsBefore(found: RawBuilder<unknown>, compared: Compared, value: ValueOf<Remembered>) {
  const names = Object.keys(compared);
  const remembered = Object.entries(compared).map(
    ([name, type]) => sql`${value(`remembered.${name}`)}::${sql.raw(type)}`,
  );
  const isNotDue = 'key_id' in compared ? sql` and not now.is_use_due` : sql``;
  return sql`confirmation as materialized (
    select exists (select from (${found}) as now
      where (${sql.join(names.map((name) => sql.ref(`now.${name}`)))}) is not distinct from (${sql.join(remembered)})${isNotDue}) as is_confirmed)`;
}

const MOST_REMEMBERED = 10_000;

/** Remembers callers by their credential, project and the needed role. */
export type RememberedCallers = {
  find: (key: string) => RememberedCaller | undefined;
  remember: (key: string, caller: RememberedCaller) => void;
  forget: (key: string) => void;
};
type RememberedCaller = { caller: AccountCaller; toConfirm: Omit<Unconfirmed, 'isConfirmed'> };

export function makeRememberedCallers(): RememberedCallers {
  const callers = new Map<string, RememberedCaller>();
  return {
    find: (key) => callers.get(key),
    remember: (key, caller) => {
      callers.delete(key);
      callers.set(key, caller);
      const [oldest] = callers.keys();
      if (callers.size > MOST_REMEMBERED && oldest !== undefined) callers.delete(oldest);
    },
    forget: (key) => void callers.delete(key),
  };
}
