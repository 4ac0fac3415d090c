import fc from 'fast-check';
import superjson from 'superjson';
import { describe, expect, it } from 'vitest';
import { writeSuperjson, writeSuperjsonInPieces } from '../../server/http/rpcOutput.ts';
import { asJsonText } from '../../server/runtime/jsonText.ts';
import { seed } from '../harness/sample.ts';

const read = (result: unknown) => superjson.deserialize(JSON.parse(writeSuperjson(result)));

const name = fc.constantFrom('id', 'title', 'created_at', 'a b', 'a.b', 'a\\b', 'a"b', '', '0');
const date = fc.date({ noInvalidDate: true });
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small' },
    fc.string({ unit: 'binary' }),
    fc.integer(),
    fc.double(),
    fc.boolean(),
    fc.constantFrom(null, undefined),
    date,
    fc.array(tie('tree')),
    fc.dictionary(name, tie('tree')),
  ),
}));

describe('a result', () => {
  it('is read back unchanged by superjson', () => {
    fc.assert(
      fc.property(fc.dictionary(name, tree), (result) => {
        expect(read(result)).toEqual(result);
      }),
      { seed, numRuns: 500 },
    );
  });

  it.each([
    undefined,
    null,
    5,
    'text',
    new Date(0),
    { a: undefined },
    { a: 5n },
    { a: Number.NaN },
    { a: -0 },
    { a: new Map([[1, 2]]) },
    { a: [new Set([1])] },
  ])('with types other than JSON and dates is written by superjson itself: %o', (result) => {
    expect(JSON.parse(writeSuperjson(result))).toEqual(JSON.parse(JSON.stringify(superjson.serialize(result))));
    expect(read(result)).toEqual(result);
  });

  it('with JSON from PostgreSQL is passed on unchanged, with its dates annotated', () => {
    const text = '{"at":"2026-01-31T09:30:00.000Z","odd":1.50}';
    const result = { board: asJsonText<object>(text, { own: ['at'] }), at: new Date(0) };

    expect(writeSuperjson(result)).toBe(
      `{"json":{"board":${text},"at":"1970-01-01T00:00:00.000Z"},"meta":{"values":{"board":{"at":["Date"]},"at":["Date"]},"v":1}}`,
    );
    expect(read(result)).toEqual({ board: { at: new Date('2026-01-31T09:30:00Z'), odd: 1.5 }, at: new Date(0) });
    expect(JSON.stringify(result.board)).toBe('{"at":"2026-01-31T09:30:00.000Z","odd":1.5}');
  });

  it('with a large text from PostgreSQL is written in pieces, with the same bytes', () => {
    const dates = { own: ['at'], lists: { groups: [{ own: ['at'] }, { own: [] }] } };
    const pieces = ['{"at":"2026-01-31T09:30:00.000Z","groups":[{"at":', '"2026-01-31T09:30:00.000Z"},', '{}]}'];
    const others = { before: 1, after: ['"'], at: new Date(0) };

    const written = [...writeSuperjsonInPieces({ ...others, board: asJsonText(pieces, dates) })];

    expect(written.join('')).toBe(writeSuperjson({ ...others, board: asJsonText(pieces.join(''), dates) }));
    expect(written).toEqual(expect.arrayContaining(pieces));
  });
});
