import { adoptDatabase, beginRestored } from '../database/incarnation.ts';
import { finishUpgrade, LATEST_LEVEL, remindersOf, resumeWebhooks } from '../database/level.ts';
import { migrate } from '../database/migrate.ts';
import { fillWithDemoData } from '../database/seed/demo.ts';
import { type Fault, verifyDatabase } from '../database/verify.ts';
import { counted } from '../runtime/count.ts';
import type { Given, Outcome } from './command.ts';
import { withDatabase, withExistingDatabase } from './onDatabase.ts';

/** Commands on the tables of a database, and on the state that it keeps about itself. */

export async function runMigrations({ environment, terminal }: Given): Promise<Outcome> {
  const writeLine = (line: string) => terminal.write(`${line}\n`);
  const onMigration = (name: string) => terminal.update(`Runs ${name}`);
  const applied = await withDatabase(environment, (database) =>
    migrate(database, { onMigration, onWait: writeLine, onAdopted: writeLine }),
  ).finally(() => terminal.update(''));
  const message = applied.length === 0 ? 'The tables are up to date.' : `Applied: ${applied.join(', ')}`;
  return { result: { applied }, message };
}

export async function fillDemo({ environment }: Given): Promise<Outcome> {
  const filled = await withDatabase(environment, async (database) => {
    await migrate(database);
    return fillWithDemoData(database);
  });
  const message = filled
    ? 'Filled with the demo data.'
    : 'Nothing changed: the database is not empty. For the demo data, choose another DATA_DIR or DATABASE_URL.';
  return { result: { filled }, message };
}

export const finishUpgradeOf = ({ environment }: Given): Promise<Outcome> =>
  withExistingDatabase(environment, async ({ db }, place) => {
    const before = await finishUpgrade(db);
    await adoptDatabase(db);
    const message =
      before < LATEST_LEVEL
        ? `The upgrade is finished: the database is at level ${LATEST_LEVEL}, it was at ${before} (${place}). Stop nodes of the version before: they don't know all of what is written now.`
        : `Nothing changed: the database is at level ${before}, the latest of this version (${place}).`;
    return { result: { level: Math.max(before, LATEST_LEVEL), level_before: before }, message };
  });

export const markRestored = ({ environment }: Given): Promise<Outcome> =>
  withExistingDatabase(environment, async ({ db }, place) => {
    await beginRestored(db);
    const reminders = await remindersOf(db);
    const done = `Cursors of events from before are refused now, and ids of events have jumped ahead (${place}).`;
    return { result: { reminders }, message: [done, ...reminders].join('\n') };
  });

export const resumeWebhooksOf = ({ environment }: Given): Promise<Outcome> =>
  withExistingDatabase(environment, async ({ db }, place) => {
    await adoptDatabase(db);
    const resumed = await resumeWebhooks(db);
    const message = resumed
      ? `Webhooks go on, each behind the last event that it got (${place}). A running service begins within seconds.`
      : `Nothing changed: webhooks were not paused (${place}).`;
    return { result: { resumed }, message };
  });

export const verify = ({ environment, terminal }: Given): Promise<Outcome> =>
  withExistingDatabase(environment, async (database) => {
    const onProgress = ({ table, rows }: { table: string; rows: number }) =>
      terminal.update(`Checked ${counted(rows, 'row')} (${table})`);
    const verified = await verifyDatabase(database, { onProgress }).finally(() => terminal.update(''));
    const { tables, rows, pending, faults } = verified;
    const checked = `${counted(rows, 'row')} of ${counted(tables, 'table')} were checked.`;
    const lines = [
      ...faults.map(lineOf),
      faults.length === 0
        ? `Nothing wrong: ${checked}`
        : `${counted(faults.length, 'kind')} of faults; ${checked} Nothing was changed.`,
    ];
    if (pending.length > 0) {
      lines.push(`Not everything could be checked: ${counted(pending.length, 'migration')} to run.`);
    }
    return { result: verified, message: lines.join('\n'), hasFailed: faults.length > 0 };
  });

function lineOf({ problem, rows, ids, whatToDo }: Fault): string {
  const which = rows > 0 ? `: ${counted(rows, 'row')} (${ids.join(', ')}${rows > ids.length ? ', …' : ''})` : '';
  return `${problem}${which}.\n  ${whatToDo}`;
}
