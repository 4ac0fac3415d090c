import { z } from 'zod';
import { recentProof } from './account.ts';
import { FUTURE_TIMESTAMP, id, optionalTimestamp, TIMESTAMP_FORMAT, text, timestamp } from './fields.ts';
import { Page, pageOf } from './paging.ts';

/** Lets secret scanners recognize API keys. */
export const KEY_PREFIX = 'dkh_';

const SCOPES_DESCRIPTION =
  'What it may call. A `write` scope includes reading what it writes: an update returns the whole row.';

export const ApiKey = z
  .object({
    id,
    user_id: id.meta({ description: 'The user that it acts as.' }),
    project_id: id.nullable().meta({ description: 'The only project that it acts in; null for all of the user.' }),
    name: z.string().meta({ description: 'Its name.', example: 'Nightly import' }),
    scopes: z.array(z.string()).meta({ description: SCOPES_DESCRIPTION, example: ['cards:read', 'cards:write'] }),
    expires_at: timestamp
      .nullable()
      .meta({ description: 'When it expires; null for never.', example: FUTURE_TIMESTAMP }),
    last_used_at: timestamp.nullable().meta({ description: 'When it was last used, to the minute; null for never.' }),
    previous_expires_at: timestamp
      .nullable()
      .meta({ description: 'Until when the secret before the last rotation is valid, too.' }),
    revoked_at: timestamp.nullable().meta({ description: 'When it was revoked; null if it was not.' }),
    created_at: timestamp.meta({ description: 'When it was created.' }),
    updated_at: timestamp.meta({ description: 'When it was last rotated or revoked.' }),
  })
  .meta({ id: 'ApiKey', description: 'An API key, without its secret.' });

export const NewApiKey = z.object({
  key: ApiKey,
  secret: z.string().meta({
    description: 'The secret, shown only this once: calls with the key send it as their Bearer token.',
    example: `${KEY_PREFIX}…`,
  }),
});

const user_id = id
  .nullish()
  .meta({ description: 'A service, for superadmins; the caller if not sent.', example: null });

/** The scopes come from the procedures. */
export const KeyCreate = (scopes: string[]) =>
  z.object({
    name: text(255).meta({ description: 'Its name.', example: 'Nightly import' }),
    scopes: z
      .array(z.enum(scopes))
      .min(1)
      .max(scopes.length)
      .meta({
        description: `${SCOPES_DESCRIPTION} Each operation names the scopes that it needs.`,
        example: [scopes[0]],
      }),
    project_id: id
      .nullish()
      .meta({ description: 'The only project that it may act in; all of the user if not sent.', example: null }),
    expires_at: optionalTimestamp.meta({
      description: `When it expires: ${TIMESTAMP_FORMAT}; never if not sent.`,
      example: null,
    }),
    user_id,
    ...recentProof,
  });
export type KeyCreate = z.output<ReturnType<typeof KeyCreate>>;

export const KeyList = Page.extend({ user_id });
export type KeyList = z.output<typeof KeyList>;
export const KeyPage = pageOf('keys', ApiKey);

export const KeyChoice = z.object({ id: id.meta({ description: 'The key.' }) });
export type KeyChoice = z.output<typeof KeyChoice>;

const LONGEST_OVERLAP_HOURS = 7 * 24;

export const KeyRotate = KeyChoice.extend({
  previous_valid_hours: z
    .int()
    .min(0)
    .max(LONGEST_OVERLAP_HOURS)
    .meta({ description: 'How long the previous secret stays valid; 0 for not at all.', example: 24 }),
  ...recentProof,
});
export type KeyRotate = z.output<typeof KeyRotate>;
