import superjson from 'superjson';
import { type DateFields, JsonText, writeFields, writeFieldsInPieces } from '../runtime/jsonText.ts';

/**
 * Serializes a result for superjson. Plain JSON with dates is written here, which is much faster; anything else is left to
 * superjson.
 */
export function writeSuperjson(result: unknown): string {
  if (!isRecord(result)) return JSON.stringify(superjson.serialize(result));
  try {
    const meta = metaOf(result);
    return `{"json":${writeFields(result)}${meta}}`;
  } catch (error) {
    if (error !== UNUSUAL) throw error;
    return JSON.stringify(superjson.serialize(result));
  }
}

/** The same of a result with a large field, in pieces. */
export function* writeSuperjsonInPieces(result: object): Generator<string> {
  yield '{"json":';
  yield* writeFieldsInPieces(result);
  yield `${metaOf(result)}}`;
}

function metaOf(result: object): string {
  const annotations = annotateFields(Object.entries(result));
  return annotations && `,"meta":{"values":{${annotations}},"v":1}`;
}

/** Thrown for values other than plain JSON and dates. */
const UNUSUAL = Symbol('unusual');

/** The superjson annotations of fields; empty for plain JSON. */
function annotateFields(fields: [string | number, unknown][]): string {
  let annotations = '';
  for (const [name, value] of fields) {
    const annotation = annotationOf(value);
    if (annotation === '') continue;
    // Superjson would split or escape such names.
    if (typeof name === 'string' && /[.\\"]/.test(name)) throw UNUSUAL;
    annotations += `${annotations && ','}"${name}":${annotation}`;
  }
  return annotations;
}

function annotationOf(value: unknown): string {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return '';
    case 'number':
      if (!Number.isFinite(value) || Object.is(value, -0)) throw UNUSUAL;
      return '';
    case 'object':
      break;
    default:
      throw UNUSUAL;
  }
  if (value === null) return '';
  if (value instanceof Date) return '["Date"]';
  if (value instanceof JsonText) return annotationOfDates(value.dates);
  if (!Array.isArray(value) && !isRecord(value)) throw UNUSUAL;

  const annotations = annotateFields(Array.isArray(value) ? [...value.entries()] : Object.entries(value));
  return annotations && `{${annotations}}`;
}

/** Thousands of cards share few annotations. */
const annotated = new WeakMap<DateFields, string>();

function annotationOfDates(dates: DateFields): string {
  const known = annotated.get(dates);
  if (known !== undefined) return known;

  const { own, lists = {}, elements } = dates;
  if (elements) return annotationOfElements(elements);
  let annotations = own.map((name) => `"${name}":["Date"]`).join();
  for (const [name, ofList] of Object.entries(lists)) {
    const listed = annotationOfElements(ofList);
    if (listed !== '') annotations += `,"${name}":${listed}`;
  }
  const annotation = `{${annotations}}`;
  if (!dates.lists) annotated.set(dates, annotation);
  return annotation;
}

function annotationOfElements(elements: readonly DateFields[]): string {
  let listed = '';
  for (const [at, element] of elements.entries()) listed += `${listed && ','}"${at}":${annotationOfDates(element)}`;
  return listed && `{${listed}}`;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
