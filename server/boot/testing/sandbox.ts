import type { MessagePort } from 'node:worker_threads';
import type { Reply, Request, Started } from '../../../client/testing/messages.ts';
import type { SandboxStart, SandboxState } from '../../../client/testing/sandbox/states.ts';
import { SCOPES } from '../../api/routers/app.ts';
import { connect, type Database } from '../../database/connect.ts';
import { migrate } from '../../database/migrate.ts';
import { DEMO_USER, emailOf } from '../../database/seed/demoUsers.ts';
import { fillSandbox, wakeWebhooks, writeLaterEvent } from '../../database/seed/sandbox.ts';
import { makeLogger } from '../../security/logger.ts';
import { type RunningService, start } from '../start.ts';
import { beginRollout } from './rollout.ts';
import { readTestSettings, writeToStarter } from './service.ts';
import { relayWebhooks } from './webhookRelay.ts';

/**
 * Serves a sandbox. A reset starts the service again, so that limits and everything else in memory are new; the database stays
 * open, since opening another one takes longer than all the rest.
 */
export async function serveSandbox(port: MessagePort, given: Record<string, string>, { state, relay }: SandboxStart) {
  relayWebhooks(relay);
  const settings = await readTestSettings({ ...DEFAULTS, ...given }, { DEMO_DATA: 'on' });
  const logger = await makeLogger(settings, writeToStarter);
  const database: Database = { ...(await connect(settings, logger)), close: async () => undefined };
  await migrate(database);
  let running: RunningService | undefined;

  const reset = async (state: SandboxState) => {
    await running?.stop();
    const people = await fillSandbox(database, state, SCOPES);
    running = await start(settings, logger, () => undefined, undefined, undefined, database);
    if (state === 'rollout') await beginRollout(running.url, people[0]?.key ?? '');
    return { url: running.url, people };
  };
  port.on('message', async ({ reply, reset: state, writeLaterEvent: isLater, wakeWebhooks: isEarlier }: Request) => {
    const answer = async (): Promise<Reply> => {
      if (isLater) await writeLaterEvent(database.db);
      if (isEarlier) await wakeWebhooks(database.db);
      return { failure: undefined, ...(state && { url: (await reset(state)).url }) };
    };
    reply.postMessage(await answer().catch(({ message }: Error): Reply => ({ failure: message })));
  });
  const admin = { email: emailOf('Admin'), password: DEMO_USER.password };
  port.postMessage({ ...(await reset(state)), admin } satisfies Started);
}

/** Public, like all credentials of a sandbox: tokens are the same in each one. */
const DEFAULTS = { JWT_SECRET: 'the secret of a sandbox, which everybody knows' };
