import { setImmediate as turn } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, it, onTestFinished, vi } from 'vitest';
import { openServices } from '../../server/api/services.ts';
import { startWork } from '../../server/boot/work.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { databaseUrl, TEST_SECRET, testDatabase, withOwnDatabase } from '../harness/service.ts';
import { statementsOf } from '../harness/statements.ts';
import { fakeTimers } from '../harness/timers.ts';
import { givenProject, givenWebhook } from '../harness/world.ts';

withOwnDatabase();

/** Until the statements that are under way have ended, and no others follow. */
async function quiet(): Promise<void> {
  const { connections } = await testDatabase();
  for (let turns = 0; turns < 100; turns++) {
    await turn();
    const { used, pending, lane } = connections()!;
    if (used + pending + (lane?.used ?? 0) + (lane?.pending ?? 0) > 0) turns = 0;
  }
}

it.skipIf(!databaseUrl)('an idle process sends one statement in five seconds, and three more in fifteen', async () => {
  const database = await testDatabase();
  await givenWebhook(await givenProject());
  const log = pino({ level: 'silent' });
  const settings = readSettings({
    ...{ DATABASE_URL: databaseUrl!, JWT_SECRET: TEST_SECRET },
    ...{ SMTP_URL: 'smtp://127.0.0.1:9', MAIL_FROM: 'deckhand@example.com' },
  });
  const services = await openServices(settings, database, TEST_SECRET, log);
  onTestFinished(async () => void (await services.close()));
  // Long after the last large deletion of another suite, which is still looked after for a while.
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => now() + 3_600_000);
  const end = fakeTimers();

  const statements = await statementsOf(async (sent) => {
    const stop = startWork(settings, services, log, { url: 'http://localhost', announce: () => undefined });
    onTestFinished(async () => {
      end();
      await stop();
    });
    await vi.advanceTimersByTimeAsync(0);
    await quiet();
    sent.splice(0);
    for (let second = 0; second < 60; second++) {
      await vi.advanceTimersByTimeAsync(1000);
      await quiet();
    }
  });

  // 12 for webhooks, 4 for rollouts, 4 for mails, 4 for accounts.
  expect(statements.map(({ text }) => text)).toHaveLength(24);
});
