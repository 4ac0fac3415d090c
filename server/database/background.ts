import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../runtime/log.ts';
import type { Database } from './connect.ts';
import type { Db } from './query.ts';
import type { TableName } from './tables.ts';

/** Work on rows that become due, done in the background in short steps: by every node, and at any time a step may be the last. */
export type BackgroundWork = {
  /** Whose rows, for the log. */
  table: TableName;
  /** Whether there may be due rows; otherwise no statement is sent. */
  mayBeDue?: () => boolean;
  /** Handles at most `rows` due rows in one short transaction, and skips those that another node has locked. */
  step: (db: Db, limit: StepLimit) => Promise<Step>;
};

/** `after` is what the step before returned as `last`: it need not look again at what that one has handled. */
export type StepLimit = { rows: number; after?: string };
export type Step = { count: number; last?: string | null };

/** A step takes some milliseconds. The pause leaves the database to other calls; the embedded one runs in their thread. */
const SERVER_PACE = { rows: 1000, pauseMilliseconds: 50 };
const EMBEDDED_PACE = { rows: 100, pauseMilliseconds: 50 };

const LOOK_MILLISECONDS = 10 * 60_000;

/** How often work on a table has failed in this process. */
export const failedWork = new Map<TableName, number>();

/**
 * Looks for due rows now and then, and handles them in the order of the list. A failure is logged, and the next look retries.
 * Returns a function that stops it and waits for the current step.
 */
export function startBackground(
  { db, isEmbedded }: Pick<Database, 'db' | 'isEmbedded'>,
  works: BackgroundWork[],
  log: Log,
  lookMilliseconds = LOOK_MILLISECONDS,
): () => Promise<void> {
  let isStopped = false;
  const pace = isEmbedded ? EMBEDDED_PACE : SERVER_PACE;
  const handleAll = async () => {
    for (const work of works) {
      if (work.mayBeDue?.() === false) continue;
      await workOff(db, work, { ...pace, isStopped: () => isStopped }).catch((error) => {
        failedWork.set(work.table, (failedWork.get(work.table) ?? 0) + 1);
        log.warn(error, `Rows of ${work.table} that are due stay until the next look.`);
      });
    }
  };

  for (const { table } of works) failedWork.set(table, failedWork.get(table) ?? 0);
  let running = handleAll();
  const timer = setInterval(() => {
    running = running.then(handleAll);
  }, lookMilliseconds).unref();
  return async () => {
    isStopped = true;
    clearInterval(timer);
    await running;
  };
}

type Pace = { rows: number; pauseMilliseconds: number; isStopped: () => boolean };

/** Handles all due rows, in several passes: the first one may make more rows due, as a removed reply does its parent. */
export async function workOff(db: Db, work: BackgroundWork, pace: Pace): Promise<void> {
  while (!pace.isStopped() && (await passOver(db, work, pace)) > 0);
}

async function passOver(db: Db, { step }: BackgroundWork, pace: Pace): Promise<number> {
  let total = 0;
  let after: string | undefined;
  for (;;) {
    const { count, last } = await step(db, { rows: pace.rows, after });
    total += count;
    if (count < pace.rows || pace.isStopped()) return total;
    after = last ?? undefined;
    await sleep(pace.pauseMilliseconds);
  }
}
