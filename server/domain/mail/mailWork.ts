import type { Announce } from '../../runtime/log.ts';
import { makeLooks, type NextPause } from '../../runtime/looks.ts';
import { MailFailure, type SendMessage } from '../../security/smtp.ts';
import { isMailCalledFor } from './mail.ts';
import { type Busy, type ClaimedMail, claimMail, domainOf, URGENCY } from './mailQueue.ts';
import { type Mailing, sendMail } from './sending.ts';

/** Without a call, each process looks so often whether a mail is due: one to retry, or one of a node that was killed. */
const LOOK_MILLISECONDS = 15_000;
/** For a few seconds after a call: a reset is due a moment later. */
const SOON_MILLISECONDS = 300;
const AFTER_FAILURE_MILLISECONDS = 5000;
const SHORTEST_PAUSE_MILLISECONDS = 50;
/** How long a stopping node waits for an attempt, before it ends it. */
const LONGEST_STOP_MILLISECONDS = 700;

/** Mails that a process sends at once: a kill can double at most these. */
export const CONNECTIONS = 4;
/** At most so many of them are invitations or repeated attempts, which may take long. */
const FOR_THE_REST = 2;
/** At most so many are invitations, repeated attempts or notices: one connection is left for whoever waits for a link. */
const FOR_ALL_BUT_URGENT = 3;
/** At most so many go to addresses of one domain, whose mail server may hang. */
const FOR_ONE_DOMAIN = 2;

/** Sends mails that are due, some at once: of one project's invitations, one. */
export function startMails(mailing: Mailing) {
  const stopping = new AbortController();
  let isStopped = false;
  const underWay = new Map<ClaimedMail, Promise<void>>();
  /** The mail server is not there, or refuses everything: one mail tries whether that has changed. */
  let isFailing = false;
  let restsUntil = 0;
  const looks = makeLooks(look);
  looks.begin(0);
  return {
    /** Something has changed. */
    wake: () => {
      if (!isMailCalledFor()) return;
      restsUntil = 0;
      looks.wake();
    },
    stop: async () => {
      isStopped = true;
      const timer = setTimeout(() => stopping.abort(), LONGEST_STOP_MILLISECONDS);
      await looks.stop();
      await Promise.all(underWay.values());
      clearTimeout(timer);
    },
  };

  async function look(): Promise<NextPause> {
    const shortest = SHORTEST_PAUSE_MILLISECONDS;
    try {
      while (!isStopped && restsUntil <= performance.now() && underWay.size < (isFailing ? 1 : CONNECTIONS)) {
        const mail = await claimMail(mailing, busyWith([...underWay.keys()]));
        if (!mail) break;
        underWay.set(mail, attempt(mail));
      }
    } catch (error) {
      mailing.log.warn(error, 'Mails wait for the next look.');
      return { pause: AFTER_FAILURE_MILLISECONDS, shortest: 0 };
    }
    if (isStopped) return { pause: null, shortest };
    const rest = restsUntil - performance.now();
    return { pause: rest > 0 ? rest : isMailCalledFor() ? SOON_MILLISECONDS : LOOK_MILLISECONDS, shortest };
  }

  async function attempt(mail: ClaimedMail): Promise<void> {
    try {
      isFailing = (await sendMail(mailing, mail, stopping.signal)) === 'failing';
      // Others that wait would only wait longer for their next attempt.
      if (isFailing) restsUntil = performance.now() + AFTER_FAILURE_MILLISECONDS;
    } catch (error) {
      mailing.log.warn(error, `Mail ${mail.id} waits until its lease ends.`);
    }
    underWay.delete(mail);
    looks.wake();
  }
}

function busyWith(mails: ClaimedMail[]): Busy {
  const isOfRest = ({ kind, failures }: ClaimedMail) => kind === 'invitation' || failures > 0;
  const domains = mails.map(({ email }) => domainOf(email));
  return {
    projects: mails.flatMap(({ project_id }) => project_id ?? []),
    domains: domains.filter((domain) => domains.filter((each) => each === domain).length >= FOR_ONE_DOMAIN),
    emails: mails.map(({ email }) => email.toLowerCase()),
    hasRoomForNotices:
      mails.filter(({ kind, failures }) => failures > 0 || !URGENCY.includes(kind)).length < FOR_ALL_BUT_URGENT,
    hasRoomForRest: mails.filter(isOfRest).length < FOR_THE_REST,
  };
}

/** On the demo: the terminal shows mails. A log is kept and read by others, so it gets none. */
export const showOn =
  (announce: Announce): SendMessage =>
  async ({ to, subject, text }) => {
    if (!announce.isOnTerminal)
      throw new MailFailure('Without SMTP_URL, mails are only shown on a terminal: this service has none.', {
        isPermanent: true,
      });
    const lines = text.trimEnd().replaceAll(/^(?=.)/gm, '  ');
    announce({ text: `\nA mail to ${to}: ${subject}\n\n${lines}\n`, message: '' });
  };
