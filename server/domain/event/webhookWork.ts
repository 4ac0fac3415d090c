import { setTimeout as pause } from 'node:timers/promises';
import { adoptDatabase, noticeOf } from '../../database/incarnation.ts';
import { remindersOf } from '../../database/level.ts';
import type { Outgoing } from '../../security/outgoing.ts';
import { type Claimed, claimWebhooks, type Running, SLOW_MILLISECONDS } from './webhookClaim.ts';
import { type Delivering, deliver } from './webhookDelivery.ts';
import { RENEW_MILLISECONDS, renewLeases } from './webhookLease.ts';
import { type NextLook, startLooks } from './webhookLooks.ts';

/** How long a stopping node waits for calls that are under way, before it ends them. */
const LONGEST_STOP_MILLISECONDS = 1000;

const AFTER_FAILURE_MILLISECONDS = 1000;

type WebhookWork = {
  /** Looks for due webhooks now: something has changed. */
  wake: () => void;
  stop: () => Promise<void>;
};

/** Delivers events to webhooks, a bounded number at once, in every process. A failure is logged, and the next look retries. */
export function startWebhooks(
  delivering: Omit<Delivering, 'outgoing' | 'signal'> & { outgoing: Outgoing },
  longestPause?: number,
): WebhookWork {
  const { log, outgoing } = delivering;
  const ended = new AbortController();
  const running = new Map<Running, Promise<void>>();
  let renewal: NodeJS.Timeout | undefined;
  const { wake, stop } = startLooks(look, longestPause);
  return {
    wake,
    stop: async () => {
      await stop();
      const all = Promise.all(running.values());
      await Promise.race([all, pause(LONGEST_STOP_MILLISECONDS, undefined, { ref: false })]);
      ended.abort();
      await all;
      clearInterval(renewal);
      outgoing.close();
    },
  };

  async function look(): Promise<NextLook> {
    try {
      const { claimed, isAdopted, ...next } = await claimWebhooks(delivering, [...running.keys()]);
      if (!isAdopted) await adopt();
      for (const webhook of claimed) begin(webhook);
      // A webhook with a test may have events, too.
      return claimed.some(({ lane }) => lane === 'tested') ? { ...next, dueInMilliseconds: 0 } : next;
    } catch (error) {
      log.warn(error, 'Webhooks wait for the next look.');
      return { isWaiting: false, dueInMilliseconds: AFTER_FAILURE_MILLISECONDS, seen: 0 };
    }
  }

  /** Notices a restore or a fail-over under a running node, also if nobody reads events. */
  async function adopt(): Promise<void> {
    const notice = noticeOf(await adoptDatabase(delivering.db));
    if (notice) log.warn([notice, ...(await remindersOf(delivering.db))].join(' '));
  }

  function begin(webhook: Claimed): void {
    const { id, lane, project_id } = webhook;
    const run: Running = { id, lane, project_id, isTest: lane === 'tested' };
    const done = deliver({ ...delivering, outgoing: { post: postIn(run) }, signal: ended.signal }, webhook)
      .catch((error) => log.warn(error, `Webhook ${id} waits for the end of its lease.`))
      .finally(() => {
        running.delete(run);
        if (running.size === 0) stopRenewing();
        // It may have further events, and its place is free for others.
        wake();
      });
    running.set(run, done);
    renewal ??= setInterval(renew, RENEW_MILLISECONDS).unref();
  }

  /** Moves a delivery to the slow lane as soon as a call takes long, so that others get its place. */
  function postIn(run: Running): Outgoing['post'] {
    return async (...call) => {
      const timer = setTimeout(() => {
        run.lane = 'slow';
        wake();
      }, SLOW_MILLISECONDS);
      return outgoing.post(...call).finally(() => clearTimeout(timer));
    };
  }

  function renew(): void {
    const ids = [...running.keys()].filter(({ isTest }) => !isTest).map(({ id }) => id);
    if (ids.length === 0) return;
    renewLeases(delivering, ids).catch((error) => log.warn(error, 'Other nodes may take over deliveries of this one.'));
  }

  function stopRenewing(): void {
    clearInterval(renewal);
    renewal = undefined;
  }
}
