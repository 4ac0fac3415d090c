import { type RawBuilder, sql } from 'kysely';
import { type PreparedOptions, prepared, type ValueOf } from '../../database/prepared.ts';
import type { Db } from '../../database/query.ts';
import {
  type ByKey,
  type BySession,
  type Call,
  type Credential,
  userByKey,
  userBySession,
  type ValidUser,
} from './caller.ts';
import type { AccountCaller, Caller, FoundCaller, FoundKey, Unconfirmed } from './context.ts';

/**
 * A caller who was found by an earlier call is remembered. The statement of the next call looks the caller up and compares: if
 * anything differs, it reads and writes nothing, and the call begins again with `findCaller`. So a call needs one round trip, and
 * a right that was revoked is refused by the first statement that begins after the revocation.
 */

/** What a statement compares, with its type. */
const COMPARED = {
  superadmin: 'boolean',
  superadmin_billing: 'boolean',
  rate_limit_per_minute: 'int',
  default_project_id: 'int',
  key_id: 'int',
  scopes: 'text[]',
  key_project_id: 'int',
} satisfies Partial<Record<keyof (FoundCaller & FoundKey), string>>;
const REMEMBERED = ['id', 'project_id', 'platform_id', 'role', ...Object.keys(COMPARED)];
type Remembered = Record<`remembered.${string}`, unknown>;

/**
 * What a statement of the same credential needs to confirm the caller. Undefined unless they act in the project that they chose,
 * or else in their default one, with a role that is high enough: others need more than a few look-ups.
 */
export function toConfirm(
  credential: Credential,
  call: Call & { keyMaxDays: number | null },
  { found, superadmin }: Caller,
): Omit<Unconfirmed, 'isConfirmed'> | undefined {
  if (!found) return undefined;
  const { key_project_id } = found as FoundCaller & Partial<FoundKey>;
  const chosen = key_project_id ?? call.chosenProjectId;
  const isPlain = found.project_id !== null && found.project_id === (chosen ?? found.default_project_id);
  const isEnough = chosen !== null || superadmin || (found.role !== null && call.enough.includes(found.role));
  if (!isPlain || !isEnough) return undefined;
  const remembered = REMEMBERED.map((name) => [`remembered.${name}`, found[name as keyof typeof found]] as const);
  return {
    isKey: 'keyHash' in credential,
    values: { ...credential, keyMaxDays: call.keyMaxDays, ...Object.fromEntries(remembered) },
  };
}

/** Thrown if a remembered caller is not as before. */
export class NotConfirmed extends Error {}

export type Confirmed = { is_confirmed: boolean };

/** The parts of a statement that confirm its caller; without a remembered one there is nothing to confirm. */
export type Confirmation = {
  /** Before other parts of `with`. */
  first: RawBuilder<unknown>;
  /** Where there are no others. */
  alone: RawBuilder<unknown>;
  isConfirmed: RawBuilder<boolean>;
};
const NOTHING_TO_CONFIRM: Confirmation = { first: sql``, alone: sql``, isConfirmed: sql`true` };

/**
 * A prepared statement that confirms a remembered caller. It must read and write nothing unless `isConfirmed`, and return that in
 * its first row.
 */
export function confirming<Values extends object, Row extends Confirmed>(
  build: (value: ValueOf<Values>, confirmation: Confirmation) => RawBuilder<Row>,
  options?: PreparedOptions,
): (context: { db: Db; caller: Caller }, values: Values) => Promise<Row[]> {
  const plain = prepared<Values, Row>((value) => build(value, NOTHING_TO_CONFIRM), options);
  const bySession = prepared<Values & BySession & Remembered, Row>(
    (value) => build(value, isAsBefore(userBySession(value), value)),
    { ...options, isFirst: true },
  );
  const byKey = prepared<Values & ByKey & Remembered, Row>(
    (value) => build(value, isAsBefore(userByKey(value), value)),
    { ...options, isFirst: true },
  );
  return async ({ db, caller: { unconfirmed } }, values) => {
    if (!unconfirmed || unconfirmed.isConfirmed) return plain(db, values);
    const confirm = (unconfirmed.isKey ? byKey : bySession) as typeof plain;
    const rows = await confirm(db, values, unconfirmed.values);
    if (rows[0]?.is_confirmed !== true) throw new NotConfirmed();
    unconfirmed.isConfirmed = true;
    return rows;
  };
}

/**
 * Whether the credential is valid and nothing has changed, by look-ups in unique indexes. A key whose use is due takes the longer
 * way, which stores it.
 */
function isAsBefore({ users, isValid, superadmin, ofKey }: ValidUser, value: ValueOf<Remembered>): Confirmation {
  const { is_use_due, ...compared } = ofKey;
  const columns = {
    superadmin,
    ...Object.fromEntries(OF_USER.map((name) => [name, sql.ref(`u.${name}`)])),
    ...compared,
  };
  const remembered = Object.keys(columns).map(
    (name) => sql`${value(`remembered.${name}`)}::${sql.raw(COMPARED[name as keyof typeof COMPARED])}`,
  );
  const project = sql`${value('remembered.project_id')}::int`;
  const part = sql`confirmation as materialized (
    select exists (select from ${users} where ${isValid}
        and (${sql.join(Object.values(columns))}) is not distinct from (${sql.join(remembered)})${is_use_due ? sql` and not ${is_use_due}` : sql``})
      and (select platform_id from projects where id = ${project} and is_active) is not distinct from ${value('remembered.platform_id')}::int
      and (select role from members where project_id = ${project} and user_id = ${value('remembered.id')}::int)
        is not distinct from ${value('remembered.role')}::text as is_confirmed)`;
  const isConfirmed = sql<boolean>`(select is_confirmed from confirmation)`;
  return { first: sql`${part}, `, alone: sql`with ${part}`, isConfirmed };
}
const OF_USER = ['superadmin_billing', 'rate_limit_per_minute', 'default_project_id'];

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
