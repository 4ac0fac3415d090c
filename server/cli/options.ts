import { parseArgs } from 'node:util';
import { z } from 'zod';
import { REQUIRED_UNLESS } from '../../shared/fields.ts';
import { invalid } from '../errors.ts';
import type { Schema } from '../openapi/example.ts';
import { askSecret, type Terminal } from './terminal.ts';

/** A field of an input, as an option: `default_project_id` is `--default-project-id`. */
export type Option = {
  field: string;
  flag: string;
  kind: 'text' | 'number' | 'yes-no' | 'list' | 'positions' | 'secret';
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
    explains: 'The service to act on, as the user who signed in with login; DECKHAND_URL if not given.',
  },
  all: { type: 'boolean', words: '--all', explains: 'Print all pages.' },
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
  yes?: boolean;
  recovery?: boolean;
};

/** A wrong use of the command line. */
export const misuse = (message: string) => Object.assign(new Error(message), { code: 'ERR_PARSE_ARGS_MISUSE' });

export function kebab(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

export function optionsOf(input: z.ZodType | undefined): Option[] {
  const { properties, required = [] } = schemaOf(input);
  return Object.entries(properties ?? {}).map(([field, property]) => {
    const schema = withoutNull(property);
    return {
      field,
      flag: kebab(field).replaceAll('_', '-'),
      kind: kindOf(schema),
      isRequired: required.includes(field) || REQUIRED_UNLESS in property,
      exceptWith: property[REQUIRED_UNLESS] as Option['exceptWith'],
      description: String(property.description ?? ''),
      choices: schema.enum?.map(String),
      isNew: Number(schema.minLength) > 1,
    };
  });
}

/** Whether it is the input of a list, which is answered in pages. */
export const hasPages = (input: z.ZodType | undefined) => 'cursor' in ((input as z.ZodObject | undefined)?.shape ?? {});

function schemaOf(input: z.ZodType | undefined): Schema {
  return input ? (z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' }) as Schema) : {};
}

function kindOf({ type, format, items }: Schema): Option['kind'] {
  if (format === 'password') return 'secret';
  if ((items as Schema | undefined)?.properties) return 'positions';
  return KINDS[[type].flat().find((name) => name !== 'null') ?? ''] ?? 'text';
}

const KINDS: Record<string, Option['kind']> = { integer: 'number', number: 'number', boolean: 'yes-no', array: 'list' };

function withoutNull(schema: Schema): Schema {
  const other = schema.anyOf?.find(({ type }) => type !== 'null');
  return other ? { ...other, ...schema } : schema;
}

type Words = { input: z.ZodType | undefined; common: readonly Common[] };

/** Parses words into an input and the common options; asks for secrets. */
export async function parseOptions({ input, common }: Words, words: string[], terminal: Terminal) {
  const options = optionsOf(input);
  const given = parse(options, common, words);
  const chosen = chosenOf(given);

  const fields: Record<string, unknown> = {};
  const isNeeded = ({ isRequired, exceptWith }: Option) =>
    isRequired && !(exceptWith && Object.entries(exceptWith).every(([flag, value]) => given[flag] === value));
  const missing = options.find((option) => isNeeded(option) && option.kind !== 'secret' && !(option.flag in given));
  if (missing) throw invalid({ [`--${missing.flag}`]: 'is missing' });
  for (const option of options) {
    const { field, flag, kind, isNew = false } = option;
    const value = given[flag];
    if (kind === 'secret') {
      if (isNeeded(option) || value === true) fields[field] = await askSecret(terminal, field, isNew);
    } else if (value !== undefined) fields[field] = typedValue(kind, flag, value);
  }
  return { input: input && fields, chosen };
}

type Value = string | boolean | (string | boolean)[];

function parse(options: Option[], common: readonly Common[], words: string[]): Record<string, Value | undefined> {
  const type = (kind: Option['kind']) => (kind === 'yes-no' || kind === 'secret' ? 'boolean' : 'string');
  const known = [
    ...common.map((name) => [name, { type: COMMON[name].type }] as const),
    ...options.map(({ flag, kind }) => [flag, { type: type(kind) }] as const),
  ];
  return parseArgs({ args: words, allowNegative: true, options: Object.fromEntries(known) }).values;
}

function chosenOf({ project, ...given }: Record<string, Value | undefined>): Chosen {
  if (project === undefined) return given as Chosen;
  if (!/^[1-9]\d{0,8}$/.test(String(project))) throw misuse('--project must be the id of a project.');
  return { ...given, project: Number(project) };
}

/** Text that is not a number stays text, so that the input's own check reports it; an empty number becomes null. */
function typedValue(kind: Option['kind'], flag: string, value: Value): unknown {
  const text = String(value);
  if (kind === 'number') return text === '' ? null : numberOr(text);
  if (kind === 'list') return text === '' ? [] : text.split(',');
  if (kind === 'positions') return text === '' ? [] : text.split(',').map((pair) => placement(flag, pair));
  return value;
}

const numberOr = (text: string) => (/^-?\d+$/.test(text) ? Number(text) : text);

function placement(flag: string, pair: string) {
  const [id, position, ...others] = pair.trim().split(':');
  if (!id || !position || others.length > 0) {
    throw invalid({ [`--${flag}`]: 'must be ids with their positions, such as 7:2,8:1' });
  }
  return { id: numberOr(id), position: numberOr(position) };
}
