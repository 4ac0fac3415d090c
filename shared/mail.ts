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
] as const;
export type MailKind = (typeof MAIL_KINDS)[number];

/** `dropped`: there is nobody to send it to, or its reason is gone. */
export const MAIL_STATES = ['waiting', 'sent', 'failed', 'dropped'] as const;
