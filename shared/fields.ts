import './wording.ts';
import { z } from 'zod';

/** Fields that several models share. */

export const id = z.int32().min(1).meta({ description: 'Its id, from 1.', example: 1 });

/** A number of things in an answer. */
export const count = z.int().min(0);

export const position = z
  .int32()
  .meta({ description: 'Its position, lowest first; ties are ordered by id.', example: 1 });

/** The position of a row that is created or changed. */
const MOVES_OTHERS = 'rows of the same place whose position is taken move behind it';
export const newPosition = position
  .nullish()
  .meta({ description: `Its position, lowest first, or last if not sent; ${MOVES_OTHERS}.` });
export const changedPosition = position.nullish().meta({ description: `Its position, lowest first; ${MOVES_OTHERS}.` });

export const flag = z.boolean().nullish();

/** What `is_active: false` means for boards, groups and cards. */
export const IS_ACTIVE =
  'Whether it is active. An inactive one is still listed and works as before; an inactive template is not copied to further projects';

/** The default limit of texts. */
const LONGEST_TEXT = 65_536;

/** Required text: trimmed, not empty. */
export const text = (maxLength = LONGEST_TEXT) => limited(z.string().trim().min(1), maxLength);

/** Optional text; an empty one becomes null. */
export const optionalText = (maxLength = LONGEST_TEXT) =>
  limited(z.string().trim(), maxLength).transform(emptyAsNull).nullish();

/** The note in the document for texts that pages show. */
export const PLAIN_TEXT = 'plain text: escape it when you show it';
export const HTML = 'may contain HTML, which is sanitised';

/** An optional choice; an empty text becomes null. */
export const optionalChoice = <Choice extends string>(choices: readonly Choice[]) => {
  const choice = z
    .string({ error: `must be one of ${choices.join(', ')}` })
    .trim()
    .meta({ enum: [...choices], example: choices[0] })
    .transform(emptyAsNull)
    .pipe(z.enum(choices).nullable());
  // In the types only the choices are allowed; at run time any text reaches the check.
  return (choice as unknown as z.ZodType<Choice | null, Choice | ''>).nullish();
};

const SHORTEST_PASSWORD = 8;
const LONGEST_PASSWORD = 1000;

/** Text that is not trimmed: tokens, codes, cursors. */
export const asSent = (maxLength: number) => atMost(z.string(), maxLength);

/** A password or code to verify. */
export const secret = asSent(LONGEST_PASSWORD).min(1).meta({ format: 'password' });

/** A new password. */
export const newPassword = secret
  .refine((value) => countCodePoints(value) >= SHORTEST_PASSWORD, {
    error: `must be at least ${SHORTEST_PASSWORD} characters`,
  })
  .meta({ minLength: SHORTEST_PASSWORD, example: 'a long sentence' });

const LONGEST_EMAIL = 320;

/** A host name, in any script; `localhost` has no dot. */
const LABEL = String.raw`[\p{L}\p{N}](?:[\p{L}\p{M}\p{N}-]{0,61}[\p{L}\p{M}\p{N}])?`;
/** No dot at its ends, no two in a row, no blanks, and no characters that need quotes. */
const MAILBOX = String.raw`(?!\.)(?!.*\.[.@])[^\p{C}\p{Z}"(),:;<>@\[\\\]]+`;
/** Two addresses must not look the same: \p{DI} are letters and marks that are not shown, U+2800 is an empty pattern of dots. */
const INVISIBLE = String.raw`[\p{DI}\u2800]`;
const EMAIL = new RegExp(`^(?!.*${INVISIBLE})${MAILBOX}@${LABEL}(?:\\.${LABEL})*$`, 'u');

/** An e-mail address in any script, in Unicode's composed form (NFC); case is ignored. */
export const email = atMost(z.string().trim().min(1), LONGEST_EMAIL)
  .meta({ format: 'email', description: 'The e-mail address of the account.', example: 'member@demo.test' })
  .transform((address) => address.normalize('NFC'))
  .pipe(z.string().regex(EMAIL, { error: 'must be an e-mail address' }));

/** The maximum of rows in one reorder, and so of rows with the same parent. */
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

/** Rows with their new positions, without duplicates. The length is checked first, since a long list of invalid elements is slow to check. */
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

/** A timestamp in an answer: a `Date` over RPC, ISO 8601 text in UTC over REST. Accepts PostgreSQL's text format. */
export const timestamp = z.codec(
  z.union([z.date(), z.string()]),
  z.date().meta({ format: 'date-time', example: '2026-01-31T09:30:00.000Z' }),
  { decode: (moment) => (typeof moment === 'string' ? fromDatabase(moment) : moment), encode: (moment) => moment },
);

/** Converts PostgreSQL's text to ISO 8601 before parsing: otherwise V8 reads the year 0001 as 2001. */
function fromDatabase(moment: string): Date {
  return new Date(moment.replace(' ', 'T').replace(/([+-]\d\d)$/, '$1:00'));
}

/** The example of a time to come: far away, so that it stays one. */
export const FUTURE_MOMENT = '2099-01-31T09:30:00.000Z';

const LONGEST_MOMENT = 64;

/** What callers can send as a timestamp; over RPC also a `Date`. */
export const MOMENT_TEXT = 'a date-time with an offset, or a date (midnight UTC)';

const NO_MOMENT = { error: 'must be a date, or a date-time with an offset, such as 2026-01-31T09:30:00Z' };
const momentText = (format: string) => ({ type: 'string', format, maxLength: LONGEST_MOMENT });

const sentMoment = z.union(
  [
    z
      .string()
      .trim()
      .refine((value) => value === '' || parseMoment(value) !== undefined, NO_MOMENT),
    z.date().refine(isInRange, NO_MOMENT),
  ],
  { error: ({ input }) => (input instanceof Date ? NO_MOMENT.error : 'must be text') },
);
const documentedMoment = {
  anyOf: [momentText('date-time'), momentText('date'), { type: 'null' }],
  example: FUTURE_MOMENT,
};

/**
 * A timestamp in a request: an RFC 3339 date-time with offset, or a date (midnight UTC); over RPC also a `Date`. An empty text
 * becomes null.
 */
export const optionalMoment = sentMoment
  .transform((value) => (typeof value === 'string' ? (parseMoment(value) ?? null) : value))
  .nullish()
  .meta(documentedMoment);

/** The same for due dates: a date stays text, since it is due during that whole day. */
export const optionalDueDate = sentMoment
  .transform((value) => (typeof value !== 'string' || isDay(value) ? value : (parseMoment(value) ?? null)))
  .nullish()
  .meta(documentedMoment);

/** Marks a field that REST sends as text, as documented; RPC keeps its type. */
export const sentAsText = <Schema extends z.ZodType>(schema: Schema, holds: string) =>
  schema.meta({ [SENT_AS_TEXT]: holds });
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

/** Any but tab, line feed and carriage return. Nobody types them, and JSON needs six bytes for most of them. */
export const CONTROL_CHARACTER = /[^\P{Cc}\t\n\r]/u;

/** Checks the length before any other check. */
function atMost(schema: z.ZodString, maxLength: number) {
  const error = `must be at most ${maxLength} characters`;
  return schema.refine((value) => hasAtMost(value, maxLength), { error, abort: true }).meta({ maxLength });
}

/** A code point has one or two UTF-16 units, so short texts need no counting. */
function hasAtMost(value: string, maxLength: number) {
  if (value.length <= maxLength) return true;
  return value.length <= 2 * maxLength && countCodePoints(value) <= maxLength;
}

/** PostgreSQL refuses U+0000, and a lone surrogate would be stored as another character. */
function isStorable(value: string) {
  return value.isWellFormed() && !value.includes('\0');
}

/** As PostgreSQL counts, not in UTF-16 units. */
function countCodePoints(value: string) {
  let count = 0;
  for (const _ of value) count++;
  return count;
}

const emptyAsNull = (value: string) => (value === '' ? null : value);

const DAY = z.iso.date();
const MOMENT =
  /^(\d{4}-\d{2}-\d{2})(?:T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d))?$/i;
const FIRST_MOMENT = Date.parse('0001-01-01T00:00:00Z');
const LAST_MOMENT = Date.parse('9999-12-31T23:59:59.999Z');

const isDay = (value: string) => DAY.safeParse(value).success;

function parseMoment(value: string): Date | undefined {
  if (value.length > LONGEST_MOMENT) return undefined;
  const day = MOMENT.exec(value)?.[1];
  if (!day || !isDay(day)) return undefined;
  const moment = new Date(value.toUpperCase());
  return isInRange(moment) ? moment : undefined;
}

function isInRange(moment: Date) {
  return moment.getTime() >= FIRST_MOMENT && moment.getTime() <= LAST_MOMENT;
}
