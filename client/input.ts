import { DeckhandError } from './errors.ts';

/** An input as JSON in the form of superjson, and its share of the limits of a request. */
export type WrittenInput = { text: string; bytes: number; fields: number };

/**
 * Writes an input as plain JSON; a `Date` becomes text. Throws for a value that would be sent as another one: an invalid `Date`
 * is null in JSON, and null clears a field.
 */
export function writeInput(input: unknown): WrittenInput {
  let fields = 0;
  const places = new Map<unknown, string>();

  function check(this: Record<string, unknown>, key: string, value: unknown): unknown {
    fields++;
    const parent = places.get(this);
    const place = parent ? `${parent}.${key}` : key;
    const changed = changedByJson(this[key], value);
    if (changed) throw new DeckhandError(`${place || 'The input'} can't be sent: it is ${changed}.`);
    if (typeof value === 'object') places.set(value, place);
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

/** What a value is that JSON has no place for; `value` is what its `toJSON` made of it. */
function changedByJson(original: unknown, value: unknown): string | undefined {
  const [, type = ''] = /^\[object (.+)\]$/.exec(Object.prototype.toString.call(original)) ?? [];
  if (value === null && original !== null) return type === 'Date' ? 'an invalid Date' : 'null as JSON';
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  // As JSON these would be empty objects.
  return EMPTY_IN_JSON.has(type) && value === original ? `a ${type}` : undefined;
}

const EMPTY_IN_JSON = new Set(['Map', 'Set', 'Promise', 'RegExp']);
