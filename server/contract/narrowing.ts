import { isDeepStrictEqual } from 'node:util';
import type { Schema } from '../api/openapi/example.ts';

/** The message for each kind of difference; undefined if it is allowed. */
export type NarrowingWords = {
  /** A field that only the wide schema has. */
  absent: string | undefined;
  /** A field that is required in the wide schema and optional in the narrow one. */
  uncertain: string;
  /** A field that only the narrow schema has. */
  unknown: string | undefined;
  /** A value that only the narrow schema allows. */
  outside: (value: string) => string | undefined;
  /** Another default, or none: what a request without the field means. */
  otherDefault?: (narrow: unknown, wide: unknown) => string | undefined;
  /** A field that requests, or answers, of the one schema have and those of the other do not. */
  hidden: string;
  hiddenBy: (narrow: Schema, wide: Schema) => boolean;
  deprecated?: (narrow: boolean, wide: boolean) => string | undefined;
};

const say = (place: string, reason: string | undefined) => (reason === undefined ? [] : [`${place} ${reason}`]);

/** The schemas that are being compared, each with those on the other side. */
type Compared = Map<Schema, Schema[]>;

/** Why a value of the narrow schema may be invalid in the wide one: a line for each reason. Neither has references. */
export function narrowings(
  narrow: Schema,
  wide: Schema,
  place: string,
  words: NarrowingWords,
  around: Compared = new Map(),
): string[] {
  // A schema within itself is compared once.
  if (around.get(narrow)?.includes(wide)) return [];
  const within = new Map(around).set(narrow, [...(around.get(narrow) ?? []), wide]);
  const allowed = alternatives(wide);
  const values = withoutContained(alternatives(narrow)).flatMap((kind) => {
    const fitting = allowed.filter((candidate) => isOfType(kind, candidate));
    if (fitting.length === 0) return say(place, words.outside(`${kind.type}`));
    const reasons = fitting.map((candidate) => [
      ...valueReasons(kind, candidate, place, words),
      ...limitReasons(kind, candidate, place, words),
      ...fieldReasons(kind, candidate, place, words, within),
      ...partReasons(kind, candidate, place, words, within),
    ]);
    return reasons.toSorted((one, other) => one.length - other.length)[0]!;
  });
  return [...markReasons(narrow, wide, place, words), ...values];
}

/** What a schema says beside the values that it allows. */
function markReasons(narrow: Schema, wide: Schema, place: string, words: NarrowingWords): string[] {
  const hasOtherDefault = narrow.default !== undefined && !isDeepStrictEqual(narrow.default, wide.default);
  const isChanged = Boolean(narrow.deprecated) !== Boolean(wide.deprecated);
  return [
    ...(hasOtherDefault ? say(place, words.otherDefault?.(narrow.default, wide.default)) : []),
    ...(words.hiddenBy(narrow, wide) ? say(place, words.hidden) : []),
    ...(isChanged ? say(place, words.deprecated?.(Boolean(narrow.deprecated), Boolean(wide.deprecated))) : []),
  ];
}

/** The alternatives of a schema, each of one type. */
function alternatives(schema: Schema): Schema[] {
  const parts = schema.anyOf ?? (schema.oneOf as Schema[] | undefined);
  if (parts) return parts.flatMap(alternatives);
  return Array.isArray(schema.type) ? schema.type.map((type) => ({ ...schema, type })) : [schema];
}

/** Choices beside any text say nothing more: `anyOf` of both documents an open choice. */
const withoutContained = (parts: Schema[]) =>
  parts.filter(({ enum: choices, type }) => !choices || !parts.some((other) => isDeepStrictEqual(other, { type })));

const isOfType = (narrow: Schema, wide: Schema) =>
  wide.type === undefined || narrow.type === wide.type || (narrow.type === 'integer' && wide.type === 'number');

const valuesOf = ({ enum: choices, const: only }: Schema) => choices ?? (only === undefined ? undefined : [only]);

function valueReasons(narrow: Schema, wide: Schema, place: string, words: NarrowingWords): string[] {
  const allowed = valuesOf(wide);
  if (!allowed) return [];
  const values = valuesOf(narrow);
  if (!values) return say(place, words.outside(`anything but ${listed(allowed)}`));
  return values
    .filter((value) => !allowed.includes(value))
    .flatMap((value) => say(place, words.outside(String(value))));
}

const listed = (values: unknown[]) =>
  values.length > MOST_LISTED ? `the ${values.length} known values` : values.join(', ');
const MOST_LISTED = 10;

function limitReasons(narrow: Schema, wide: Schema, place: string, words: NarrowingWords): string[] {
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
    ...[...upper, ...lower].flatMap(([name, limit]) => say(place, words.outside(`beyond ${name} ${limit}`))),
    ...kinds.flatMap((name) => say(place, words.outside(`other than ${name} ${shown(wide[name])}`))),
  ];
}

const shown = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

/** Keywords that are compared by meaning, or only describe. All others must be equal. */
const UNDERSTOOD = new Set(
  (
    '$ref type anyOf oneOf enum const properties required items additionalProperties contentSchema ' +
    'maximum maxLength maxItems minimum minLength minItems title description default deprecated readOnly writeOnly example examples'
  ).split(' '),
);

/** A format that says how to show a field, and does not restrict its values. */
const ONLY_SHOWN = 'password';

/** Lower limits of a schema that has none. */
const LEAST: Record<string, number> = { minLength: 0, minItems: 0 };

type FurtherReasons = (
  narrow: Schema,
  wide: Schema,
  place: string,
  words: NarrowingWords,
  within: Compared,
) => string[];

const fieldReasons: FurtherReasons = (narrow, wide, place, words, within) => {
  const { properties: fields = {}, required: certain = [] } = narrow;
  const { properties: known = {}, required = [] } = wide;
  const lacking = Object.keys(known).flatMap((field) => {
    const isUncertain = required.includes(field) && !certain.includes(field);
    // With additional properties allowed, an optional field may be dropped: readers can't rely on it.
    const isPromised = required.includes(field) || !wide.additionalProperties;
    const absent = field in fields || !isPromised ? undefined : words.absent;
    return say(`${place}.${field}`, absent ?? (isUncertain ? words.uncertain : undefined));
  });
  const present = Object.entries(fields).flatMap(([field, schema]) => {
    const counterpart = known[field];
    if (!counterpart) return say(`${place}.${field}`, words.unknown);
    return narrowings(schema, counterpart, `${place}.${field}`, words, within);
  });
  return [...lacking, ...present];
};

/** Compares array elements, additional properties, and the content of JSON text. */
const partReasons: FurtherReasons = (narrow, wide, place, words, within) =>
  PARTS.flatMap(([name, mark]) => {
    const [part, whole] = [narrow[name], wide[name]] as (Schema | false | undefined)[];
    if (whole === undefined || part === false || allowsAnything(whole)) return [];
    if (!part || !whole) return say(`${place}${mark}`, words.outside('anything'));
    return narrowings(part, whole, `${place}${mark}`, words, within);
  });

const allowsAnything = (schema: Schema | false) => schema !== false && Object.keys(schema).length === 0;

const PARTS = [
  ['items', '[]'],
  ['additionalProperties', '.*'],
  ['contentSchema', ' (text)'],
] as const;
