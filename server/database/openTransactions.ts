import { sql } from 'kysely';
import { counted } from '../runtime/count.ts';
import { type Db, query } from './query.ts';

/** The name of connections for migrations, which hold a lock in an open transaction themselves. */
export const MIGRATING = 'deckhand-migrations';

const LOOK_MILLISECONDS = 5_000;
const LONG_SECONDS = 5;

type OpenTransaction = { pid: number; name: string; state: string; seconds: number };

/**
 * Reports transactions that stay open while migrations run, each once: a migration waits for those that use its table, and a
 * new index for all of them. Returns a function that ends it.
 */
export function watchTransactions(db: Db, onOpen: (line: string) => void): () => void {
  const reported = new Set<number>();
  const timer = setInterval(async () => {
    for (const { pid, name, state, seconds } of await findOpen(db, LONG_SECONDS).catch(() => [])) {
      if (reported.has(pid)) continue;
      reported.add(pid);
      const program = name === '' ? '' : ` (${name})`;
      onOpen(
        `A migration may wait for the transaction of process ${pid}${program}, ${state} and open for ${counted(seconds, 'second')}. To end it: select pg_terminate_backend(${pid})`,
      );
    }
  }, LOOK_MILLISECONDS).unref();
  return () => clearInterval(timer);
}

export const findOpen = (db: Db, longerThanSeconds: number) =>
  query(
    db,
    sql<OpenTransaction>`
      select pid, application_name as name, state, extract(epoch from now() - xact_start)::int as seconds
      from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
        and application_name <> ${MIGRATING} and xact_start < now() - make_interval(secs => ${longerThanSeconds})
      order by xact_start limit 3`,
  );
