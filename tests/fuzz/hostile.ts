import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { LARGEST_BODY_BYTES } from '../../shared/limits.ts';

/** Hostile values and bodies. */

/** Property names that are special in JavaScript. */
export const OBJECT_KEYS = '__proto__ constructor prototype toString hasOwnProperty then toJSON length'.split(' ');

const TEXTS = [
  ...["' or 1=1 --", "'; select pg_sleep(5); --", '%', '_%\\', '%%%%_____%%%%', '$1', '\\', '\\u0000'],
  ...['\0', 'a\0b', '\ud800', 'x\udc00y', '\ufeff', '\u202e', 'İ', 'ﷺ'.repeat(50), '👩‍👩‍👧‍👦'.repeat(20)],
  ...['a\u0301'.repeat(100), '<script>alert(1)</script>', `${'<b>'.repeat(500)}x`, '&'.repeat(1000)],
  ...['../../etc/passwd', 'null', 'NaN', 'infinity', '-0', '1e309', '2026-02-30'],
  ...['9999-12-31T23:59:59.999+14:00', '0001-01-01T00:00:00-14:00', 'eyJpZCI6MX0', 'eyJpZCI6Ii0xIn0='],
  ...['WzEsMl0', 'bnVsbA'],
  ...OBJECT_KEYS,
];

const NUMBERS = [
  ...[0, -1, 0.1, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), -(2 ** 31) - 1, 2 ** 32, 2 ** 53, 2 ** 63, 1e21, 1e308],
  ...[5e-324],
];

/** An object with this own property; a literal `__proto__` would set the prototype. */
const withKey = (key: string, value: unknown) => JSON.parse(`{${JSON.stringify(key)}:${JSON.stringify(value)}}`);

export const hostileValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom<unknown>(...TEXTS, ...NUMBERS, null, true, [], {}) },
  { weight: 2, arbitrary: fc.jsonValue({ maxDepth: 4 }) },
  { weight: 2, arbitrary: fc.constantFrom(...OBJECT_KEYS).chain((key) => fc.jsonValue().map((v) => withKey(key, v))) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 60 }).map((depth) => nested(depth)) },
  { weight: 1, arbitrary: fc.nat({ max: 3000 }).map((count) => Array.from({ length: count }, (_, id) => ({ id }))) },
  { weight: 1, arbitrary: fc.nat({ max: 70_000 }).map((length) => 'x'.repeat(length)) },
);

const nested = (depth: number): unknown =>
  depth === 0 ? 1 : depth % 2 ? [nested(depth - 1)] : { a: nested(depth - 1) };

/** A change to the bytes of a body. */
export type BodyVariant = { name: string; apply: (body: string) => Buffer; headers?: [string, string][] };

const asText = (name: string, apply: (body: string) => string): BodyVariant => ({
  name,
  apply: (body) => Buffer.from(apply(body)),
});
const inFront = (body: string, fields: string) => (body.startsWith('{') ? `{${fields}${body.slice(1)}` : body);
const deep = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

const SMALL_VARIANTS: BodyVariant[] = [
  asText('empty', () => ''),
  asText('blank', () => ' \r\n\t '),
  asText('byte order mark', (body) => `\ufeff${body}`),
  asText('cut in half', (body) => body.slice(0, body.length / 2)),
  asText('trailing object', (body) => `${body}{}`),
  asText('trailing comma', (body) => body.replace(/}$/, ',}')),
  asText('comment', (body) => `/* */${body}`),
  asText('single quotes', (body) => body.replaceAll('"', "'")),
  asText('array', (body) => `[${body}]`),
  asText('text', (body) => JSON.stringify(body)),
  ...['null', 'true', '5', '-', '"', '[', '{', '[]', '{}', 'NaN', 'undefined'].map((text) => asText(text, () => text)),
  asText('a field twice', (body) => inFront(body, '"id":1,"title":"x","email":"a@b.test","json":{},"0":{},')),
  asText('__proto__', (body) => inFront(body, '"__proto__":{"superadmin":true,"id":1},')),
  asText('constructor', (body) => inFront(body, '"constructor":{"prototype":{"id":1}},')),
  asText('infinite number', (body) => body.replace(/:\d+/, ':1e999')),
  asText('number of 5,000 digits', (body) => body.replace(/:\d+/, `:${'9'.repeat(5000)}`)),
  asText('minus zero', (body) => body.replace(/:\d+/, ':-0')),
  asText('leading zero', (body) => body.replace(/:\d/, ':0$&').replace(':0:', ':0')),
  asText('control character', (body) => body.replace(/:"/, ':"\u0001')),
  asText('escaped control character', (body) => body.replace(/:"/, ':"\\u009f')),
  asText('escaped U+0000', (body) => body.replace(/:"/, ':"\\u0000')),
  asText('escaped surrogate', (body) => body.replace(/:"/, ':"\\ud83d')),
  asText('64 deep', () => deep(64)),
  asText('65 deep', () => deep(65)),
  asText('10,000 deep', () => deep(10_000)),
  asText('10,000 deep in a field', (body) => inFront(body, `"x":${deep(10_000)},`)),
  asText('never closed', () => '[{"a":'.repeat(5000)),
  { name: 'invalid UTF-8', apply: (body) => Buffer.concat([Buffer.from(body), Buffer.from([0xff, 0xfe, 0xc0, 0x80])]) },
  { name: 'UTF-8 of a surrogate', apply: (body) => Buffer.from(body.replace(/:"/, ':"\u00ed\u00a0\u0080'), 'latin1') },
  { name: 'UTF-16', apply: (body) => Buffer.from(body, 'utf16le') },
  { name: 'zero bytes', apply: () => Buffer.alloc(1000) },
  { name: 'gzip', apply: (body) => gzipSync(body), headers: [['content-encoding', 'gzip']] },
  { name: 'wrong Content-Encoding', apply: (body) => Buffer.from(body), headers: [['content-encoding', 'gzip, br']] },
];

const LARGE_VARIANTS: BodyVariant[] = [
  asText('100,000 fields', (body) => inFront(body, Array.from({ length: 100_000 }, (_, n) => `"${n}":0,`).join(''))),
  asText('200,000 elements', () => `{"groups":[${'{},'.repeat(200_000)}{}],"boards":[${'[],'.repeat(100_000)}1]}`),
  asText('500,000 deep', () => deep(500_000)),
  asText('1 MiB of text', (body) => inFront(body, `"x":"${'x'.repeat(LARGEST_BODY_BYTES - body.length - 8)}",`)),
  asText('more than 1 MiB', (body) => inFront(body, `"x":"${'x'.repeat(LARGEST_BODY_BYTES)}",`)),
  asText('1 MiB in every text', (body) => body.replace(/:"/, `:"${'é'.repeat(500_000)}`)),
  asText('a number of 1,000,000 digits', (body) => inFront(body, `"x":${'9'.repeat(1_000_000)},`)),
];

export const bodyVariant: fc.Arbitrary<BodyVariant> = fc.oneof(
  { weight: 40, arbitrary: fc.constantFrom(...SMALL_VARIANTS) },
  { weight: 1, arbitrary: fc.constantFrom(...LARGE_VARIANTS) },
);
