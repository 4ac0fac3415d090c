import { z } from 'zod';
import { count, id, optionalChoice, storedChoice, timestamp } from './fields.ts';
import { Page, pageOf } from './paging.ts';
import { requestExamples } from './requestExample.ts';

/** What mails are about. Those with a link have a secret, which is made when the mail is sent. */
export const MAIL_KINDS = [
  'invitation',
  'password_reset',
  'address_confirmation',
  'password_changed',
  'address_changed',
  'second_factor_enabled',
  'second_factor_dropped',
  'key_created',
  'identity_linked',
] as const;
export type MailKind = (typeof MAIL_KINDS)[number];
/** Notices have no link: they tell what happened. */
export type NoticeKind = Exclude<MailKind, 'invitation' | 'password_reset' | 'address_confirmation'>;

/** `dropped`: there is nobody to send it to, or its reason is gone. */
export const MAIL_STATES = ['waiting', 'sent', 'failed', 'dropped'] as const;

export const Mail = z
  .object({
    id,
    kind: storedChoice(MAIL_KINDS).meta({ description: 'What it is about.', example: 'invitation' }),
    email: z.string().meta({ description: 'The recipient.', example: 'new@example.com' }),
    state: storedChoice(MAIL_STATES).meta({
      description:
        '`waiting` for its next attempt, `sent` to the mail server, `failed` for good, or `dropped` because nobody has the address, or its reason is gone.',
      example: 'sent',
    }),
    failures: count.meta({ description: 'Failed attempts.', example: 0 }),
    error: z.string().nullable().meta({ description: 'Why the last attempt failed.', example: null }),
    created_at: timestamp.meta({ description: 'When it was queued.' }),
    sent_at: timestamp.nullable().meta({ description: 'When the mail server took it.' }),
    next_attempt_at: timestamp.meta({ description: 'While it waits: when it is tried next.' }),
  })
  .meta({ id: 'Mail', description: 'A mail, without its text and its link: only the recipient gets them.' });

export const MailList = Page.extend({
  state: optionalChoice(MAIL_STATES).meta({ description: 'Only mails in this state.', example: 'failed' }),
});
MailList.register(requestExamples, { example: { state: 'failed', limit: 20 } });
export type MailList = z.output<typeof MailList>;
export const MailPage = pageOf('mails', Mail);

export const MailChoice = z.object({ id });
export type MailChoice = z.output<typeof MailChoice>;
