import { z } from 'zod';
import { LARGEST_INTEGER } from '../../shared/limits.ts';
import { exampleOf, type Schema } from '../api/openapi/example.ts';
import type { Procedure } from '../api/procedures.ts';

/** Inputs for calls of any procedure, made from its schema. */

/** The fields that are given; the document's examples fill in the others. */
export type Given = Record<string, unknown>;

/** The JSON schema of a procedure's input, without the versions that it may require: over REST, that of one row is a header. */
export function inputSchemaOf({ input }: Pick<Procedure, 'input'>): Schema {
  if (!input) return { type: 'object' };
  return withoutVersions(z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' }) as Schema);
}

function withoutVersions({ properties, items, ...schema }: Schema): Schema {
  const { if_version, ...fields } = properties ?? {};
  const parts = Object.entries(fields).map(([field, part]) => [field, withoutVersions(part)]);
  return {
    ...schema,
    ...(properties && { properties: Object.fromEntries(parts) }),
    ...(items && { items: withoutVersions(items) }),
  };
}

/** An input with the given fields, and the examples of the document for all others. */
export function inputFor(procedure: Pick<Procedure, 'input'>, given: Given): Given {
  const { properties = {} } = inputSchemaOf(procedure);
  return withGiven(exampleOf({ type: 'object', properties }, {}), { ...NO_CURSOR, ...given }) as Given;
}

/** An input that is invalid in every field: none takes an object. */
export const invalidInput = (procedure: Pick<Procedure, 'input'>): Given =>
  Object.fromEntries(Object.keys(inputFor(procedure, {})).map((field) => [field, {}]));

/** An id that no row has. */
export const UNKNOWN_ID = LARGEST_INTEGER;

/**
 * An input whose required ids belong to no row, without optional fields; undefined if it has no required id. A mutation with it
 * is refused and changes nothing.
 */
export function unknownRowInput(procedure: Pick<Procedure, 'input'>): Given | undefined {
  const { properties = {}, required = [] } = inputSchemaOf(procedure);
  const unknown: Given = {};
  for (const field of required) {
    const { type, items } = properties[field]!;
    if (isId(field)) unknown[field] = type === 'string' ? String(UNKNOWN_ID) : UNKNOWN_ID;
    if (items?.properties?.id) unknown[field] = [{ id: UNKNOWN_ID, position: 1 }];
  }
  if (Object.keys(unknown).length === 0) return undefined;
  const examples = required.map((field) => [field, exampleOf(properties[field]!, {})]);
  return { ...Object.fromEntries(examples), ...unknown };
}

export const isId = (field: string) => field === 'id' || field.endsWith('_id');

/** A cursor must come from an earlier page. */
export const NO_CURSOR = { cursor: null };

/** Replaces generated values by given ones; absent and null values stay. */
export function withGiven(made: unknown, given: unknown): unknown {
  if (made === null || made === undefined) return made;
  if (Array.isArray(given)) {
    const elements = made as unknown[];
    return elements.length === 0 ? [] : given.map((part, at) => withGiven(elements[at % elements.length], part));
  }
  if (typeof given !== 'object' || given === null) return given;
  const fields = Object.entries(made).map(([field, part]) => {
    const known = (given as Given)[field];
    return [field, known === undefined ? part : withGiven(part, known)];
  });
  return Object.fromEntries(fields);
}
