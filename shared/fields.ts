import './wording.ts';
import { z } from 'zod';

/** Fields that several models share. */

export const id = z.int32().min(1).meta({ description: 'Its id, from 1.', example: 1 });

export const count = z.int().min(0);

export const position = z
  .int32()
  .meta({ description: 'Its position, lowest first; ties are ordered by id.', example: 1 });

const MOVES_OTHERS = 'rows of the same place whose position is taken move behind it';
export const newPosition = position
  .nullish()
  .meta({ description: `Its position, lowest first, or last if not sent; ${MOVES_OTHERS}.` });
export const changedPosition = position.nullish().meta({ description: `Its position, lowest first; ${MOVES_OTHERS}.` });

export const flag = z.boolean().nullish();

export const IS_ACTIVE =
  'Whether it is active. An inactive one is still listed and works as before; an inactive template is not copied to further projects';

const LONGEST_TEXT = 65_536;

/** Required text: trimmed, not empty. */
export const text = (maxLength = LONGEST_TEXT) => limited(z.string().trim().min(1), maxLength);

/** The version of the row in an answer: the header `ETag` over REST. */
export const rowVersion = z.string().meta({
  description: 'The version of the row, for `if_version`: it changes with every change.',
  example: '812-1794009600000',
});

/** The version that a change requires of its row: the header `If-Match` over REST. */
export const ifVersion = text()
  .refine((version) => !version.includes('"'), {
    error: 'must not have quotes: send what is between those of the `ETag`',
  })
  .optional()
  .meta({
    description:
      'Fails with `row_changed`, and changes nothing, unless the row has this `version`: an `ETag` without its quotes.',
  });

/** Marks a field that takes an empty text as null, for the document. */
export const EMPTY_IS_NULL = 'x-empty-is-null';

/** Optional text; an empty one becomes null. */
export const optionalText = (maxLength = LONGEST_TEXT) =>
  limited(z.string().trim(), maxLength)
    .transform(emptyAsNull)
    .nullish()
    .meta({ [EMPTY_IS_NULL]: true });

export const PLAIN_TEXT = 'plain text: escape it when you show it';
export const PLAIN_TITLE = 'Plain-text title. Escape it before display.';
export const HTML = 'may contain HTML, which is sanitised';

/** An optional choice; an empty text becomes null. */
export const optionalChoice = <Choice extends string>(choices: readonly Choice[]) => {
  const choice = z
    .string({ error: `must be one of ${choices.join(', ')}` })
    .trim()
    .meta({ enum: [...choices], example: choices[0] })
    .transform(emptyAsNull)
    .pipe(z.enum(choices).nullable());
  // The type allows only the choices; at run time any text reaches the check.
  return (choice as unknown as z.ZodType<Choice | null, Choice | ''>).nullish().meta({ [EMPTY_IS_NULL]: true });
};

/**
 * A stored value in a response: the known choices are documented, and others are passed on as they are. A node of a later version
 * may have written one, and a closed choice would fail on every row with it.
 */
export const storedChoice = <Choice extends string>(choices: readonly Choice[]) =>
  z.union([z.enum(choices), z.string()]) as unknown as z.ZodType<KnownOr<Choice>>;

/** Known values are still suggested while typing. */
export type KnownOr<Choice extends string> = Choice | (string & {});

const SHORTEST_PASSWORD = 8;
const LONGEST_PASSWORD = 1000;

/** Text that is not trimmed: tokens, codes, cursors. */
export const untrimmed = (maxLength: number) => atMost(z.string(), maxLength);

/** A password or code to verify. */
export const secret = untrimmed(LONGEST_PASSWORD).min(1).meta({ format: 'password' });

export const newPassword = secret
  .refine((value) => countCodePoints(value) >= SHORTEST_PASSWORD, {
    error: `must be at least ${SHORTEST_PASSWORD} characters`,
  })
  .meta({ minLength: SHORTEST_PASSWORD, example: 'a long sentence' });

const LONGEST_EMAIL = 320;

/** Part of a host name, in any script. */
const LABEL = String.raw`[\p{L}\p{N}](?:[\p{L}\p{M}\p{N}-]{0,61}[\p{L}\p{M}\p{N}])?`;
/** No leading, trailing or double dots, no blanks, and no characters that need quotes. */
const MAILBOX = String.raw`(?!\.)(?!.*\.[.@])[^\p{C}\p{Z}"(),:;<>@\[\\\]]+`;
/** Invisible characters would make two addresses look the same; U+2800 is a blank Braille pattern. */
const INVISIBLE = String.raw`[\p{DI}\u2800]`;
const EMAIL = new RegExp(`^(?!.*${INVISIBLE})${MAILBOX}@${LABEL}(?:\\.${LABEL})*$`, 'u');

/** An e-mail address in any script, normalized to NFC; case is ignored. */
export const email = atMost(z.string().trim().min(1), LONGEST_EMAIL)
  .meta({ format: 'email', description: 'The e-mail address of the account.', example: 'member@demo.test' })
  // The database compares İ and i as equal, mail servers don't: mails must go where the database finds them.
  .transform((address) => address.normalize('NFC').replaceAll('\u0130', 'i'))
  .pipe(z.string().regex(EMAIL, { error: 'must be an e-mail address' }));

/** The maximum number of rows with the same parent, so that one reorder can list them all. */
export const MOST_SIBLINGS = 1000;

const Placements = z
  .array(z.object({ id, position }))
  .max(MOST_SIBLINGS)
  .check(({ value, issues }) => {
    const seen = new Set<number>();
    for (const [index, { id }] of value.entries()) {
      if (seen.has(id)) issues.push({ code: 'custom', input: id, path: [index, 'id'], message: 'is a duplicate' });
      seen.add(id);
    }
  });

/** Rows and their new positions. Checks the length first, since a long list of invalid elements is slow to check. */
export const placements = z
  .array(z.unknown())
  .max(MOST_SIBLINGS)
  .meta(documentedAs(Placements))
  .pipe(Placements) as unknown as typeof Placements;

export type Placement = z.output<typeof Placements>[number];

function documentedAs(schema: z.ZodType): Record<string, unknown> {
  const { $schema, ...documented } = z.toJSONSchema(schema, { io: 'input' });
  return documented;
}

/** A timestamp in a response: a `Date` over RPC, ISO 8601 in UTC over REST. Accepts PostgreSQL's text format. */
export const timestamp = z.codec(
  z.union([z.date(), z.string()]),
  z.date().meta({ format: 'date-time', example: '2026-01-31T09:30:00.000Z' }),
  { decode: (value) => (typeof value === 'string' ? fromDatabase(value) : value), encode: (value) => value },
);

/** Converts PostgreSQL's text to ISO 8601 before parsing: otherwise V8 reads the year 0001 as 2001. */
function fromDatabase(text: string): Date {
  return new Date(text.replace(' ', 'T').replace(/([+-]\d\d)$/, '$1:00'));
}

/** The times of a row that can be deleted and restored. */
export const lifetime = {
  created_at: timestamp.meta({ description: 'When it was created.' }),
  updated_at: timestamp.meta({ description: 'When it was last changed.' }),
  deleted_at: timestamp.nullable().meta({ description: 'When it was deleted.', example: null }),
};

/** An example that stays in the future. */
export const FUTURE_TIMESTAMP = '2099-01-31T09:30:00.000Z';

const LONGEST_TIMESTAMP = 64;

/** In descriptions. RPC also takes a `Date`. */
export const TIMESTAMP_FORMAT = 'a date-time with an offset, or a date (midnight UTC)';

const NOT_A_TIMESTAMP = { error: 'must be a date, or a date-time with an offset, such as 2026-01-31T09:30:00Z' };
const timestampSchema = (format: string) => ({ type: 'string', format, maxLength: LONGEST_TIMESTAMP });

const sentTimestamp = z.union(
  [
    z
      .string()
      .trim()
      .refine((value) => value === '' || parseTimestamp(value) !== undefined, NOT_A_TIMESTAMP),
    z.date().refine(isInRange, NOT_A_TIMESTAMP),
  ],
  { error: ({ input }) => (input instanceof Date ? NOT_A_TIMESTAMP.error : 'must be text') },
);
const timestampDocument = {
  anyOf: [timestampSchema('date-time'), timestampSchema('date'), { type: 'null' }],
  example: FUTURE_TIMESTAMP,
  [EMPTY_IS_NULL]: true,
};

/** A timestamp in a request: an RFC 3339 date-time, a date (midnight UTC) or, over RPC, a `Date`. Empty text becomes null. */
export const optionalTimestamp = sentTimestamp
  .transform((value) => (typeof value === 'string' ? (parseTimestamp(value) ?? null) : value))
  .nullish()
  .meta(timestampDocument);

/** The same for due dates; a date stays text, since the card is due during that whole day. */
export const optionalDueDate = sentTimestamp
  .transform((value) => (typeof value !== 'string' || isDay(value) ? value : (parseTimestamp(value) ?? null)))
  .nullish()
  .meta(timestampDocument);

/** Marks a field that REST sends as text; RPC keeps its type. */
export const sentAsText = <Schema extends z.ZodType>(schema: Schema, description: string) =>
  schema.meta({ [SENT_AS_TEXT]: description });
export const SENT_AS_TEXT = 'x-sent-as-text';

/** Marks a field that is required unless another field has this value, for the command line and the document. */
export const REQUIRED_UNLESS = 'x-required-unless';

function limited(schema: z.ZodString, maxLength: number) {
  return atMost(schema, maxLength)
    .refine(isStorable, { error: 'must not contain U+0000 or a lone surrogate', abort: true })
    .refine((value) => !CONTROL_CHARACTER.test(value), {
      error: 'must not contain control characters other than tab and line ends',
    });
}

/** Except tab, line feed and carriage return. Nobody types them, and JSON needs six bytes for most of them. */
export const CONTROL_CHARACTER = /[^\P{Cc}\t\n\r]/u;

function atMost(schema: z.ZodString, maxLength: number) {
  const error = `must be at most ${maxLength} characters`;
  return schema.refine((value) => hasAtMost(value, maxLength), { error, abort: true }).meta({ maxLength });
}

/** A code point has one or two UTF-16 units, so most texts need no counting. */
function hasAtMost(value: string, maxLength: number) {
  if (value.length <= maxLength) return true;
  return value.length <= 2 * maxLength && countCodePoints(value) <= maxLength;
}

/** PostgreSQL rejects U+0000, and would store a lone surrogate as another character. */
/** PostgreSQL stores no other text. */
export function isStorable(value: string) {
  return value.isWellFormed() && !value.includes('\0');
}

/** As PostgreSQL counts, not in UTF-16 units. */
function countCodePoints(value: string) {
  let count = 0;
  for (const _ of value) count++;
  return count;
}

const emptyAsNull = (value: string) => (value === '' ? null : value);

const TIMESTAMP =
  /^(\d{4}-\d{2}-\d{2})(?:T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d))?$/i;
const FIRST_TIMESTAMP = Date.parse('0001-01-01T00:00:00Z');
const LAST_TIMESTAMP = Date.parse('9999-12-31T23:59:59.999Z');

const isDay = (value: string) => z.regexes.date.test(value);

function parseTimestamp(value: string): Date | undefined {
  if (value.length > LONGEST_TIMESTAMP) return undefined;
  const day = TIMESTAMP.exec(value)?.[1];
  if (!day || !isDay(day)) return undefined;
  const date = new Date(value.toUpperCase());
  return isInRange(date) ? date : undefined;
}

function isInRange(date: Date) {
  return date.getTime() >= FIRST_TIMESTAMP && date.getTime() <= LAST_TIMESTAMP;
}
