import { defineEntity, p } from '@mikro-orm/core';
import { MAIL_KINDS, MAIL_STATES } from '../../../shared/mail.ts';
import { identity, refersTo, timestamp } from './columns.ts';
import { Invitation } from './invitation.ts';
import { User } from './user.ts';

/** A mail that a process sends in the background. Its text and its link are made when it is sent. */
export const Mail = defineEntity({
  name: 'Mail',
  tableName: 'mails',
  properties: {
    id: identity(),
    kind: p.enum([...MAIL_KINDS]),
    /** The recipient. */
    email: p.text(),
    /** Whose account it is about. Null for an invitation, and for a reset until it is sent: a request does not look the user up. */
    user_id: () => refersTo(User, 'user_id').nullable().deleteRule('cascade'),
    invitation_id: () => refersTo(Invitation, 'invitation_id').nullable().deleteRule('cascade'),
    /** Names and numbers for its text, no secrets. */
    data: p.json<Record<string, unknown>>().defaultRaw(`'{}'`),
    state: p.enum([...MAIL_STATES]).default('waiting'),
    /** Failed attempts. */
    failures: p.integer().default(0),
    error: p.text().nullable(),
    next_attempt_at: timestamp().defaultRaw('now()'),
    /** A process is sending it; if that one is killed, another sends it after this time. */
    leased_until: timestamp().nullable(),
    sent_at: timestamp().nullable(),
    /** When its link was used: it works once. */
    used_at: timestamp().nullable(),
    created_at: timestamp().defaultRaw('now()'),
  },
  indexes: [
    { name: 'mails_due_index', properties: ['kind', 'next_attempt_at', 'id'], where: `state = 'waiting'` },
    { name: 'mails_email_index', expression: 'create index "mails_email_index" on "mails" (lower("email"), "id")' },
    { properties: ['user_id'], where: 'user_id is not null' },
    { properties: ['invitation_id'], where: 'invitation_id is not null' },
    { properties: ['created_at'] },
  ],
});

/** A link in a mail. A mail that had to be sent twice has two, which both work until one is used. */
export const MailLink = defineEntity({
  name: 'MailLink',
  tableName: 'mail_links',
  properties: {
    secret_hash: p.string().length(64).primary(),
    mail_id: () => refersTo(Mail, 'mail_id').deleteRule('cascade'),
    expires_at: timestamp(),
  },
  indexes: [{ properties: ['mail_id'] }],
});
