import type { Announce } from '../../runtime/log.ts';
import { makeLooks, type NextPause } from '../../runtime/looks.ts';
import { MailFailure, type SendMessage } from '../../security/smtp.ts';
import { isMailCalledFor } from './mail.ts';
import { type Mailing, sendNext } from './sending.ts';

/** Without a call, each process looks so often whether a mail is due: one to retry, or one of a node that was killed. */
const LOOK_MILLISECONDS = 15_000;
/** For a few seconds after a call: a reset is due a moment later. */
const SOON_MILLISECONDS = 300;
const AFTER_FAILURE_MILLISECONDS = 5000;
const SHORTEST_PAUSE_MILLISECONDS = 50;
/** How long a stopping node waits for an attempt, before it ends it. */
const LONGEST_STOP_MILLISECONDS = 700;

/** Sends mails that are due, one at a time in each process: a kill can double at most one. */
export function startMails(mailing: Mailing) {
  const stopping = new AbortController();
  let isStopped = false;
  const looks = makeLooks(look);
  looks.begin(0);
  return {
    /** Something has changed. */
    wake: () => {
      if (isMailCalledFor()) looks.wake();
    },
    stop: async () => {
      isStopped = true;
      const timer = setTimeout(() => stopping.abort(), LONGEST_STOP_MILLISECONDS);
      await looks.stop();
      clearTimeout(timer);
    },
  };

  async function look(): Promise<NextPause> {
    try {
      while (!isStopped) {
        const found = await sendNext(mailing, stopping.signal);
        if (found === 'nothing due')
          return {
            pause: isMailCalledFor() ? SOON_MILLISECONDS : LOOK_MILLISECONDS,
            shortest: SHORTEST_PAUSE_MILLISECONDS,
          };
        // Others that wait would only wait longer for their next attempt.
        if (found === 'failing') return { pause: AFTER_FAILURE_MILLISECONDS, shortest: SHORTEST_PAUSE_MILLISECONDS };
      }
    } catch (error) {
      mailing.log.warn(error, 'Mails wait for the next look.');
      return { pause: AFTER_FAILURE_MILLISECONDS, shortest: 0 };
    }
    return { pause: null, shortest: 0 };
  }
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
