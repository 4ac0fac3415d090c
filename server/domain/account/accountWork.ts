import { sql } from 'kysely';
import { areErasuresDue } from '../../database/level.ts';
import { type Db, queryOne } from '../../database/query.ts';
import type { Log } from '../../runtime/log.ts';
import { makeLooks, type NextPause } from '../../runtime/looks.ts';
import { isCalledFor } from './accountCall.ts';
import { erasuresFileProblem, makeErasureFile } from './erasureFile.ts';
import { HAS_WAITING_EXPORT, makeExport } from './export.ts';

/** Without a call, each process looks so often for exports of killed processes, and for erasures by other nodes. */
const LOOK_MILLISECONDS = 15_000;
const AFTER_FAILURE_MILLISECONDS = 5000;
const SHORTEST_PAUSE_MILLISECONDS = 200;

type AccountWork = {
  db: Db;
  log: Log;
  /** The operator's file of erasures; undefined if there is none. */
  file: string | undefined;
  /** Told whether a restored database waits for its erasures. */
  onDue: (isDue: boolean) => void;
};

/** Makes exports, and keeps the file of erasures. While nothing happens, a look is one statement. */
export function startAccountWork({ db, log, file, onDue }: AccountWork) {
  const erasures = file === undefined ? undefined : makeErasureFile(file);
  let warnedOf = 0;
  if (file !== undefined)
    void erasuresFileProblem(file).then((problem) => {
      if (problem)
        log.error(
          `ERASURES_FILE: erasures can't be written to ${file}: ${problem}. A restore would bring back who is erased now.`,
        );
    });
  const looks = makeLooks(look);
  looks.begin(0);
  return {
    wake: () => {
      if (isCalledFor()) looks.wake();
    },
    stop: looks.stop,
  };

  async function look(): Promise<NextPause> {
    try {
      const { last_erasure, has_export, is_due } = await queryOne(
        db,
        sql<{ last_erasure: Date | null; has_export: boolean; is_due: boolean }>`
          select (select max(erased_at) from erasures) as last_erasure, ${HAS_WAITING_EXPORT} as has_export,
            ${areErasuresDue} as is_due`,
      );
      onDue(is_due);
      const isKept = await keepErasures(last_erasure);
      if (has_export) await makeExport(db);
      const pause = isKept ? LOOK_MILLISECONDS : AFTER_FAILURE_MILLISECONDS;
      return { pause: has_export ? 0 : pause, shortest: SHORTEST_PAUSE_MILLISECONDS };
    } catch (error) {
      log.warn(error, 'Exports wait for the next look.');
      return { pause: AFTER_FAILURE_MILLISECONDS, shortest: 0 };
    }
  }

  /** Exports go on while the file can't be written. */
  async function keepErasures(last: Date | null): Promise<boolean> {
    try {
      if (erasures) await erasures.append(db, last);
      else warn(last);
      return true;
    } catch (error) {
      log.warn(error, 'The file of erasures waits for the next look.');
      return false;
    }
  }

  function warn(last: Date | null): void {
    if (last === null || last.getTime() <= warnedOf) return;
    warnedOf = last.getTime();
    log.warn(
      'Persons were erased, and ERASURES_FILE is not set: a restored backup would bring them back. Set it, or keep what npx deckhand erasures list prints.',
    );
  }
}
