import fc from 'fast-check';

type Header = [string, string];

/** Headers that replace or extend the usual ones. */
export const headerVariant: fc.Arbitrary<Header[]> = fc.oneof(
  fc
    .constantFrom(
      'text/plain',
      'application/json; charset=utf-8',
      'application/json; charset=utf-16',
      'application/json;',
      'APPLICATION/JSON',
      'application/json, text/plain',
      'application/vnd.api+json',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'multipart/form-data',
      'application/octet-stream',
      '',
      ',',
      ';',
      '*/*',
      'é',
      `application/json; x=${'x'.repeat(5000)}`,
    )
    .map((value): Header[] => [['content-type', value]]),
  fc
    .constantFrom('0', '-1', '1', 'abc', '9'.repeat(20), '1, 2', ' 1 ', '1e3', '0x1', '', '2147483648', '1;', '\u00b2')
    .map((value): Header[] => [['x-project-id', value]]),
  // Few keys, so that some are sent again with another input; the last ones have places for the calls of a batch.
  fc
    .constantFrom('a', 'b', 'k'.repeat(255), 'k'.repeat(256), '', ' ', 'é', 'a,b', 'a,,b', ',', 'a, b, c, d')
    .map((value): Header[] => [['idempotency-key', value]]),
  fc
    .constantFrom('a'.repeat(128), 'a'.repeat(129), 'a'.repeat(10_000), 'x y', 'é', '', '"><b>', '../..', '%s%n')
    .map((value): Header[] => [['x-request-id', value]]),
  fc
    .constantFrom(
      'Bearer',
      'Bearer ',
      'bearer x',
      'Bearer a.b.c',
      'Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.',
      'Bearer null',
      'Bearer x y',
      `Bearer ${'x'.repeat(8000)}`,
      `Bearer ${'a.'.repeat(3000)}`,
      `Bearer${' '.repeat(8000)}x y`,
      'Basic dXNlcjpwYXNzd29yZA==',
      'é',
      '',
      ',',
    )
    .map((value): Header[] => [['authorization', value]]),
  fc.constantFrom<Header[]>(
    [
      ['x-project-id', '1'],
      ['x-project-id', '2'],
    ],
    [
      ['x-request-id', 'a'],
      ['x-request-id', 'b'],
    ],
    [
      ['authorization', 'Bearer x'],
      ['authorization', 'Bearer y'],
    ],
    [['expect', '100-continue']],
    [['expect', 'a miracle']],
    [
      ['connection', 'upgrade'],
      ['upgrade', 'websocket'],
      ['sec-websocket-key', 'AAAAAAAAAAAAAAAAAAAAAA=='],
      ['sec-websocket-version', '13'],
    ],
    [
      ['connection', 'upgrade'],
      ['upgrade', 'h2c'],
    ],
    [['connection', 'close']],
    [['trpc-accept', 'application/jsonl']],
    [['accept', 'text/html']],
    [['accept', 'text/event-stream']],
    [['accept', 'application/json;q=0']],
    [['accept-encoding', 'gzip, br']],
    [['x-http-method-override', 'DELETE']],
    [['x-forwarded-for', '1.2.3.4, nonsense, ::1']],
    [['forwarded', 'for=1.2.3.4']],
    [['origin', 'https://evil.test']],
    [
      ['origin', 'null'],
      ['access-control-request-method', 'POST'],
    ],
    [['range', 'bytes=0-1']],
    [['if-none-match', '*']],
    [['cookie', 'x='.repeat(3000)]],
    [['te', 'trailers']],
    [['x-trpc-source', '__proto__']],
    [['content-encoding', 'identity']],
    [['__proto__', 'x']],
  ),
);
