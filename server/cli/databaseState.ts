import { adoptDatabase, beginRestored } from '../database/incarnation.ts';
import { finishUpgrade, LATEST_LEVEL, remindersOf, resumeWebhooks } from '../database/level.ts';
import type { Given, Outcome } from './command.ts';
import { withDatabase } from './onDatabase.ts';

export const finishUpgradeOf = ({ environment }: Given): Promise<Outcome> =>
  withDatabase(environment, async ({ db }) => {
    const before = await finishUpgrade(db);
    await adoptDatabase(db);
    const message =
      before < LATEST_LEVEL
        ? `The upgrade is finished: the database is at level ${LATEST_LEVEL}, it was at ${before}. Nodes of the version before can't run on it any more.`
        : `Nothing changed: the database is at level ${before}, the latest of this version.`;
    return { result: { level: Math.max(before, LATEST_LEVEL), level_before: before }, message };
  });

export const markRestored = ({ environment }: Given): Promise<Outcome> =>
  withDatabase(environment, async ({ db }) => {
    await beginRestored(db);
    const reminders = await remindersOf(db);
    const message = [
      'Cursors of events from before are refused now, and ids of events have jumped ahead.',
      ...reminders,
    ];
    return { result: { reminders }, message: message.join('\n') };
  });

export const resumeWebhooksOf = ({ environment }: Given): Promise<Outcome> =>
  withDatabase(environment, async ({ db }) => {
    await adoptDatabase(db);
    const resumed = await resumeWebhooks(db);
    const message = resumed
      ? 'Webhooks go on, each behind the last event that it got. A running service begins within seconds.'
      : 'Nothing changed: webhooks were not paused.';
    return { result: { resumed }, message };
  });
