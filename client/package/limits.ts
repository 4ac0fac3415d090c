import { LARGEST_INTEGER } from '../../shared/limits.ts';
import type { Schema } from './schema.ts';

/** The limits and the default of a field as sentences, without those that its description already names. */
export function limitsInWords(field: Schema, description = ''): string[] {
  const { items, ...limited } = withoutNull(field);
  const range = limitsOf(limited);
  const ofElements = items && limitsOf(items);
  const byDefault = field.default === undefined ? undefined : `${shown(field.default)} by default`;

  const facts = [range?.words, ofElements && `each ${ofElements.words}`, byDefault];
  const isNew = [range?.upper, ofElements?.upper, field.default].map((value) => !isNamed(description, value));
  const sentence = facts.filter((fact, index) => fact && isNew[index]).join(', ');
  return sentence === '' ? [] : [`${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`];
}

type Limits = { words: string; upper: number };

/** The range of integers in the database is no limit to mention: ids and positions have it. */
function limitsOf(schema: Schema): Limits | undefined {
  const { minimum = -Infinity, maximum = Infinity, minLength = 0, maxLength, minItems = 0, maxItems } = schema;
  if (maxLength !== undefined) return { words: `${rangeOf(minLength, maxLength)} characters`, upper: maxLength };
  if (maxItems !== undefined) return { words: `${rangeOf(minItems, maxItems)} elements`, upper: maxItems };
  if (maximum >= LARGEST_INTEGER) return undefined;
  const words = minimum === -Infinity ? `at most ${inDigits(maximum)}` : `${inDigits(minimum)} to ${inDigits(maximum)}`;
  return { words, upper: maximum };
}

const rangeOf = (least: number, most: number) =>
  least === 0 ? `at most ${inDigits(most)}` : `${inDigits(least)} to ${inDigits(most)}`;

const inDigits = (value: number) => value.toLocaleString('en-US');

function shown(value: unknown): string {
  if (typeof value === 'number') return inDigits(value);
  return `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;
}

const isNamed = (description: string, value: unknown) =>
  typeof value === 'number' && new RegExp(`\\b${value}\\b`).test(description);

function withoutNull(schema: Schema): Schema {
  const others = schema.anyOf?.filter(({ type }) => type !== 'null') ?? [];
  return others.length === 1 ? { ...others[0], ...schema } : schema;
}
