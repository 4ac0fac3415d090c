import { once } from 'node:events';
import { Readable } from 'node:stream';

/** A mail as people read it. */
export type Message = { id: string; to: string; subject: string; text: string; html: string };

/** The signal ends an attempt. `recipientMilliseconds`: how long the server may think about the recipient. Default: as long as it likes. */
type AttemptLimits = { signal: AbortSignal; recipientMilliseconds?: number | undefined };

/** Sends a message, or throws a `MailFailure`. */
export type SendMessage = (message: Message, limits: AttemptLimits) => Promise<void>;

/** Why a message was not sent, in words for operators: without the message, its link, or the password of the mail server. */
export class MailFailure extends Error {
  /** Another attempt would be refused, too. */
  readonly isPermanent: boolean;
  /** The server may have taken the message nevertheless. */
  readonly isUncertain: boolean;
  /** The next message would fail in the same way. */
  readonly isOfServer: boolean;

  constructor(text: string, { isPermanent = false, isUncertain = false, isOfServer = false } = {}) {
    super(text);
    this.isPermanent = isPermanent;
    this.isUncertain = isUncertain;
    this.isOfServer = isOfServer;
  }
}

/**
 * Once a server has greeted, only the signal ends an attempt: one that checks a text for long has taken it, and would get it again with
 * each attempt.
 */
export const SMTP_LIMITS = { connectionTimeout: 8000, greetingTimeout: 8000, dnsTimeout: 5000, socketTimeout: 30_000 };

/** Sends by the server of an SMTP_URL, with a connection for each message. */
export function makeSmtp(url: string, from: string, limits: Partial<typeof SMTP_LIMITS> = {}): SendMessage {
  return async ({ id, to, ...contents }, { signal: ended, recipientMilliseconds }) => {
    // Loaded with the first mail.
    const [{ default: Connection }, { default: Composer }, { parseConnectionUrl }, { default: parseAddress }] =
      await Promise.all([
        import('nodemailer/lib/smtp-connection'),
        import('nodemailer/lib/mail-composer'),
        import('nodemailer/lib/shared'),
        import('nodemailer/lib/addressparser'),
      ]);
    const [sender = { name: '', address: from }] = parseAddress(from, { flatten: true });
    const composed = new Composer({
      ...contents,
      from: sender,
      // An object is one address, whatever characters it has.
      to: { name: '', address: to },
      messageId: `<${id}@${sender.address.replace(/^.*@/, '')}>`,
      headers: { 'Auto-Submitted': 'auto-generated' },
      disableFileAccess: true,
      disableUrlAccess: true,
    }).compile();
    const { auth, ...options } = parseConnectionUrl(url) as Connect;
    // A log of the connection would have the links.
    const connection = new Connection({
      ...options,
      ...SMTP_LIMITS,
      ...limits,
      logger: false,
      debug: false,
      transactionLog: false,
    });
    let stage: Stage = 'server';
    const late = new AbortController();
    const signal = AbortSignal.any([ended, late.signal]);
    let timer: NodeJS.Timeout | undefined;
    try {
      await Promise.race([
        // Rejects with an error of the connection, too, and when the attempt is ended.
        once(connection, 'end', { signal }).then(() => Promise.reject({ code: 'ECONNECTION' })),
        (async () => {
          await answered((done) => connection.connect(done));
          if (auth && connection.allowsAuth) await answered((done) => connection.login(auth, done));
          const message = await composed.build();
          stage = 'recipient';
          if (recipientMilliseconds) timer = setTimeout(() => late.abort(), recipientMilliseconds);
          // Read when the server has taken the recipient.
          const text = Readable.from(
            (function* () {
              clearTimeout(timer);
              stage = 'text';
              yield message;
            })(),
          );
          await answered((done) => connection.send({ from: sender.address, to: [to] }, text, done));
        })(),
      ]);
    } catch (error) {
      throw failureOf(signal.aborted ? { code: 'ETIMEDOUT' } : (error as SmtpError), stage);
    } finally {
      clearTimeout(timer);
      connection.close();
    }
  };
}

/** What an attempt waits for: the connection and the sign-in, the recipient, or the text. */
type Stage = 'server' | 'recipient' | 'text';

type Connect = { auth?: { user: string; pass: string } } & Record<string, unknown>;

const answered = (ask: (done: (error?: Error | null) => void) => void): Promise<void> =>
  new Promise((resolve, reject) => {
    ask((error) => (error ? reject(error) : resolve()));
  });

type SmtpError = {
  code?: string;
  command?: string;
  response?: string;
  permanent?: boolean;
  originalCode?: string;
};

/**
 * Only refusals of a recipient or a message are permanent: a wrong password or sender is corrected by an operator. The words of
 * the server are kept only where it has not seen the message, since it could repeat the link.
 */
function failureOf(error: SmtpError, stage: Stage): MailFailure {
  const { code = '', command = '', response, permanent: isPermanent = false } = error;
  const codes = response?.match(/^\d{3}(?:[ -]\d\.\d{1,3}\.\d{1,3})?/)?.[0] ?? '';
  const words = (response ?? '').replaceAll(/[^\P{C} ]+|\s+/gu, ' ').slice(0, 200);
  if (command === 'RCPT TO') return new MailFailure(`The mail server refused the recipient: ${words}`, { isPermanent });
  if (command === 'DATA') return new MailFailure(`The mail server refused the message (${codes}).`, { isPermanent });
  if (code === 'EENVELOPE' && command === 'API')
    return new MailFailure('The address of the recipient is not one that mails can be sent to.', { isPermanent: true });
  const isUncertain = stage === 'text' && !response;
  if (code === 'ETIMEDOUT' && stage === 'recipient')
    return new MailFailure('The mail server did not answer in time whether it takes the recipient.');
  if (code === 'ETIMEDOUT' && stage === 'text')
    return new MailFailure('The mail server did not answer in time whether it takes the text.', { isUncertain });
  const ofServer = { isOfServer: true, isUncertain };
  if (command === 'MAIL FROM')
    return new MailFailure(`The mail server refused the sender, see MAIL_FROM: ${words}`, ofServer);
  if (code === 'EAUTH')
    return new MailFailure(`The mail server refused the user or password of SMTP_URL (${codes}).`, ofServer);
  if (response) return new MailFailure(`The mail server refused the connection: ${words}`, ofServer);
  if (code === 'ETIMEDOUT') return new MailFailure('The mail server did not answer in time.', ofServer);
  if (code === 'ECONNECTION') return new MailFailure('The mail server closed the connection.', ofServer);
  return new MailFailure(`The mail server can't be reached (${error.originalCode ?? code}).`, ofServer);
}
