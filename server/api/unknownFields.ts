import { z } from 'zod';
import { nearestName } from '../runtime/nearestName.ts';

/** An error of a field, as Zod reports it. */
export type Issue = z.core.$ZodIssue;

/** How many names may still be looked up for one call: comparing thousands would block the event loop. */
export type Suggestions = { left: number };
export const MOST_SUGGESTIONS = 50;

/** Finds the fields of an input that its schema does not have, also in objects and lists inside of it. */
export function unknownFieldsOf(schema: z.ZodType): (input: unknown, suggestions: Suggestions) => Issue[] {
  let known: Known | undefined;
  return (input, suggestions) => {
    known ??= knownIn(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Schema) ?? ANYTHING;
    return [...unknownIn(known, input, [], suggestions)];
  };
}

type Schema = { properties?: Record<string, Schema>; items?: Schema; anyOf?: Schema[] };

/** The fields of an object, with what is known of each; or of the elements of a list. */
type Known = { fields: Map<string, Known | undefined> } | { element: Known | undefined };
const ANYTHING: Known = { element: undefined };

function knownIn({ properties, items, anyOf = [] }: Schema): Known | undefined {
  if (properties) return { fields: new Map(Object.entries(properties).map(([name, field]) => [name, knownIn(field)])) };
  const element = items && knownIn(items);
  return element ? { element } : anyOf.map(knownIn).find((known) => known !== undefined);
}

function* unknownIn(known: Known, value: unknown, path: PropertyKey[], suggestions: Suggestions): Generator<Issue> {
  if (typeof value !== 'object' || value === null) return;
  if ('element' in known) {
    const { element } = known;
    if (!element || !Array.isArray(value)) return;
    for (const [at, one] of value.entries()) yield* unknownIn(element, one, [...path, at], suggestions);
    return;
  }
  if (Array.isArray(value)) return;
  for (const [name, field] of Object.entries(value)) {
    if (field === undefined) continue;
    const inner = known.fields.get(name);
    if (inner) yield* unknownIn(inner, field, [...path, name], suggestions);
    else if (!known.fields.has(name))
      yield { code: 'custom', path: [...path, cut(name)], message: messageFor(name, known.fields, suggestions) };
  }
}

function messageFor(name: string, fields: Map<string, unknown>, suggestions: Suggestions): string {
  const isLookedUp = suggestions.left-- > 0;
  const meant = isLookedUp ? nearestName(name, fields.keys(), Math.max(1, Math.floor(name.length / 3))) : undefined;
  return meant === undefined ? 'is not a known field' : `is not a known field: did you mean ${meant}?`;
}

/** Callers choose the names; a response repeats only their beginnings. */
const LONGEST_NAME = 100;
const cut = (name: string) => (name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME).toWellFormed()}…` : name);
