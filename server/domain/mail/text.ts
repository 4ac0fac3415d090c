import type { MailKind, NoticeKind } from '../../../shared/mail.ts';
import { escapeHtml } from '../../security/html.ts';
import type { Facts } from './facts.ts';

const MINUTES = 60;
const DAYS = 24 * 60 * MINUTES;

/** The page that a link opens, and for how long after the sending. */
const LINKS: Partial<Record<MailKind, { page: string; seconds: number }>> = {
  invitation: { page: 'invitation', seconds: 7 * DAYS },
  password_reset: { page: 'reset-password', seconds: 30 * MINUTES },
  address_confirmation: { page: 'confirm-address', seconds: DAYS },
};

/** Undefined if this mail has no link. */
export const linkOf = (facts: Facts) =>
  facts.kind === 'password_reset' && !facts.hasPassword ? undefined : LINKS[facts.kind];

/** The address of a link. Its secret is in the fragment, which browsers send to nobody. */
export const addressOf = (base: string, page: string, secret: string) => `${base}/${page}#${secret}`;

/** The subject, and the same paragraphs as plain text and as HTML without pictures and styles. */
export function writeMail(facts: Facts, base: string, link = ''): { subject: string; text: string; html: string } {
  const { subject, paragraphs } = wordsOf(facts, base, link);
  const all = [...paragraphs, `Deckhand, ${base}`];
  const toHtml = (paragraph: string) =>
    `<p>${paragraph === link ? `<a href="${escapeHtml(link)}">${escapeHtml(link)}</a>` : escapeHtml(paragraph)}</p>`;
  const html = `<!doctype html>\n<html lang="en">\n<body>\n${all.map(toHtml).join('\n')}\n</body>\n</html>\n`;
  return { subject, text: `${all.join('\n\n')}\n`, html };
}

type Words = { subject: string; paragraphs: string[] };

function wordsOf(facts: Facts, base: string, link: string): Words {
  switch (facts.kind) {
    case 'invitation': {
      const project = quoted(facts.project);
      const inviter = facts.inviter === null ? 'You are' : `${quoted(facts.inviter)} has`;
      const invited = facts.inviter === null ? 'invited' : 'invited you';
      return {
        subject: `Invitation to the project ${project}`,
        paragraphs: [
          `${inviter} ${invited} to the project ${project}, with the role ${facts.role}.`,
          'To accept, open this page. It works for 7 days:',
          link,
          "If you don't know the project, ignore this mail. Nothing happens without you.",
        ],
      };
    }
    case 'password_reset':
      return facts.hasPassword
        ? {
            subject: 'Set a new password',
            paragraphs: [
              `Somebody, probably you, asked for a new password for your account at ${base}.`,
              'To set it, open this page. It works once, for 30 minutes:',
              link,
              "If it was not you, ignore this mail. Your password stays as it is. Don't pass the link on to anybody.",
            ],
          }
        : {
            subject: 'Your account has no password',
            paragraphs: [
              `Somebody, probably you, asked for a new password for your account at ${base}.`,
              'Your account has no password: sign in with the single sign-on of your organization.',
              'If it was not you, ignore this mail.',
            ],
          };
    case 'address_confirmation':
      return {
        subject: 'Confirm your e-mail address',
        paragraphs: [
          `Somebody, probably you, entered this address for an account at ${base}.`,
          'To confirm that it is yours, open this page. It works once, for 24 hours:',
          link,
          'If it was not you, ignore this mail. The address is not used then.',
        ],
      };
    default:
      return noticeOf(facts, base);
  }
}

type Notice = { subject: string; happened: string; isDone: string };

const NOTICES: Record<NoticeKind, Notice> = {
  password_changed: {
    subject: 'Your password was changed',
    happened: 'The password of your account',
    isDone: 'was changed',
  },
  address_changed: {
    subject: 'Your e-mail address was changed',
    happened: 'The e-mail address of your account',
    isDone: 'was changed. Mails no longer come to this address',
  },
  second_factor_enabled: {
    subject: 'A second factor was enabled',
    happened: 'A second factor of your account',
    isDone: 'was enabled',
  },
  second_factor_dropped: {
    subject: 'The second factor was disabled',
    happened: 'The second factor of your account',
    isDone: 'was disabled: the password alone signs in',
  },
  key_created: { subject: 'A new API key', happened: 'An API key of your account', isDone: 'was created' },
  identity_linked: {
    subject: 'A new way to sign in',
    happened: 'An account at an identity provider',
    isDone: 'was linked to yours: whoever has it can sign in',
  },
};

function noticeOf({ kind, name, isBySuperadmin, when }: Extract<Facts, { kind: NoticeKind }>, base: string): Words {
  const { subject, happened, isDone } = NOTICES[kind];
  const time = `${when.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  const key = name === '' ? '' : ` (${quoted(name)})`;
  const by = isBySuperadmin ? ' A superadmin of the service did it.' : '';
  return {
    subject,
    paragraphs: [
      `${happened}${key} at ${base} ${isDone}.${by} Time: ${time}.`,
      "If you know about it, there is nothing to do. If it was not you, sign in, change your password, sign out everywhere and revoke keys and unlink identities that you don't know. If you can't sign in, ask for a new password, and tell a superadmin of the service.",
    ],
  };
}

const LONGEST_NAME = 80;

/** Characters by which mail programs find addresses to make links of, and others that look the same. */
const LINKED: [RegExp, string][] = [
  [/:(?=\/\/)/g, '\ua789'],
  [/\.(?=[^\s.])/g, '\u2024'],
  [/@/g, '\uff20'],
];

/** Names are text of other users: on one line, without invisible characters, short, and never a link. */
function quoted(name: string): string {
  const plain = LINKED.reduce((text, [linked, other]) => text.replaceAll(linked, other), name);
  const line = plain.replaceAll(/[\p{C}\p{Z}]+/gu, ' ').trim();
  const short = [...line].slice(0, LONGEST_NAME).join('');
  return `"${short === line ? line : `${short}…`}"`;
}
