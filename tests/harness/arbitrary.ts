import fc from 'fast-check';
import type { Schema } from '../../server/api/openapi/example.ts';
import { CONTROL_CHARACTER, REQUIRED_UNLESS } from '../../shared/fields.ts';

/** Random values for a schema: valid and invalid ones. */

/** A valid value. */
export function validValue(schema: Schema): fc.Arbitrary<unknown> {
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map(validValue));
  if (Array.isArray(schema.type)) return fc.oneof(...schema.type.map((type) => validValue({ ...schema, type })));
  if (schema.enum) return fc.constantFrom(...schema.enum);

  switch (schema.type) {
    case 'object':
      return validObject(schema);
    case 'array':
      return fc.array(validValue(schema.items!), { minLength: Number(schema.minItems ?? 0), maxLength: 4 });
    case 'string':
      return validText(schema);
    case 'integer':
      return fc.integer({ min: schema.minimum as number, max: schema.maximum as number });
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    default:
      throw new Error(`No values are known for ${JSON.stringify(schema)}.`);
  }
}

function validObject({ properties = {}, required = [] }: Schema): fc.Arbitrary<Record<string, unknown>> {
  const fields = Object.fromEntries(Object.entries(properties).map(([field, schema]) => [field, validValue(schema)]));
  const requiredOften = Object.keys(properties).filter((field) => REQUIRED_UNLESS in properties[field]!);
  return fc.record(fields, { requiredKeys: [...required, ...requiredOften], noNullPrototype: true });
}

/** Text of the allowed length, counted in code points, without control characters, which are refused. */
function validText({ format, pattern, minLength = 0, maxLength = 200 }: Schema): fc.Arbitrary<string> {
  if (format === 'date-time') return moment.map((date) => date.toISOString());
  if (format === 'date') return moment.map((date) => date.toISOString().slice(0, 10));
  if (format === 'email') return fc.oneof(fc.emailAddress(), fc.constantFrom('用户@例え.jp', 'user@localhost'));
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern as string));
  const longest = maxLength as number;
  const text = fc.oneof(
    { weight: 4, arbitrary: fc.string({ unit: character, maxLength: Math.min(longest, 20) }) },
    { weight: 1, arbitrary: fc.constantFrom('x', '😀').map((one) => one.repeat(longest)) },
    { weight: 1, arbitrary: fc.constant(' <p onclick="x()">a &amp; <b>b</p> ') },
  );
  return text.filter((value) => value.trim().length >= (minLength as number) && [...value].length <= longest);
}

const character = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 1 })
  .filter((one) => !CONTROL_CHARACTER.test(one));

const moment = fc.date({
  min: new Date('0001-01-01T00:00:00Z'),
  max: new Date('9999-12-31T23:59:59Z'),
  noInvalidDate: true,
});

/** Another value for one field of an input; undefined removes the field. */
type Change = { path: string[]; value: unknown };

/** A change that makes an input invalid, or an edge case. */
export function wrongChange(schema: Schema): fc.Arbitrary<Change> {
  const changes = fieldsIn(schema, []).map(({ path, schema }) => wrongValue(schema).map((value) => ({ path, value })));
  return fc.oneof(
    ...changes,
    wrongValue({}).map((value) => ({ path: ['an_unknown_field'], value })),
  );
}

/** The changed input; the same input if it has no such field. */
export function changed(input: unknown, { path: [field, ...deeper], value }: Change): unknown {
  if (field === undefined) return value;
  if (typeof input !== 'object' || input === null) return input;
  const { [field]: old, ...others } = input as Record<string, unknown>;
  const part = changed(old, { path: deeper, value });
  const fields = part === undefined ? others : { ...others, [field]: part };
  return Array.isArray(input) ? Object.values(fields) : fields;
}

function fieldsIn(schema: Schema, path: string[]): { path: string[]; schema: Schema }[] {
  const fields = Object.entries(schema.properties ?? {}).flatMap(([field, part]) => fieldsIn(part, [...path, field]));
  const elements = schema.items ? fieldsIn(schema.items, [...path, '0']) : [];
  return [...(path.length > 0 ? [{ path, schema }] : []), ...fields, ...elements];
}

function wrongValue(schema: Schema): fc.Arbitrary<unknown> {
  const { maxLength, maximum, minimum, maxItems, items, format, enum: choices } = schema.anyOf?.[0] ?? schema;
  const beyond = [
    ...(maxLength !== undefined ? ['😀'.repeat((maxLength as number) + 1), 'x'.repeat((maxLength as number) + 1)] : []),
    ...(maximum !== undefined ? [(maximum as number) + 1, (minimum as number) - 1, 1e21, 0.5, '5', '5 '] : []),
    ...(maxItems !== undefined ? [Array((maxItems as number) + 1).fill({}), Array(60).fill({}), [[]], [null]] : []),
    ...(items ? [[1, 2].map((position) => ({ id: 1, position }))] : []),
    ...(format !== undefined ? ['2026-02-30', '2026-01-31T24:00:00Z', '2026-01-31T10:00:00', 'a@b', 'infinity'] : []),
    ...(choices !== undefined ? ['nonsense', String(choices[0]).toUpperCase(), ` ${choices[0]} `] : []),
  ];
  return fc.constantFrom(undefined, ...beyond, ...beyond, ...ODD_VALUES);
}

const ODD_VALUES = [
  null,
  true,
  5,
  -1,
  0,
  1.5,
  1e300,
  '',
  ' \t\n',
  'x',
  'a\0b',
  'a\u0001b',
  '\ud800',
  'x\udc00',
  [],
  [['x']],
  {},
];
