import { LARGEST_INTEGER } from '../../shared/limits.ts';
import type { Schema } from './schema.ts';

/** The limits and the default of a field as a sentence, without those that its description already names. */
export function limitsInWords(field: Schema, description: string): string[] {
  const { items, ...limited } = withoutNull(field);
  const ofElements = items && limitsOf(items);
  const facts = [
    limitsOf(limited),
    ofElements && { ...ofElements, words: `each ${ofElements.words}` },
    field.default === undefined ? undefined : { words: `${shown(field.default)} by default`, value: field.default },
  ];
  const sentence = facts.flatMap((fact) => (fact && !isNamed(description, fact.value) ? [fact.words] : [])).join(', ');
  return sentence === '' ? [] : [`${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`];
}

/** A fact in words, and the value that a description may already name. */
type Fact = { words: string; value: unknown };

/** The range of integers in the database is no limit to mention: ids and positions have it. */
function limitsOf(schema: Schema): Fact | undefined {
  const { minimum = -Infinity, maximum = Infinity, minLength = 0, maxLength, minItems = 0, maxItems } = schema;
  if (maxLength !== undefined) return { words: `${rangeOf(minLength, maxLength)} characters`, value: maxLength };
  if (maxItems !== undefined) return { words: `${rangeOf(minItems, maxItems)} elements`, value: maxItems };
  if (maximum >= LARGEST_INTEGER) return undefined;
  const words = minimum === -Infinity ? `at most ${inDigits(maximum)}` : `${inDigits(minimum)} to ${inDigits(maximum)}`;
  return { words, value: maximum };
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
