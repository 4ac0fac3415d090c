import { z } from 'zod';
import { REQUIRED_UNLESS } from '../../shared/fields.ts';
import type { Schema } from '../api/openapi/example.ts';
import { COMMON, type Common, kebab, type Option } from './options.ts';

/** Fields with the name of a common option: `--url` is the service. */
const RENAMED: Record<string, string> = { url: 'receiver-url' };

/** In the metadata of a field: the letter of its option. */
export const SHORT = 'x-short-option';

type WithOptions = { input?: z.ZodType | undefined; common?: readonly Common[] };

/** The options of a command: the fields of its input, and the common ones; `--json` is the last. */
export function optionsOf({ input, common = [] }: WithOptions): Option[] {
  const { properties = {}, required = [] } = schemaOfOptions(input);
  const ofFields = Object.entries(properties).map(([field, property]): Option => {
    const schema = withoutNull(property);
    return {
      field,
      flag: RENAMED[field] ?? kebab(field).replaceAll('_', '-'),
      short: property[SHORT] as string | undefined,
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

export function schemaOfOptions(input: z.ZodType | undefined): Schema {
  return input ? (z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' }) as Schema) : {};
}

function kindOf({ type, format, items, properties }: Schema): Option['kind'] {
  if (format === 'password') return 'secret';
  if (properties) return 'object';
  if (items?.properties) return 'position' in items.properties ? 'positions' : 'rows';
  return KINDS[[type].flat().find((name) => name !== 'null') ?? ''] ?? 'text';
}

const KINDS: Record<string, Option['kind']> = { integer: 'number', number: 'number', boolean: 'yes-no', array: 'list' };

function withoutNull(schema: Schema): Schema {
  const other = schema.anyOf?.find(({ type }) => type !== 'null');
  return other ? { ...other, ...schema } : schema;
}
