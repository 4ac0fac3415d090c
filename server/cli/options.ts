import { z } from 'zod';
import { REQUIRED_UNLESS } from '../../shared/fields.ts';
import type { Schema } from '../api/openapi/example.ts';

/** A field of an input, as an option: `default_project_id` is `--default-project-id`. */
export type Option = {
  field: string;
  flag: string;
  kind: 'text' | 'number' | 'yes-no' | 'list' | 'positions' | 'rows' | 'secret';
  isRequired: boolean;
  /** The other option with which it is not required. */
  exceptWith?: Record<string, unknown> | undefined;
  description: string;
  choices?: string[] | undefined;
  /** For secrets: whether it is a new one. */
  isNew?: boolean;
};

/** Options of many commands. */
export const COMMON = {
  project: { type: 'string', words: '--project N', explains: 'Act in this project, instead of the default one.' },
  as: { type: 'string', words: '--as EMAIL', explains: 'On the database: act as this user.' },
  url: {
    type: 'string',
    words: '--url URL',
    explains:
      'The service to act on, as the user who signed in with login, or with the API key in DECKHAND_KEY; DECKHAND_URL if not given.',
  },
  all: { type: 'boolean', words: '--all', explains: 'Print all pages.' },
  columns: { type: 'string', words: '--columns A,B', explains: 'Show these columns only.' },
  yes: { type: 'boolean', words: '--yes', explains: 'Do not ask before it runs.' },
  recovery: { type: 'boolean', words: '--recovery', explains: 'Use a recovery code as the second factor.' },
  json: { type: 'boolean', words: '--json', explains: 'Print the result as JSON.' },
} as const;
export type Common = keyof typeof COMMON;

/** The common options that were given. */
export type Chosen = {
  project?: number;
  as?: string;
  url?: string;
  all?: boolean;
  columns?: string[];
  yes?: boolean;
  recovery?: boolean;
};

export function kebab(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Fields with the name of a common option: `--url` is the service. */
const RENAMED: Record<string, string> = { url: 'receiver-url' };

export function optionsOf(input: z.ZodType | undefined): Option[] {
  const { properties, required = [] } = schemaOf(input);
  return Object.entries(properties ?? {}).map(([field, property]) => {
    const schema = withoutNull(property);
    return {
      field,
      flag: RENAMED[field] ?? kebab(field).replaceAll('_', '-'),
      kind: kindOf(schema),
      isRequired: required.includes(field) || REQUIRED_UNLESS in property,
      exceptWith: property[REQUIRED_UNLESS] as Option['exceptWith'],
      description: String(property.description ?? ''),
      choices: schema.enum?.map(String),
      isNew: Number(schema.minLength) > 1,
    };
  });
}

/** Whether it is the input of a list with pages. */
export const hasPages = (input: z.ZodType | undefined) => 'cursor' in ((input as z.ZodObject | undefined)?.shape ?? {});

export function schemaOf(input: z.ZodType | undefined): Schema {
  return input ? (z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' }) as Schema) : {};
}

function kindOf({ type, format, items }: Schema): Option['kind'] {
  if (format === 'password') return 'secret';
  const { properties } = (items ?? {}) as Schema;
  if (properties) return 'position' in properties ? 'positions' : 'rows';
  return KINDS[[type].flat().find((name) => name !== 'null') ?? ''] ?? 'text';
}

const KINDS: Record<string, Option['kind']> = { integer: 'number', number: 'number', boolean: 'yes-no', array: 'list' };

function withoutNull(schema: Schema): Schema {
  const other = schema.anyOf?.find(({ type }) => type !== 'null');
  return other ? { ...other, ...schema } : schema;
}
