import fc from 'fast-check';

type Header = [string, string];

const each = (name: string, ...values: string[]) =>
  fc.constantFrom(...values).map((value): Header[] => [[name, value]]);

/** Headers from lines like `name: value`. */
const readHeaders = (...lines: string[]) => lines.map((line) => line.split(': ', 2) as Header);

/** Headers that replace or extend the usual ones. */
export const headerVariant: fc.Arbitrary<Header[]> = fc.oneof(
  each(
    'content-type',
    ...['text/plain', 'application/json; charset=utf-8', 'application/json; charset=utf-16', 'application/json;'],
    ...['APPLICATION/JSON', 'application/json, text/plain', 'application/vnd.api+json', '', ',', ';', '*/*', 'é'],
    ...['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'multipart/form-data'],
    ...['application/octet-stream', `application/json; x=${'x'.repeat(5000)}`],
  ),
  each(
    'x-project-id',
    ...['0', '-1', '1', 'abc', '9'.repeat(20), '1, 2', ' 1 ', '1e3', '0x1', '', '2147483648', '1;', '\u00b2'],
  ),
  // Few keys, so that some are sent again with another input; the last ones have places for the calls of a batch.
  each(
    'idempotency-key',
    ...['a', 'b', 'k'.repeat(255), 'k'.repeat(256), '', ' ', 'é', 'a,b', 'a,,b', ',', 'a, b, c, d'],
  ),
  each(
    'x-request-id',
    ...['a'.repeat(128), 'a'.repeat(129), 'a'.repeat(10_000), 'x y', 'é', '', '"><b>', '../..', '%s%n'],
  ),
  each(
    'authorization',
    ...['Bearer', 'Bearer ', 'bearer x', 'Bearer a.b.c', 'Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.', 'Bearer null'],
    ...['Bearer x y', `Bearer ${'x'.repeat(8000)}`, `Bearer ${'a.'.repeat(3000)}`, `Bearer${' '.repeat(8000)}x y`],
    ...['Basic dXNlcjpwYXNzd29yZA==', 'é', '', ','],
  ),
  fc.constantFrom(
    readHeaders('x-project-id: 1', 'x-project-id: 2'),
    readHeaders('x-request-id: a', 'x-request-id: b'),
    readHeaders('authorization: Bearer x', 'authorization: Bearer y'),
    readHeaders(
      ...['connection: upgrade', 'upgrade: websocket'],
      ...['sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==', 'sec-websocket-version: 13'],
    ),
    readHeaders('connection: upgrade', 'upgrade: h2c'),
    readHeaders('origin: null', 'access-control-request-method: POST'),
    ...[
      ...['expect: 100-continue', 'expect: a miracle', 'connection: close', 'trpc-accept: application/jsonl'],
      ...[
        'accept: text/html',
        'accept: text/event-stream',
        'accept: application/json;q=0',
        'accept-encoding: gzip, br',
      ],
      ...['x-http-method-override: DELETE', 'x-forwarded-for: 1.2.3.4, nonsense, ::1', 'forwarded: for=1.2.3.4'],
      ...['origin: https://evil.test', 'range: bytes=0-1', 'if-none-match: *', `cookie: ${'x='.repeat(3000)}`],
      ...['te: trailers', 'x-trpc-source: __proto__', 'content-encoding: identity', '__proto__: x'],
    ].map((line) => readHeaders(line)),
  ),
);
