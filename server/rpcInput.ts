import superjson from 'superjson';
import { badRequest } from './errors.ts';

/**
 * How RPC reads inputs and writes results. Results are superjson, so that dates arrive as `Date`. Inputs are plain JSON with
 * two annotations, `undefined` and `Date`: superjson's own reader builds whatever type the caller names, for example an
 * array of 5 GB from 98 bytes.
 */
export const transformer = {
  input: { serialize: (input: unknown) => superjson.serialize(input), deserialize: readPlainInput },
  output: superjson,
};

/** Refuses the one call of a batch whose input could not be read. */
export function mustBeReadable(input: unknown): void {
  if (typeof input === 'object' && input !== null && UNREADABLE in input) throw badRequest(String(input[UNREADABLE]));
}

/** The key under which an input that can't be read says why; JSON has no symbols, so no caller can send it. */
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

/** Walks annotations and value side by side: the cost is linear in what was sent. */
function annotate(parent: Record<string, unknown>, key: string, annotation: unknown): void {
  if (Array.isArray(annotation)) {
    parent[key] = revive(parent[key], annotation);
    return;
  }
  for (const [path, inner] of Object.entries(objectOf(annotation))) {
    const segments = segmentsOf(path);
    const last = segments.pop()!;
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

/** `a.b` is a field within a field; no model has names with a dot or backslash, so none is accepted. */
function segmentsOf(path: string): string[] {
  if (path.length > LONGEST_PATH || path.includes('\\')) throw unknownField();
  return path.split('.');
}
const LONGEST_PATH = 200;

function objectOf(value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw unreadable('it must be an object with "json" and, if needed, "meta"');
}

/** Own fields alone; an array's `length` is none. */
const hasField = (holder: object, key: string) => Object.prototype.propertyIsEnumerable.call(holder, key);

const unknownField = () => unreadable('an annotation names a field that is not there');

const unreadable = (reason: string) => new Error(`The input could not be read: ${reason}. Send plain JSON.`);

const quoted = (value: unknown) => JSON.stringify(value)?.slice(0, 50);
