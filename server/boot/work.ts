import type { Services } from '../api/services.ts';
import { startBackground } from '../database/background.ts';
import { removalWork } from '../database/removal.ts';
import { keyWarnings } from '../domain/account/keyWarning.ts';
import { CLEARING, RECENT_CLEARING } from '../domain/board/deletion.ts';
import { rightLosses } from '../domain/event/webhookRight.ts';
import { startWebhooks } from '../domain/event/webhookWork.ts';
import { removalsOf } from '../domain/removal/removals.ts';
import { startRollouts } from '../domain/template/rolloutWork.ts';
import type { Settings } from '../runtime/env.ts';
import type { Log } from '../runtime/log.ts';
import { makeOutgoing } from '../security/outgoing.ts';

/**
 * Starts what a process does without being called, and returns how to stop it. While nothing happens, that is one statement in
 * five seconds, another one for rollouts in fifteen, and the removal of old rows every ten minutes.
 */
export function startWork(
  settings: Settings,
  { database, secretBox, webhookAllowedHosts, eventHub }: Services,
  log: Log,
): () => Promise<unknown> {
  const { API_KEYS_MAX_DAYS: keyMaxDays } = settings;
  const works = [
    CLEARING,
    ...removalsOf(settings).map(removalWork),
    keyWarnings(keyMaxDays, log),
    rightLosses(keyMaxDays, log),
  ];
  const stopBackground = startBackground(database, works, log);
  // Soon, since lists have to skip these cards until they are marked.
  const stopClearing = startBackground(database, [RECENT_CLEARING], log, 10_000);
  const outgoing = makeOutgoing({ allowedHosts: webhookAllowedHosts });
  const webhooks = settings.WEBHOOKS
    ? startWebhooks({ db: database.db, services: { keyMaxDays }, secretBox, log, outgoing })
    : undefined;
  if (webhooks) eventHub.onChange(webhooks.wake);
  else log.warn('This process delivers no events to webhooks: WEBHOOKS=off.');
  const rollouts = startRollouts(database, log);
  eventHub.onChange(rollouts.wake);
  return () => Promise.all([stopBackground(), stopClearing(), rollouts.stop(), webhooks?.stop()]);
}
