import { isDeepStrictEqual } from 'node:util';
import type { Schema } from '../../server/api/openapi/example.ts';

export type Resolve = (schema: Schema) => Schema;

/** A schema, and how its references are resolved. */
type Located = { schema: Schema; resolve: Resolve };

/** The message for each kind of difference; undefined if it is allowed. */
type Words = {
  /** A field that only the wide schema has. */
  absent: string | undefined;
  /** A field that is required in the wide schema and optional in the narrow one. */
  uncertain: string;
  /** A field that only the narrow schema has. */
  unknown: string | undefined;
  /** A value that only the narrow schema allows. */
  outside: (value: string) => string;
};

/** Why a value of the narrow schema may be invalid in the wide one: a line for each reason. */
export function narrowings(narrow: Located, wide: Located, place: string, words: Words): string[] {
  const allowed = alternatives(wide);
  return alternatives(narrow).flatMap((kind) => {
    const fitting = allowed.filter(({ schema }) => isOfType(kind.schema, schema));
    if (fitting.length === 0) return [`${place} ${words.outside(`${kind.schema.type}`)}`];
    const reasons = fitting.map((candidate) => reasonsAgainst(kind, candidate, place, words));
    return reasons.toSorted((one, other) => one.length - other.length)[0]!;
  });
}

/** The alternatives of a schema, each of one type. */
function alternatives({ schema, resolve }: Located): Located[] {
  const resolved = resolve(schema);
  const parts = resolved.anyOf ?? (resolved.oneOf as Schema[] | undefined);
  if (parts) return parts.flatMap((part) => alternatives({ schema: part, resolve }));
  if (!Array.isArray(resolved.type)) return [{ schema: resolved, resolve }];
  return resolved.type.map((type) => ({ schema: { ...resolved, type }, resolve }));
}

const isOfType = (narrow: Schema, wide: Schema) =>
  wide.type === undefined || narrow.type === wide.type || (narrow.type === 'integer' && wide.type === 'number');

function reasonsAgainst(narrow: Located, wide: Located, place: string, words: Words): string[] {
  return [
    ...valueReasons(narrow.schema, wide.schema, place, words),
    ...limitReasons(narrow.schema, wide.schema, place, words),
    ...fieldReasons(narrow, wide, place, words),
    ...partReasons(narrow, wide, place, words),
  ];
}

const valuesOf = ({ enum: choices, const: only }: Schema) => choices ?? (only === undefined ? undefined : [only]);

function valueReasons(narrow: Schema, wide: Schema, place: string, words: Words): string[] {
  const allowed = valuesOf(wide);
  if (!allowed) return [];
  const values = valuesOf(narrow);
  if (!values) return [`${place} ${words.outside(`anything but ${allowed.join(', ')}`)}`];
  return values.filter((value) => !allowed.includes(value)).map((value) => `${place} ${words.outside(String(value))}`);
}

function limitReasons(narrow: Schema, wide: Schema, place: string, words: Words): string[] {
  const limits = (schema: Schema, names: string[]) => names.map((name) => [name, schema[name]] as [string, number?]);
  const upper = limits(wide, ['maximum', 'maxLength', 'maxItems']).filter(
    ([name, limit]) => limit !== undefined && !((narrow[name] as number) <= limit),
  );
  const lower = limits(wide, ['minimum', 'minLength', 'minItems']).filter(
    ([name, limit]) => limit !== undefined && !(((narrow[name] as number) ?? LEAST[name]) >= limit),
  );
  const kinds = Object.keys(wide).filter(
    (name) => !UNDERSTOOD.has(name) && wide[name] !== ONLY_SHOWN && !isDeepStrictEqual(narrow[name], wide[name]),
  );
  return [
    ...[...upper, ...lower].map(([name, limit]) => `${place} ${words.outside(`beyond ${name} ${limit}`)}`),
    ...kinds.map((name) => `${place} ${words.outside(`other than ${name} ${shown(wide[name])}`)}`),
  ];
}

const shown = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

/** Keywords that are compared by meaning, or only describe. All others must be equal. */
const UNDERSTOOD = new Set(
  (
    '$ref type anyOf oneOf enum const properties required items additionalProperties contentSchema ' +
    'maximum maxLength maxItems minimum minLength minItems title description default deprecated example examples'
  ).split(' '),
);

/** A format that says how to show a field, and does not restrict its values. */
const ONLY_SHOWN = 'password';

/** Lower limits of a schema that has none. */
const LEAST: Record<string, number> = { minLength: 0, minItems: 0 };

function fieldReasons(narrow: Located, wide: Located, place: string, words: Words): string[] {
  const { properties: fields = {}, required: certain = [] } = narrow.schema;
  const { properties: known = {}, required = [] } = wide.schema;
  const say = (field: string, reason: string | undefined) => (reason ? [`${place}.${field} ${reason}`] : []);
  const lacking = Object.keys(known).flatMap((field) => {
    const isUncertain = required.includes(field) && !certain.includes(field);
    const absent = field in fields ? undefined : words.absent;
    return say(field, absent ?? (isUncertain ? words.uncertain : undefined));
  });
  const present = Object.entries(fields).flatMap(([field, schema]) => {
    const counterpart = known[field];
    if (!counterpart) return say(field, words.unknown);
    return narrowings({ ...narrow, schema }, { ...wide, schema: counterpart }, `${place}.${field}`, words);
  });
  return [...lacking, ...present];
}

/** Compares array elements, additional properties, and the content of JSON text. */
function partReasons(narrow: Located, wide: Located, place: string, words: Words): string[] {
  return PARTS.flatMap(([name, mark]) => {
    const [part, whole] = [narrow.schema[name], wide.schema[name]] as (Schema | false | undefined)[];
    if (whole === undefined || part === false) return [];
    if (!part || !whole) return [`${place}${mark} ${words.outside('anything')}`];
    return narrowings({ ...narrow, schema: part }, { ...wide, schema: whole }, `${place}${mark}`, words);
  });
}
const PARTS = [
  ['items', '[]'],
  ['additionalProperties', '.*'],
  ['contentSchema', ' (text)'],
] as const;
