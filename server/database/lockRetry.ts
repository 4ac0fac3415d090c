import { setTimeout as sleep } from 'node:timers/promises';

/** The key of the advisory lock for migrations; nothing else uses it. */
export const MIGRATION_LOCK = 3_735_928_559;

/**
 * Migrations wait for a lock only this long: requests that need the table queue up behind them. It is shorter than PostgreSQL's
 * `deadlock_timeout` (1 s), so in a deadlock the migration gives way and never the request.
 */
export const SET_SHORT_LOCK_TIMEOUT = `set local lock_timeout = '100ms'`;

const LONGEST_MILLISECONDS = 10 * 60_000;

/** Repeats a transaction that gave up waiting for a lock. In between, waiting requests get their turn. */
export async function retryLocked<Result>(work: () => Promise<Result>): Promise<Result> {
  const latest = performance.now() + LONGEST_MILLISECONDS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isLocked(error) || performance.now() > latest) throw error;
      await sleep(200 + Math.random() * 500);
    }
  }
}

const DEADLOCK = '40P01';
const LOCK_NOT_AVAILABLE = '55P03';

const isLocked = (error: unknown) => [DEADLOCK, LOCK_NOT_AVAILABLE].includes((error as { code?: string }).code ?? '');
