import fc from 'fast-check';
import { OBJECT_KEYS } from './hostile.ts';

/** Superjson annotations, valid and invalid. */
const ANNOTATIONS: unknown[] = [
  ...['undefined', 'Date', 'set', 'map', 'bigint', 'regexp', 'URL', 'Error', 'number', 'nonsense'].map((type) => [
    type,
  ]),
  [['symbol', 'x']],
  [['class', 'User']],
  [['custom', 'x']],
  ...['Uint8Array', 'Float64Array', 'nonsense'].map((name) => [['typed-array', name]]),
  ['set', { 0: ['map'] }],
  ['map', { '0.0': ['Date'] }],
  ['undefined', { a: ['Date'] }],
  [],
  [null],
  [[]],
  ['__proto__'],
  'Date',
  null,
  5,
  {},
];

const ANNOTATED = [
  ...[{ length: 300_000_000 }, { length: -1 }, '9'.repeat(10_000), '/(a+)+$/'],
  ...['aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!', [[1, 2]], [1, 1], 'NaN', '-Infinity', 'http://127.0.0.1/'],
  ...[{ name: 'x', message: 'y', stack: 'z', cause: {} }, '2026-01-31T09:30:00Z', '2026-01-31'],
  ...['-271821-04-20T00:00:00Z', null, 'x'.repeat(10_000)],
];

const PATHS = [
  ...['', '.', '\\', 'a.b\\.c', 'groups.0.id', 'groups.1000000', 'groups.length', '__proto__.x'],
  ...['a'.repeat(300)],
];

type Annotated = { at: string; value: unknown; isReplaced: boolean; meta: unknown };

/** A value for a field with a superjson annotation. */
export function annotated(fields: string[]): fc.Arbitrary<Annotated> {
  const field = fc.constantFrom(...fields, ...fields, 'x');
  const path = fc.oneof(field, fc.constantFrom(...PATHS, ...OBJECT_KEYS, 'constructor.prototype.x'));
  const annotation = fc.constantFrom(...ANNOTATIONS);
  const values = fc.oneof(
    { weight: 6, arbitrary: fc.dictionary(path, annotation, { minKeys: 1, maxKeys: 4 }) },
    { weight: 3, arbitrary: annotation },
    { weight: 1, arbitrary: fc.nat({ max: 5000 }).map(wideTree) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 3000 }).map(deepTree) },
  );
  const equal = fc.oneof(
    fc.dictionary(path, fc.array(path, { maxLength: 3 })),
    fc.array(path, { maxLength: 3 }).map((paths) => [paths]),
    fc.constantFrom<unknown>('x', 5, [null], [[''], { '': [''] }]),
  );
  const meta = fc.oneof(
    { weight: 6, arbitrary: values.map((values) => ({ values })) },
    { weight: 2, arbitrary: fc.record({ values, v: fc.constantFrom<unknown>(0, 1, 2, 'x', null) }) },
    { weight: 2, arbitrary: fc.record({ values, referentialEqualities: equal }, { requiredKeys: [] }) },
    { weight: 1, arbitrary: fc.constantFrom<unknown>(5, 'x', [], null, true, { values: 'x' }, { __proto__: 1 }) },
  );
  return fc.record({ at: field, value: fc.constantFrom<unknown>(...ANNOTATED), isReplaced: fc.boolean(), meta });
}

const wideTree = (width: number) => Object.fromEntries(Array.from({ length: width }, (_, n) => [`x${n}`, ['Date']]));

const deepTree = (depth: number): unknown => {
  let tree: unknown = ['Date'];
  for (let level = 0; level < Math.min(depth, 1000); level++) tree = { [`a${level}`]: tree };
  return tree;
};
