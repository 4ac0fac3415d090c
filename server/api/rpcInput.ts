import superjson from 'superjson';
import { badRequest, invalid } from '../../shared/errors.ts';
import { withValues } from '../runtime/jsonText.ts';

/**
 * Parses RPC inputs and serializes results. Results are superjson, so that dates arrive as `Date`. Inputs are plain JSON with
 * only two annotations, `undefined` and `Date`: superjson's own parser creates any type that the caller sends, for example an
 * array of 5 GB from 98 bytes.
 */
export const transformer = {
  input: { serialize: (input: unknown) => superjson.serialize(input), deserialize: readPlainInput },
  output: {
    serialize: (line: unknown) => serializeOutput(lineWithValues(line)),
    deserialize: superjson.deserialize,
  },
};

/** superjson refuses names such as `__proto__`, which an error about an unknown field repeats. Errors need no annotations. */
function serializeOutput(value: unknown) {
  try {
    return superjson.serialize(value);
  } catch {
    return { json: value };
  }
}

/** A line of a stream, which has results in arrays, with the values of JSON texts: superjson can't annotate their dates. */
const lineWithValues = (line: unknown): unknown => (Array.isArray(line) ? line.map(lineWithValues) : withValues(line));

/** Throws a 400 for a call whose input could not be parsed; other calls of its batch are not affected. */
export function mustBeReadable(input: unknown): void {
  if (typeof input === 'object' && input !== null && UNREADABLE in input)
    throw badRequest(String(input[UNREADABLE]), 'input_unreadable');
}

/** Infinite queries of TanStack Query over tRPC's client add a direction to the input of a list. */
export function withoutDirection(input: unknown): unknown {
  if (typeof input !== 'object' || input === null || !hasField(input, 'direction')) return input;
  const { direction, ...fields } = input as { direction?: unknown };
  if (direction === 'forward') return fields;
  throw invalid({
    direction: 'can only be forward: keep the pages that you have read, and send `next_cursor` for the one behind them',
  });
}

/** The key of the error message in an input that could not be parsed. A symbol, which callers can't send. */
const UNREADABLE = Symbol('unreadable');

function readPlainInput(sent: unknown): unknown {
  try {
    const { json, meta } = objectOf(sent);
    const { values, v, ...others } = objectOf(meta ?? {});
    const [other] = Object.keys(others);
    if (other !== undefined) throw unreadable(`${quoted(other)} is not accepted`);
    if (v !== undefined && v !== 1) throw unreadable(`version ${quoted(v)} is not accepted`);

    const input = { json };
    if (values !== undefined) annotate(input, 'json', values);
    return input.json;
  } catch (error) {
    return { [UNREADABLE]: (error as Error).message };
  }
}

/** Walks annotations and value together, in time linear to the input. */
function annotate(parent: Record<string, unknown>, key: string, annotation: unknown): void {
  if (Array.isArray(annotation)) {
    parent[key] = revive(parent[key], annotation);
    return;
  }
  for (const [path, inner] of Object.entries(objectOf(annotation))) {
    const segments = segmentsOf(path);
    const last = segments.pop() ?? '';
    let holder = child(parent, key);
    for (const segment of segments) holder = child(holder, segment);
    if (!hasField(holder, last)) throw unknownField();
    annotate(holder, last, inner);
  }
}

function revive(value: unknown, annotation: unknown[]): Date | undefined {
  const [type, ...others] = annotation;
  if (others.length === 0 && type === 'undefined') return undefined;
  if (others.length === 0 && type === 'Date' && typeof value === 'string' && value.length <= LONGEST_DATE) {
    return new Date(value);
  }
  throw unreadable(`the type ${quoted(type)} is not accepted`);
}
const LONGEST_DATE = 30;

function child(parent: Record<string, unknown>, key: string): Record<string, unknown> {
  const value = hasField(parent, key) ? parent[key] : undefined;
  if (typeof value !== 'object' || value === null) throw unknownField();
  return value as Record<string, unknown>;
}

/** `a.b` is a nested field. Escaped dots are refused, since no model has such names. */
function segmentsOf(path: string): string[] {
  if (path.length > LONGEST_PATH || path.includes('\\')) throw unknownField();
  return path.split('.');
}
const LONGEST_PATH = 200;

function objectOf(value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw unreadable('it must be an object with "json" and, if needed, "meta"');
}

/** Only own enumerable properties; not an array's `length`. */
const hasField = (holder: object, key: string) => Object.prototype.propertyIsEnumerable.call(holder, key);

const unknownField = () => unreadable('an annotation refers to an unknown field');

const unreadable = (reason: string) => new Error(`The input could not be read: ${reason}. Send plain JSON.`);

const quoted = (value: unknown) => JSON.stringify(value)?.slice(0, 50);
