import { isDeepStrictEqual } from 'node:util';
import type { Schema } from '../api/openapi/example.ts';

export type Resolve = (schema: Schema) => Schema;

/** A schema, how its references are resolved, and those that led to it. */
type Located = { schema: Schema; resolve: Resolve; through?: readonly string[] };

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

/** Why a value of the narrow schema may be invalid in the wide one: a line for each reason. */
export function narrowings(narrow: Located, wide: Located, place: string, words: NarrowingWords): string[] {
  // A schema that refers to itself is compared once.
  if (isWithinItself(narrow) && isWithinItself(wide)) return [];
  const allowed = alternatives(wide);
  const marks = markReasons(marked(narrow), marked(wide), place, words);
  const values = withoutContained(alternatives(narrow)).flatMap((kind) => {
    const fitting = allowed.filter(({ schema }) => isOfType(kind.schema, schema));
    if (fitting.length === 0) return say(place, words.outside(`${kind.schema.type}`));
    const reasons = fitting.map((candidate) => reasonsAgainst(kind, candidate, place, words));
    return reasons.toSorted((one, other) => one.length - other.length)[0]!;
  });
  return [...marks, ...values];
}

/** With what stands beside a reference. */
const marked = ({ schema, resolve }: Located): Schema => ({ ...resolve(schema), ...schema });

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

const isWithinItself = ({ schema: { $ref }, through = [] }: Located) => $ref !== undefined && through.includes($ref);

/** The alternatives of a schema, each of one type. */
function alternatives({ schema, resolve, through = [] }: Located): Located[] {
  const resolved = resolve(schema);
  const further = { resolve, through: schema.$ref === undefined ? through : [...through, schema.$ref] };
  const parts = resolved.anyOf ?? (resolved.oneOf as Schema[] | undefined);
  if (parts) return parts.flatMap((part) => alternatives({ schema: part, ...further }));
  if (!Array.isArray(resolved.type)) return [{ schema: resolved, ...further }];
  return resolved.type.map((type) => ({ schema: { ...resolved, type }, ...further }));
}

/** Choices beside any text say nothing more: `anyOf` of both documents an open choice. */
const withoutContained = (parts: Located[]) =>
  parts.filter(
    ({ schema }) => !schema.enum || !parts.some((other) => isDeepStrictEqual(other.schema, { type: schema.type })),
  );

const isOfType = (narrow: Schema, wide: Schema) =>
  wide.type === undefined || narrow.type === wide.type || (narrow.type === 'integer' && wide.type === 'number');

function reasonsAgainst(narrow: Located, wide: Located, place: string, words: NarrowingWords): string[] {
  return [
    ...valueReasons(narrow.schema, wide.schema, place, words),
    ...limitReasons(narrow.schema, wide.schema, place, words),
    ...fieldReasons(narrow, wide, place, words),
    ...partReasons(narrow, wide, place, words),
  ];
}

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

function fieldReasons(narrow: Located, wide: Located, place: string, words: NarrowingWords): string[] {
  const { properties: fields = {}, required: certain = [] } = narrow.schema;
  const { properties: known = {}, required = [] } = wide.schema;
  const lacking = Object.keys(known).flatMap((field) => {
    const isUncertain = required.includes(field) && !certain.includes(field);
    const absent = field in fields ? undefined : words.absent;
    return say(`${place}.${field}`, absent ?? (isUncertain ? words.uncertain : undefined));
  });
  const present = Object.entries(fields).flatMap(([field, schema]) => {
    const counterpart = known[field];
    if (!counterpart) return say(`${place}.${field}`, words.unknown);
    return narrowings({ ...narrow, schema }, { ...wide, schema: counterpart }, `${place}.${field}`, words);
  });
  return [...lacking, ...present];
}

/** Compares array elements, additional properties, and the content of JSON text. */
function partReasons(narrow: Located, wide: Located, place: string, words: NarrowingWords): string[] {
  return PARTS.flatMap(([name, mark]) => {
    const [part, whole] = [narrow.schema[name], wide.schema[name]] as (Schema | false | undefined)[];
    if (whole === undefined || part === false) return [];
    if (!part || !whole) return say(`${place}${mark}`, words.outside('anything'));
    return narrowings({ ...narrow, schema: part }, { ...wide, schema: whole }, `${place}${mark}`, words);
  });
}
const PARTS = [
  ['items', '[]'],
  ['additionalProperties', '.*'],
  ['contentSchema', ' (text)'],
] as const;
