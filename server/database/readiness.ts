import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Database } from './connect.ts';
import { areErasuresDue, LATEST_LEVEL, laterVersion } from './level.ts';
import { type Db, oneRow, query, SHORT_TIMEOUT, withShortTimeout } from './query.ts';

/** The reasons why a node is not ready, with their texts. */
export const UNREADY = {
  unavailable: 'database unavailable',
  read_only: 'database read-only',
  tables_locked: 'tables locked',
  commits_waiting: 'commits wait for a standby',
  later_version: 'the database needs a later version',
  erasures_due: 'restored: waits for npx deckhand erasures apply FILE, or erasures none',
};

/** Undefined if the node is ready. */
export type Unready = { reason: keyof typeof UNREADY; cause?: unknown } | undefined;

/** Finds out whether the database accepts writes; concurrent checks share one. */
export type Readiness = () => Promise<Unready>;

/** In total; each statement has a limit of its own. */
const LONGEST_CHECK_MILLISECONDS = 4_500;
/** Locking and writing are tried at most once in this time: anybody may ask, as often as they want. */
const TRIAL_INTERVAL_MILLISECONDS = 1_000;
/** Below PostgreSQL's `deadlock_timeout`, so that this check gives up, not the migration. */
const LONGEST_LOCK_MILLISECONDS = 500;

/** What finding the caller reads, and what most calls write. */
const NEEDED_TABLES = ['users', 'sessions', 'members', 'projects', 'api_keys', 'boards', 'groups', 'cards'];

/** Takes the locks that a write takes, which wait for migrations only. One statement, so that its timeout is short. */
const LOCK = `${SHORT_TIMEOUT} do $$ begin
  set local lock_timeout = ${LONGEST_LOCK_MILLISECONDS};
  lock table ${NEEDED_TABLES.join(', ')} in row exclusive mode;
end $$`;

/** Writes to the write-ahead log only, where nobody reads it. Its commit waits for synchronous standbys, as all do. */
const WRITE = `${SHORT_TIMEOUT} select pg_logical_emit_message(true, 'deckhand', 'ready')`;

const IS_DUE = withShortTimeout(sql<{ is_due: boolean }>`select ${areErasuresDue} as is_due`);

/** `is_waiting`: such a commit of any node hangs, for one second or more. The next would hang on the server, too. */
const STATE = `${SHORT_TIMEOUT} select exists (select from database_state where erasures_due_at is not null) as is_due,
  exists (select from database_state where level > ${LATEST_LEVEL}) as is_later, current_setting('transaction_read_only') = 'on' as is_read_only,
  exists (select from pg_stat_activity where wait_event = 'SyncRep' and query = $$${WRITE}$$
    and query_start < clock_timestamp() - interval '1 s') as is_waiting`;

export function makeReadiness({ db, isEmbedded }: Pick<Database, 'db' | 'isEmbedded'>): Readiness {
  const check = isEmbedded ? () => checkEmbedded(db) : makeServerCheck(db);
  let checking: Promise<Unready> | undefined;
  return async () => {
    checking ??= check().finally(() => {
      checking = undefined;
    });
    return inTime(checking, LONGEST_CHECK_MILLISECONDS, { reason: 'unavailable' });
  };
}

const checkEmbedded = (db: Db): Promise<Unready> =>
  query(db, IS_DUE).then((state) => (oneRow(state).is_due ? { reason: 'erasures_due' } : undefined), toUnready);

function makeServerCheck(db: Db): () => Promise<Unready> {
  const run = <Row>(statement: string) => query(db, sql.raw<Row>(statement));
  let nextTrial = 0;

  const findState = async (): Promise<Unready> => {
    type State = Record<'is_due' | 'is_later' | 'is_read_only' | 'is_waiting', boolean>;
    const { is_due, is_later, is_read_only, is_waiting } = oneRow(await run<State>(STATE));
    if (is_later) return { reason: 'later_version', cause: new Error(await laterVersion(db)) };
    if (is_due) return { reason: 'erasures_due' };
    if (is_read_only) return { reason: 'read_only' };
    return is_waiting ? { reason: 'commits_waiting' } : undefined;
  };
  return async () => {
    try {
      const unready = await findState();
      if (unready || performance.now() < nextTrial) return unready;
      await run(LOCK);
      const failure = await run(WRITE).then(() => undefined, toUnready);
      if (failure) return (await findState()) ?? failure;
      nextTrial = performance.now() + TRIAL_INTERVAL_MILLISECONDS;
      return undefined;
    } catch (error) {
      return toUnready(error);
    }
  };
}

function toUnready(cause: unknown): Unready {
  const reasons = { '25006': 'read_only', '55P03': 'tables_locked' } as const;
  return { reason: reasons[(cause as { code?: keyof typeof reasons }).code!] ?? 'unavailable', cause };
}

async function inTime<Result>(work: Promise<Result>, milliseconds: number, late: Result): Promise<Result> {
  const limit = new AbortController();
  const ended = sleep(milliseconds, late, { ref: false, signal: limit.signal });
  return Promise.race([work, ended]).finally(() => limit.abort());
}
