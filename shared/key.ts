import { z } from 'zod';
import { recentProof } from './account.ts';
import { FUTURE_TIMESTAMP, id, optionalTimestamp, TIMESTAMP_FORMAT, text, timestamp } from './fields.ts';
import { Page, pageOf } from './paging.ts';
import { requestExamples } from './requestExample.ts';
import { User } from './user.ts';

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
    expires_at: timestamp.nullable().meta({
      description: 'When it expires; null for never. If the service limits the age of secrets, a rotation moves it.',
      example: FUTURE_TIMESTAMP,
    }),
    last_used_at: timestamp.nullable().meta({ description: 'When it was last used, to the minute; null for never.' }),
    previous_expires_at: timestamp
      .nullable()
      .meta({ description: 'Until when the secret before the last rotation is valid, too.' }),
    rotated_at: timestamp
      .nullable()
      .meta({ description: 'When it got its current secret; null if it was never rotated.' }),
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
  z
    .object({
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
    })
    .register(requestExamples, {
      example: { name: 'Nightly import', scopes: ['boards:read', 'cards:write'], project_id: 1 },
    });
export type KeyCreate = z.output<ReturnType<typeof KeyCreate>>;

export const KeyList = Page.extend({ user_id }).register(requestExamples, { example: { limit: 20 } });
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
KeyRotate.register(requestExamples, { example: { id: 1, previous_valid_hours: 24 } });
export type KeyRotate = z.output<typeof KeyRotate>;

export const OwnKey = z.object({
  user: User.pick({ id: true, name: true, kind: true }).meta({ description: 'The user that the key acts as.' }),
  key: ApiKey,
  secret_expires_at: timestamp.nullable().meta({
    description:
      'Until when the secret of this call is valid; null for ever. After a rotation, the previous one ends first.',
    example: FUTURE_TIMESTAMP,
  }),
});

/** At least an hour, so that a lost answer does not lock the program out at once. */
const LEAST_OWN_OVERLAP_HOURS = 1;

export const KeyRotateSelf = (scopes: string[]) =>
  z.object({
    previous_valid_hours: z.int().min(LEAST_OWN_OVERLAP_HOURS).max(LONGEST_OVERLAP_HOURS).default(24).meta({
      description: 'How long the previous secret stays valid.',
      example: 24,
    }),
    scopes: z.array(z.enum(scopes)).min(1).max(scopes.length).nullish().meta({
      description: 'Fewer scopes than it has, for both secrets and for good; all of them if not sent.',
      example: null,
    }),
  });
export type KeyRotateSelf = z.output<ReturnType<typeof KeyRotateSelf>>;
