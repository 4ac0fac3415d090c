import { DeckhandError } from './errors.ts';

/** An input as superjson text, with its size for the limits of a request. */
export type WrittenInput = { text: string; bytes: number; fields: number };

/** Serializes an input; a `Date` becomes text. Throws for values that JSON changes: an invalid `Date` is null, which clears a field. */
export function writeInput(input: unknown): WrittenInput {
  let fields = 0;
  const paths = new Map<unknown, string>();

  function check(this: Record<string, unknown>, key: string, value: unknown): unknown {
    fields++;
    const parent = paths.get(this);
    const path = parent ? `${parent}.${key}` : key;
    const changed = changedByJson(this[key], value);
    if (changed) throw new DeckhandError(`${path || 'The input'} can't be sent: it is ${changed}.`);
    if (typeof value === 'object') paths.set(value, path);
    return value;
  }

  const json = toJson(input, check);
  const text = json === undefined ? '{}' : `{"json":${json}}`;
  return { text, bytes: new TextEncoder().encode(text).length, fields };
}

function toJson(input: unknown, check: (this: Record<string, unknown>, key: string, value: unknown) => unknown) {
  try {
    return JSON.stringify(input, check) as string | undefined;
  } catch (error) {
    if (error instanceof DeckhandError) throw error;
    throw new DeckhandError(`The input can't be sent as JSON: ${(error as Error).message}`, { cause: error });
  }
}

/** Describes a value that JSON can't represent; `value` is the result of its `toJSON`. */
function changedByJson(original: unknown, value: unknown): string | undefined {
  const [, type = ''] = /^\[object (.+)\]$/.exec(Object.prototype.toString.call(original)) ?? [];
  if (value === null && original !== null) return type === 'Date' ? 'an invalid Date' : 'null as JSON';
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  return EMPTY_IN_JSON.has(type) && value === original ? `a ${type}` : undefined;
}

/** Types that JSON writes as `{}`. */
const EMPTY_IN_JSON = new Set(['Map', 'Set', 'Promise', 'RegExp']);
