import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { sql } from 'kysely';
import { pino } from 'pino';
import { SMTPServer, type SMTPServerSession } from 'smtp-server';
import { expect } from 'vitest';
import { claimMail } from '../../server/domain/mail/mailQueue.ts';
import { type Mailing, sendMail } from '../../server/domain/mail/sending.ts';
import { makeSmtp } from '../../server/security/smtp.ts';
import { testDb } from './world.ts';

/** A mail as a server took it. `isAcknowledged` is false if it dropped the connection instead of answering. */
export type ReceivedMail = {
  to: string[];
  from: string;
  /** By their names in lower case. */
  headers: Record<string, string>;
  subject: string;
  text: string;
  html: string;
  /** The address of its link, and the secret of that. */
  link: string | undefined;
  secret: string | undefined;
  raw: string;
  isAcknowledged: boolean;
};

/**
 * What the server does with the next mails: takes them, refuses recipients for good or for now, refuses the text for good, never
 * answers (from the greeting on, after the recipient, or after the text), or closes the connection after the text.
 */
export type Behaviour = 'take' | 'refuse' | 'defer' | 'refuse text' | 'no greeting' | 'hang' | 'stall' | 'drop';

export const MAIL_FROM = 'Deckhand <deckhand@mail.test>';
/** Where links lead in `sendDue`. */
export const BASE = 'https://boards.test';

export type MailServer = Awaited<ReturnType<typeof givenMailServer>>;

/** A mail server on this machine, which a real client talks to. */
export async function givenMailServer() {
  const received: ReceivedMail[] = [];
  let behaviour: (to: string) => Behaviour = () => 'take';
  let onReceived: () => void = () => undefined;
  let beforeAnswer: () => void = () => undefined;
  const refusal = (responseCode: number, message: string) => Object.assign(new Error(message), { responseCode });
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
    disableReverseLookup: true,
    closeTimeout: 50,
    onAuth: ({ username, password }, _, done) =>
      password === 'right' ? done(null, { user: username }) : done(refusal(535, '5.7.8 Wrong, not right')),
    onConnect: (_, done) => {
      if (behaviour('') !== 'no greeting') done();
    },
    onRcptTo: ({ address }, _, done) => {
      const doing = behaviour(address);
      if (doing === 'refuse') return done(refusal(550, '5.1.1 No such user here'));
      if (doing === 'hang') return;
      done(doing === 'defer' ? refusal(451, '4.7.1 Try again later') : null);
    },
    onData: async (stream, session, done) => {
      const raw = await text(stream).catch(() => undefined);
      // Its sender was killed meanwhile.
      if (raw === undefined) return;
      const { mailFrom, rcptTo } = session.envelope;
      const to = rcptTo.map(({ address }) => address);
      const doing = behaviour(to[0] ?? '');
      // Repeats what it refuses, as some servers do.
      if (doing === 'refuse text') return done(refusal(554, `5.7.1 Spam: ${raw.replaceAll(/\s+/g, ' ')}`));
      if (doing === 'stall') return;
      const from = mailFrom ? mailFrom.address : '';
      beforeAnswer();
      received.push({ ...parseMail(raw), to, from, raw, isAcknowledged: doing !== 'drop' });
      if (doing === 'drop') endConnection(session);
      else done();
      onReceived();
    },
  });
  server.on('error', () => undefined);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.server.address() as AddressInfo;
  const settings = { SMTP_URL: `smtp://127.0.0.1:${port}`, MAIL_FROM };

  return {
    received,
    /** For `givenService` and `startService`. */
    settings,
    behave: (next: Behaviour | ((to: string) => Behaviour)) => {
      behaviour = typeof next === 'string' ? () => next : next;
    },
    /** Called right after each answer. */
    onReceived: (listener: () => void) => {
      onReceived = listener;
    },
    /** Called right before each answer to a text that it takes or drops. */
    beforeAnswer: (listener: () => void) => {
      beforeAnswer = listener;
    },
    /** The last mail to an address; waits for it. */
    lastTo: async (email: string): Promise<ReceivedMail> => {
      const find = () => received.findLast(({ to }) => to.includes(email.toLowerCase()) || to.includes(email));
      await expect.poll(find).toBeDefined();
      return find()!;
    },
    /** Sends everything that is due at a time, as the background work of a service does, and returns what arrived. */
    sendDue: async ({ at, ...more }: { at?: number } & Partial<Mailing> = {}): Promise<ReceivedMail[]> => {
      const before = received.length;
      const log = pino({ level: 'silent' });
      // The database's own clock, unless a test gives a time: that of this process has milliseconds only.
      const now = at === undefined ? undefined : sql<Date>`${new Date(at)}::timestamptz`;
      const send = makeSmtp(settings.SMTP_URL, MAIL_FROM);
      const mailing: Mailing = { db: await testDb(), log, base: BASE, send, now, ...more };
      for (let mail = await claimMail(mailing); mail; mail = await claimMail(mailing))
        await sendMail(mailing, mail, new AbortController().signal);
      return received.slice(before);
    },
    close: () => new Promise<void>((done) => server.close(done)),
  };

  function endConnection(session: SMTPServerSession): void {
    for (const connection of server.connections) {
      if (connection.session === session) connection._socket.destroy();
    }
  }
}

/** Reads what `nodemailer` writes: headers, and the parts of a multipart/alternative. */
function parseMail(raw: string) {
  const { headers, body } = split(raw);
  const boundary = /boundary="([^"]+)"/.exec(headers['content-type'] ?? '')?.[1];
  const parts = boundary === undefined ? [{ headers, body }] : body.split(`--${boundary}`).slice(1, -1).map(split);
  const partOf = (type: string) => {
    const part = parts.find((each) => each.headers['content-type']?.startsWith(type));
    return part ? decode(part.body, part.headers['content-transfer-encoding']) : '';
  };
  const plain = partOf('text/plain');
  const link = /^http\S+#\S+$/m.exec(plain)?.[0];
  const subject = decodeWords(headers.subject ?? '');
  return { headers, subject, text: plain, html: partOf('text/html'), link, secret: link?.replace(/^.*#/, '') };
}

function split(part: string): { headers: Record<string, string>; body: string } {
  const [, head = '', body = ''] = /^\s*(.*?)\r\n\r\n(.*)$/s.exec(part) ?? [];
  const lines = head.replaceAll(/\r\n[ \t]+/g, ' ').split('\r\n');
  const headers = lines.map((line) => [line.replace(/:.*$/s, '').toLowerCase(), line.replace(/^[^:]*: ?/, '')]);
  return { headers: Object.fromEntries(headers), body };
}

function decode(body: string, encoding = '7bit'): string {
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString();
  return (encoding === 'quoted-printable' ? decodeQuoted(body.replaceAll('=\r\n', '')) : body).replaceAll('\r\n', '\n');
}

const decodeQuoted = (quoted: string) =>
  Buffer.from(
    quoted.replaceAll(/=([0-9A-F]{2})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 16))),
    'latin1',
  ).toString();

const decodeWords = (header: string) =>
  header
    .replaceAll(/\?=\s+=\?/g, '?==?')
    .replaceAll(/=\?UTF-8\?([QB])\?(.*?)\?=/gi, (_, kind, word) =>
      kind.toUpperCase() === 'B' ? decode(word, 'base64') : decodeQuoted(word.replaceAll('_', ' ')),
    );
