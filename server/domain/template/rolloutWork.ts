import { setTimeout as pause } from 'node:timers/promises';
import type { Database } from '../../database/connect.ts';
import type { Log } from '../../runtime/log.ts';
import { makeLooks, type NextPause } from '../../runtime/looks.ts';
import { stepRollout } from './rolloutStep.ts';

/** Without a call, each process looks so often whether a rollout is due: a soak has ended, or another node was killed. */
const LOOK_MILLISECONDS = 15_000;
const AFTER_FAILURE_MILLISECONDS = 5000;

/** A step takes about 100 ms of the database, so that other calls hardly wait for it. */
const ROWS_PER_STEP = { server: 3000, embedded: 250 };

/** For so long after a call, this process looks at each announced change: the call may not be committed yet. */
const CALLED_FOR_MILLISECONDS = 5000;
const SHORTEST_PAUSE_MILLISECONDS = 100;

let calledForUntil = 0;

/** After a change of a rollout: the process looks as soon as the change is committed and announced. */
export function callForStep(): void {
  calledForUntil = performance.now() + CALLED_FOR_MILLISECONDS;
}

/**
 * Works on rollouts that are due, step by step, with pauses as long as the steps: at most half of the time, one step at a time in
 * each process. A failure is logged, and the next look goes on.
 */
export function startRollouts(
  { db, isEmbedded }: Pick<Database, 'db' | 'isEmbedded'>,
  log: Log,
  lookMilliseconds = LOOK_MILLISECONDS,
) {
  let isStopped = false;
  let current: number | null = null;
  const rowsPerStep = isEmbedded ? ROWS_PER_STEP.embedded : ROWS_PER_STEP.server;
  const looks = makeLooks(look);
  looks.begin(0);
  return {
    /** Something has changed. */
    wake: () => {
      if (performance.now() < calledForUntil) looks.wake();
    },
    stop: () => {
      isStopped = true;
      return looks.stop();
    },
  };

  async function look(): Promise<NextPause> {
    try {
      for (let begun = performance.now(); !isStopped; begun = performance.now()) {
        const stepped = await stepRollout(db, rowsPerStep, log);
        tell(stepped?.id ?? null);
        if (!stepped) return { pause: lookMilliseconds, shortest: SHORTEST_PAUSE_MILLISECONDS };
        await pause(performance.now() - begun, undefined, { ref: false });
      }
    } catch (error) {
      log.warn(error, 'Rollouts wait for the next look.');
      return { pause: AFTER_FAILURE_MILLISECONDS, shortest: 0 };
    }
    return { pause: null, shortest: 0 };
  }

  /** So that the log says which node works, and which took over. */
  function tell(id: number | null): void {
    if (id === current) return;
    log.info(id === null ? `Rollout ${current} has ended, or waits.` : `This process works on rollout ${id}.`);
    current = id;
  }
}
