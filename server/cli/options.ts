import { parseArgs } from 'node:util';
import { z } from 'zod';
import { invalid } from '../errors.ts';
import type { Schema } from '../openapi/example.ts';
import { kebab } from './commands.ts';
import { askSecret } from './prompt.ts';

/** A field of an input, as an option: `default_project_id` is `--default-project-id`. */
export type Option = {
  field: string;
  flag: string;
  kind: 'text' | 'number' | 'yes-no' | 'list' | 'secret';
  isRequired: boolean;
  description: string;
  choices?: string[];
};

export function optionsOf(input: z.ZodType | undefined): Option[] {
  if (!input) return [];
  const { properties = {}, required = [] } = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' }) as Schema;
  return Object.entries(properties).map(([field, property]) => {
    const { type, format, enum: choices } = withoutNull(property);
    return {
      field,
      flag: kebab(field).replaceAll('_', '-'),
      kind: format === 'password' ? 'secret' : (KINDS[[type].flat().find((name) => name !== 'null') ?? ''] ?? 'text'),
      isRequired: required.includes(field),
      description: String(property.description ?? ''),
      choices: choices?.map(String),
    };
  });
}

const KINDS: Record<string, Option['kind']> = { integer: 'number', number: 'number', boolean: 'yes-no', array: 'list' };

function withoutNull(schema: Schema): Schema {
  const other = schema.anyOf?.find(({ type }) => type !== 'null');
  return other ? { ...other, ...schema } : schema;
}

/** Parses options into an input. Secrets are prompted for, since other users can see command lines. */
export async function parseOptions(input: z.ZodType | undefined, words: string[]): Promise<unknown> {
  const options = optionsOf(input);
  const given = parse(options, words);

  const fields: Record<string, unknown> = {};
  for (const { field, flag, kind, isRequired } of options) {
    const value = given[flag];
    if (kind === 'secret') {
      if (isRequired || value === true) fields[field] = await askSecret(field);
    } else if (value !== undefined) fields[field] = typedValue(kind, value);
    else if (isRequired) throw invalid({ [`--${flag}`]: 'is missing' });
  }
  return input && fields;
}

function parse(options: Option[], words: string[]) {
  const type = (kind: Option['kind']) => (kind === 'yes-no' || kind === 'secret' ? 'boolean' : 'string');
  const known = options.map(({ flag, kind }) => [flag, { type: type(kind) }] as const);
  return parseArgs({ args: words, allowNegative: true, options: Object.fromEntries(known) }).values;
}

/** Text that is not a number stays text, so that the input's own check reports it; an empty number becomes null. */
function typedValue(kind: Option['kind'], value: string | boolean | (string | boolean)[]): unknown {
  const text = String(value);
  if (kind === 'number') return text === '' ? null : /^-?\d+$/.test(text) ? Number(text) : text;
  if (kind === 'list') return text === '' ? [] : text.split(',');
  return value;
}
