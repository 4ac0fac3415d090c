import superjson from 'superjson';
import { JsonText } from '../runtime/jsonText.ts';

/**
 * Serializes a result for superjson. Plain JSON with dates is written here, which is much faster; anything else is left to
 * superjson.
 */
export function writeSuperjson(result: unknown): string {
  if (!isRecord(result)) return JSON.stringify(superjson.serialize(result));
  try {
    const annotations = annotateFields(Object.entries(result));
    const meta = annotations === '' ? '' : `,"meta":{"values":{${annotations}},"v":1}`;
    return `{"json":${writeFields(result)}${meta}}`;
  } catch (error) {
    if (error !== UNUSUAL) throw error;
    return JSON.stringify(superjson.serialize(result));
  }
}

/** Thrown for values other than plain JSON and dates. */
const UNUSUAL = Symbol('unusual');

function writeFields(result: Record<string, unknown>): string {
  const fields = Object.entries(result).map(
    ([name, value]) => `${JSON.stringify(name)}:${value instanceof JsonText ? value.text : JSON.stringify(value)}`,
  );
  return `{${fields.join()}}`;
}

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
  if (value instanceof JsonText) return value.writeAnnotation();
  if (!Array.isArray(value) && !isRecord(value)) throw UNUSUAL;

  const annotations = annotateFields(Array.isArray(value) ? [...value.entries()] : Object.entries(value));
  return annotations && `{${annotations}}`;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
