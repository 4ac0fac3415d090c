import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Schema } from '../../server/api/openapi/example.ts';
import { procedures } from '../../server/api/procedures.ts';
import { email, optionalText, optionalTimestamp, secret, text } from '../../shared/fields.ts';
import { Page } from '../../shared/paging.ts';
import { Authenticate } from '../../shared/user.ts';

/** The paths in a schema without an upper limit, which would accept any size. */
function unlimited(schema: Schema, place: string): string[] {
  const parts = (schema.anyOf ?? []).flatMap((part) => unlimited(part, place));
  const fields = Object.entries(schema.properties ?? {}).flatMap(([name, part]) => unlimited(part, `${place}.${name}`));
  const elements = schema.items ? unlimited(schema.items, `${place}[]`) : [];
  return [...parts, ...fields, ...elements, ...(hasLimit(schema) ? [] : [place])];
}

function hasLimit({ type, enum: choices, ...schema }: Schema): boolean {
  if (type === 'string') return choices !== undefined || schema.maxLength !== undefined;
  if (type === 'array') return schema.maxItems !== undefined;
  if (type === 'integer' || type === 'number') return schema.minimum !== undefined && schema.maximum !== undefined;
  return true;
}

describe('every input', () => {
  it('limits the size of each text, list and number', () => {
    const missing = procedures.flatMap(({ name, input }) =>
      input ? unlimited(z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' }) as Schema, name) : [],
    );

    expect(missing).toEqual([]);
  });
});

const messagesOf = (schema: z.ZodType, value: unknown) =>
  schema.safeParse(value).error?.issues.map(({ message }) => message);

describe('a text without a specific limit', () => {
  it.each([
    ['text', text()],
    ['optionalText', optionalText()],
  ])('%s has at most 65,536 code points, surrounding blanks aside', (_, schema) => {
    expect(messagesOf(schema, 'x'.repeat(65_536))).toBeUndefined();
    expect(messagesOf(schema, ` ${'😀'.repeat(65_536)} `)).toBeUndefined();
    expect(messagesOf(schema, 'x'.repeat(65_537))).toEqual(['must be at most 65536 characters']);
    expect(messagesOf(schema, '😀'.repeat(65_537))).toEqual(['must be at most 65536 characters']);
    expect(messagesOf(schema, '\0'.repeat(1_000_000))).toEqual(['must be at most 65536 characters']);
  });
});

describe('input that is not trimmed', () => {
  it.each([
    ['a password', secret, 1000],
    ['a token', Authenticate.shape.token, 4096],
    ['a code', Authenticate.shape.code, 100],
    ['a cursor', Page.shape.cursor, 100],
  ])('%s has a limit', (_, schema, limit) => {
    expect(messagesOf(schema, ' '.repeat(limit))).toBeUndefined();
    expect(messagesOf(schema, ' '.repeat(limit + 1))).toEqual([`must be at most ${limit} characters`]);
  });

  it.each([
    ...['member@demo.test', 'a.b+c@x.example', "o'neil@x.ie", 'user@localhost', 'a@b', 'a@1.2', 'x@xn--mller-kva.de'],
    ...['用户@例え.jp', 'jörg@müller.de', 'अजय@डाटा.भारत', '😀@x.test', `a@${'b'.repeat(63)}.c`],
  ])('%s is an e-mail address', (address) => {
    expect(email.parse(` ${address} `)).toBe(address.normalize('NFC'));
  });

  it.each([
    ...'x @ a@ @b a@b@c a@.b a@b. a@b..c a@-b a@b- .a@b a.@b a..b@c "a"@b a@[1.2.3.4] a<b>@c a,b@c a@b/c a@b:5'.split(
      ' ',
    ),
    ...['a b@c', 'a@b c', 'a\tb@c', 'a\nb@c', 'a@b\nc', 'a\u00a0b@c', 'a\u200bb@c', 'a\u202eb@c', 'a@b_c'],
    ...['a\0@b', 'a@b\0c', 'a\u0001@b', '\ud800@b', 'a@b\udc00', `a@${'b'.repeat(64)}`],
    // Invisible: fillers, a joiner, a variation selector, a vowel, a blank.
    ...['a\u3164@b', 'a\uffa0@b', 'a@b\u3164', 'a@\u3164', 'a\u034f@b', 'a\ufe0f@b', 'a@b\u17b4c', 'a\u2800@b'],
  ])('%j is not an e-mail address', (address) => {
    expect(messagesOf(email, address)).toEqual(['must be an e-mail address']);
  });

  it('an e-mail address is composed before it is compared', () => {
    expect(email.parse('jo\u0308rg@mu\u0308ller.de')).toBe('j\u00f6rg@m\u00fcller.de');
  });

  it('an e-mail address is checked for length before it is parsed', () => {
    expect(messagesOf(email, 'x'.repeat(1_000_000))).toEqual(['must be at most 320 characters']);
  });

  it('a timestamp with a thousand digits is refused', () => {
    expect(messagesOf(optionalTimestamp, '2026-01-31T09:30:00.123456789+01:00')).toBeUndefined();
    expect(messagesOf(optionalTimestamp, `2026-01-31T09:30:00.${'1'.repeat(1000)}Z`)).toEqual([
      'must be a date, or a date-time with an offset, such as 2026-01-31T09:30:00Z',
    ]);
  });
});

describe('control characters', () => {
  const REFUSED = ['must not contain control characters other than tab and line ends'];
  /** They are verified as sent, and neither stored nor answered. */
  const AS_SENT = new Set(['password', 'new_password', 'token', 'code', 'secret', 'cursor', 'after']);

  it.each(['\u0001', '\b', '\v', '\f', '\u001b', '\u001f', '\u007f', '\u0080', '\u0085', '\u009f'])(
    '422 for %j in a text',
    (character) => {
      expect(messagesOf(text(), `a${character}b`)).toEqual(REFUSED);
      expect(messagesOf(optionalText(), `a${character}b`)).toEqual(REFUSED);
    },
  );

  it('are allowed if they are a tab or a line end; other characters that are not shown are, too', () => {
    expect(text().parse('a\tb\nc\r\nd\u00a0e\u00adf\u200bg\u2028h')).toBe('a\tb\nc\r\nd\u00a0e\u00adf\u200bg\u2028h');
  });

  it('422 for U+0000 with one message', () => {
    expect(messagesOf(text(), 'a\0\u0001b')).toEqual(['must not contain U+0000 or a lone surrogate']);
  });

  it('are refused by every text of every input', () => {
    const accepting = procedures.flatMap(({ name, input }) =>
      Object.entries(input ? shapeOf(input) : {})
        .filter(([, field]) => [A_CONTROL, [A_CONTROL]].some((value) => accepts(field as z.ZodType, value)))
        .map(([field]) => `${name}.${field}`),
    );

    expect(accepting.filter((path) => !AS_SENT.has(path.split('.').at(-1)!))).toEqual([]);
    expect(accepting).toContain('auth.authenticate.password');
  });

  const A_CONTROL = 'a\u0001b';
  const shapeOf = (input: z.ZodType): z.ZodRawShape =>
    input instanceof z.ZodObject ? input.shape : shapeOf((input as z.ZodOptional<z.ZodType>).unwrap());
  const accepts = (field: z.ZodType, value: unknown) => field.safeParse(value).success;
});
