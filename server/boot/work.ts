import type { Services } from '../api/services.ts';
import { startBackground } from '../database/background.ts';
import { mayHaveErased } from '../database/level.ts';
import { removalWork } from '../database/removal.ts';
import { startAccountWork } from '../domain/account/accountWork.ts';
import { ERASURE_SWEEP } from '../domain/account/erasure.ts';
import { keyWarnings } from '../domain/account/keyWarning.ts';
import { CLEARING, RECENT_CLEARING } from '../domain/board/deletion.ts';
import { rightLosses } from '../domain/event/webhookRight.ts';
import { startWebhooks } from '../domain/event/webhookWork.ts';
import { showOn, startMails } from '../domain/mail/mailWork.ts';
import { removalsOf } from '../domain/removal/removals.ts';
import { startRollouts } from '../domain/template/rolloutWork.ts';
import type { Settings } from '../runtime/env.ts';
import type { Announce, Log } from '../runtime/log.ts';
import { makeOutgoing } from '../security/outgoing.ts';
import { makeSmtp } from '../security/smtp.ts';

/** Where links in mails lead without PUBLIC_URL, and where the demo shows mails. */
type Surroundings = { url: string; announce: Announce };

/**
 * Starts what a process does without being called, and returns how to stop it. While nothing happens, that is one statement in
 * five seconds, three more for rollouts, mails and accounts in fifteen, and the removal of old rows every ten minutes.
 */
export function startWork(
  settings: Settings,
  { database, secretBox, webhookAllowedHosts, eventHub, sendsMail, erasures }: Services,
  log: Log,
  { url, announce }: Surroundings,
): () => Promise<unknown> {
  const { API_KEYS_MAX_DAYS: keyMaxDays } = settings;
  const works = [
    CLEARING,
    ...removalsOf(settings).map(removalWork),
    keyWarnings(keyMaxDays, log),
    rightLosses(keyMaxDays, log),
    ERASURE_SWEEP,
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
  const { PUBLIC_URL: base = url, SMTP_URL, MAIL_FROM = '' } = settings;
  const send = SMTP_URL ? makeSmtp(SMTP_URL, MAIL_FROM) : showOn(announce);
  const mails = sendsMail ? startMails({ db: database.db, log, base, send }) : undefined;
  if (mails) eventHub.onChange(mails.wake);
  const accounts = startAccountWork({
    ...{ db: database.db, log, file: erasures.file },
    onDue: (isDue) => {
      erasures.isDue = isDue;
    },
  });
  eventHub.onChange(accounts.wake);
  const stops = [rollouts.stop, accounts.stop, webhooks?.stop, mails?.stop];
  return () => Promise.all([stopBackground(), stopClearing(), ...stops.map((stop) => stop?.())]);
}

const LOOK_MILLISECONDS = 2000;

/** The same, but not before a restored database has been told of its erasures: until then, this process only looks for that. */
export function startWorkWhenTold(...work: Parameters<typeof startWork>): () => Promise<unknown> {
  const [, { erasures, database }] = work;
  if (!erasures.isDue) return startWork(...work);
  let stop: () => Promise<unknown> = async () => undefined;
  const timer = setInterval(async () => {
    const isDue = await mayHaveErased(database.db).catch(() => true);
    if (isDue || !erasures.isDue) return;
    erasures.isDue = false;
    clearInterval(timer);
    stop = startWork(...work);
  }, LOOK_MILLISECONDS).unref();
  return () => {
    clearInterval(timer);
    return stop();
  };
}
