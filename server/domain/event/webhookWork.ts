import { setTimeout as pause } from 'node:timers/promises';
import type { Outgoing } from '../../security/outgoing.ts';
import { AT_ONCE, type Claimed, claimWebhooks, type Lane } from './webhookClaim.ts';
import { type Delivering, deliver } from './webhookDelivery.ts';

const LOOK_MILLISECONDS = 1000;

/** How long a stopping node waits for calls that are under way, before it ends them. */
const LONGEST_STOP_MILLISECONDS = 1000;

type WebhookWork = {
  /** Looks for due webhooks now. */
  wake: () => void;
  stop: () => Promise<void>;
};

/** Delivers events to webhooks, a bounded number at once, on every node. A failure is logged, and the next look retries. */
export function startWebhooks(
  delivering: Omit<Delivering, 'outgoing' | 'signal'> & { outgoing: Outgoing },
  lookMilliseconds = LOOK_MILLISECONDS,
): WebhookWork {
  const { log, outgoing } = delivering;
  const ended = new AbortController();
  const running = new Map<Promise<void>, Lane>();
  let looking: Promise<void> | undefined;
  let isAskedAgain = false;
  let isStopped = false;

  const look = async () => {
    const free = { ...AT_ONCE };
    for (const lane of running.values()) free[lane]--;
    const claimed = await claimWebhooks(delivering, free);
    for (const webhook of claimed) begin(webhook);
  };
  const begin = (webhook: Claimed) => {
    const run = deliver({ ...delivering, signal: ended.signal }, webhook)
      .catch((error) => log.warn(error, `Webhook ${webhook.id} waits for the end of its lease.`))
      .finally(() => {
        running.delete(run);
        // It may have further events, and its place is free for others.
        wake();
      });
    running.set(run, webhook.lane);
  };
  const wake = () => {
    isAskedAgain = true;
    looking ??= lookUntilDone().finally(() => {
      looking = undefined;
    });
  };
  const lookUntilDone = async () => {
    while (isAskedAgain && !isStopped) {
      isAskedAgain = false;
      await look().catch((error) => log.warn(error, 'Webhooks wait for the next look.'));
    }
  };

  const timer = setInterval(wake, lookMilliseconds).unref();
  return {
    wake,
    stop: async () => {
      isStopped = true;
      clearInterval(timer);
      await looking;
      const all = Promise.all(running.keys());
      await Promise.race([all, pause(LONGEST_STOP_MILLISECONDS, undefined, { ref: false })]);
      ended.abort();
      await all;
      outgoing.close();
    },
  };
}
