import type { Registry } from 'prom-client';
import type { Db } from '../database/query.ts';
import { eventDelaySeconds } from '../domain/event/feed.ts';
import { measureBacklog } from '../domain/event/webhookBacklog.ts';
import { measureMails } from '../domain/mail/mailQueue.ts';
import { measureRollouts } from '../domain/template/rolloutReport.ts';
import { addGauge } from './gauge.ts';

/** The results of a statement are used for this long, however many ask for metrics. */
const KEPT_MILLISECONDS = 10_000;

/** How late events are, for all readers and for webhooks. */
export function addEventMetrics(registry: Registry, db: Db): void {
  addGauge(
    registry,
    'deckhand_event_delay_seconds',
    'How long the oldest event waits for a transaction that is still running.',
    [],
    async () => [[await eventDelaySeconds(db)]],
  );
  const backlog = kept(() => measureBacklog(db));
  const byState = (name: string, help: string, field: 'webhooks' | 'behind' | 'events' | 'oldestSeconds') =>
    addGauge(registry, name, help, ['state'], async () =>
      (await backlog()).map(({ state, [field]: value }) => [value, { state }]),
    );
  byState('deckhand_webhooks', 'Webhooks by state.', 'webhooks');
  byState('deckhand_webhooks_behind', 'Webhooks with events that are not delivered yet.', 'behind');
  byState('deckhand_webhook_waiting_events', 'Events that wait for webhooks, at most 100 for each one.', 'events');
  byState(
    'deckhand_webhook_oldest_event_seconds',
    'The age of the oldest event that waits for a webhook.',
    'oldestSeconds',
  );
}

/** Open rollouts: what they do, and whether somebody has to look after them. */
export function addRolloutMetrics(registry: Registry, db: Db): void {
  const measured = kept(() => measureRollouts(db));
  addGauge(registry, 'deckhand_rollouts', 'Open rollouts by what they do.', ['state'], async () => {
    const { failed, idleSeconds, ...states } = await measured();
    return Object.entries(states).map(([state, count]) => [count, { state }]);
  });
  addGauge(
    registry,
    'deckhand_rollout_failed_projects',
    'Projects of open rollouts that failed, or gained a conflict.',
    [],
    async () => [[(await measured()).failed]],
  );
  addGauge(
    registry,
    'deckhand_rollout_idle_seconds',
    'How long the next step of a rollout has been due without progress.',
    [],
    async () => [[(await measured()).idleSeconds]],
  );
}

/** Mails that wait, and for how long. */
export function addMailMetrics(registry: Registry, db: Db): void {
  const measured = kept(() => measureMails(db));
  const byKind = (name: string, help: string, field: 'mails' | 'oldestSeconds') =>
    addGauge(registry, name, help, ['kind'], async () =>
      (await measured()).map(({ kind, [field]: value }) => [value, { kind }]),
    );
  byKind('deckhand_mails_waiting', 'Mails that are not sent yet.', 'mails');
  byKind('deckhand_mail_oldest_seconds', 'The age of the oldest mail that is not sent yet.', 'oldestSeconds');
}

/** Measures at most once in a while. */
function kept<Result>(measure: () => Promise<Result>): () => Promise<Result> {
  let measured: Promise<Result> | undefined;
  let measuredAt = 0;
  return () => {
    if (!measured || performance.now() - measuredAt > KEPT_MILLISECONDS) {
      measuredAt = performance.now();
      measured = measure();
    }
    return measured;
  };
}
