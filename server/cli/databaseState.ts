import { adoptDatabase, beginRestored } from '../database/incarnation.ts';
import { finishUpgrade, LATEST_LEVEL, remindersOf, resumeWebhooks } from '../database/level.ts';
import type { Given, Outcome } from './command.ts';
import { withExistingDatabase } from './onDatabase.ts';

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
    const message = [
      `Cursors of events from before are refused now, and ids of events have jumped ahead (${place}).`,
      ...reminders,
    ];
    return { result: { reminders }, message: message.join('\n') };
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
