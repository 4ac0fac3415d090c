import { z } from 'zod';
import { REQUIRED_UNLESS } from '../../shared/fields.ts';
import type { Schema } from '../api/openapi/example.ts';

export type Option = {
  flag: string;
  /** The field of the input: `default_project_id` is `--default-project-id`. Undefined for common options. */
  field?: string;
  kind: 'text' | 'number' | 'yes-no' | 'list' | 'positions' | 'rows' | 'secret' | 'switch';
  description: string;
  /** What stands for its value in the help; that of its kind if undefined. */
  value?: string;
  choices?: string[] | undefined;
  isRequired?: boolean;
  /** The other option with which it is not required. */
  exceptWith?: Record<string, unknown> | undefined;
  /** For secrets: whether it is a new one. */
  isNew?: boolean;
};

/** Options of many commands. */
export const COMMON = {
  project: { kind: 'number', description: 'Act in this project, instead of the default one.' },
  as: { kind: 'text', value: 'EMAIL', description: 'On the database: act as this user.' },
  url: {
    kind: 'text',
    value: 'URL',
    description:
      'The service to act on, as the user who signed in with login, or with the API key in DECKHAND_KEY; DECKHAND_URL if not given.',
  },
  all: { kind: 'switch', description: 'Print all pages.' },
  columns: { kind: 'list', description: 'Show these columns only.' },
  yes: { kind: 'switch', description: 'Do not ask before it runs.' },
  recovery: { kind: 'switch', description: 'Use a recovery code as the second factor.' },
  json: { kind: 'switch', description: 'Print the result as JSON.' },
} as const satisfies Record<string, Omit<Option, 'flag'>>;
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

type WithOptions = { input?: z.ZodType | undefined; common?: readonly Common[] };

/** The options of a command: the fields of its input, and the common ones; `--json` is the last. */
export function optionsOf({ input, common = [] }: WithOptions): Option[] {
  const { properties = {}, required = [] } = schemaOfOptions(input);
  const ofFields = Object.entries(properties).map(([field, property]): Option => {
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
  return [...ofFields, ...[...common, 'json' as const].map((flag) => ({ flag, ...COMMON[flag] }))];
}

/** Whether an option of this kind has no value behind it. */
export const isAlone = (kind: Option['kind']) => kind === 'yes-no' || kind === 'secret' || kind === 'switch';

/** Whether it is the input of a list with pages. */
export const hasPages = (input: z.ZodType | undefined) => 'cursor' in ((input as z.ZodObject | undefined)?.shape ?? {});

export function schemaOfOptions(input: z.ZodType | undefined): Schema {
  return input ? (z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' }) as Schema) : {};
}

function kindOf({ type, format, items }: Schema): Option['kind'] {
  if (format === 'password') return 'secret';
  if (items?.properties) return 'position' in items.properties ? 'positions' : 'rows';
  return KINDS[[type].flat().find((name) => name !== 'null') ?? ''] ?? 'text';
}

const KINDS: Record<string, Option['kind']> = { integer: 'number', number: 'number', boolean: 'yes-no', array: 'list' };

function withoutNull(schema: Schema): Schema {
  const other = schema.anyOf?.find(({ type }) => type !== 'null');
  return other ? { ...other, ...schema } : schema;
}
