import { z } from 'zod';
import { ACCESS } from '../../server/access.ts';
import { type Procedure, procedures } from '../../server/procedures.ts';

/**
 * Prints the types of `client/procedures.ts` with the descriptions of the fields, so that users of the package need neither the
 * server nor Zod. A test compares the two.
 */
export function printProcedures(): string {
  const inputs = schemaOf('input', ({ input }) => input ?? z.undefined());
  const outputs = schemaOf('output', ({ output }) => output);

  const models = Object.entries(outputs.$defs ?? {}).map(([name, model]) => `export type ${name} = ${print(model)};`);
  const parts = procedures.flatMap(({ name }) => [
    `export type ${typeName(name, 'Input')} = ${printInput(inputs, name)};`,
    `export type ${typeName(name, 'Output')} = ${print(outputs.properties![name]!)};`,
  ]);
  return [
    "import type { Mutation, Query } from './calls.ts';",
    `/** Every procedure of the service. */\nexport type Procedures = ${printRouter(procedures)};`,
    ...models,
    ...parts,
  ].join('\n\n');
}

type Schema = {
  $defs?: Record<string, Schema>;
  $ref?: string;
  /** The TypeScript type of a value that JSON Schema can't describe. */
  printedAs?: string;
  description?: string;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  items?: Schema;
  prefixItems?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema | boolean;
};

/** One schema for all procedures, so that they share their models. */
function schemaOf(io: 'input' | 'output', part: (procedure: Procedure) => z.ZodType): Schema {
  const all = z.object(Object.fromEntries(procedures.map((procedure) => [procedure.name, part(procedure)])));
  return z.toJSONSchema(all, {
    io,
    metadata: io === 'output' ? z.globalRegistry : WITHOUT_NAMES,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      const printedAs = BEYOND_JSON[zodSchema._zod.def.type];
      if (printedAs) Object.assign(jsonSchema, { printedAs });
    },
  }) as Schema;
}

/**
 * A model can differ as input and as output, so inputs print it inline. An `anyOf` in the metadata is what REST accepts; the
 * types show what RPC accepts.
 */
const WITHOUT_NAMES = Object.assign(z.registry<z.GlobalMeta>(), {
  get: (schema: z.ZodType) => {
    const { id, anyOf, ...meta } = z.globalRegistry.get(schema) ?? {};
    return meta;
  },
});

const BEYOND_JSON: Record<string, string> = { date: 'Date', void: 'void', undefined: 'void', bigint: 'bigint' };

function printRouter(members: Procedure[], depth = 0): string {
  const byName = Map.groupBy(members, ({ name }) => name.split('.')[depth]!);
  return block(
    [...byName].map(([name, [first, ...others]]) => {
      const isRouter = others.length > 0 || first!.name.split('.').length > depth + 1;
      if (isRouter) return `${name}: ${printRouter([first!, ...others], depth + 1)};`;

      const kind = first!.type === 'query' ? 'Query' : 'Mutation';
      const parts = ['Input', 'Output'].map((part) => typeName(first!.name, part)).join(', ');
      return `${comment(describe(first!))}${name}: ${kind}<${parts}>;`;
    }),
  );
}

const describe = ({ summary, access }: Procedure) => `${summary}. ${ACCESS[access].callers}`;

/** `CardsCreateInput` */
function typeName(name: string, part: string): string {
  return name.replace(/(?:^|\.)(.)/g, (_, letter: string) => letter.toUpperCase()) + part;
}

function printInput({ properties, required }: Schema, name: string): string {
  const printed = print(properties![name]!);
  return printed === 'void' || required?.includes(name) ? printed : `${printed} | undefined`;
}

function print(schema: Schema): string {
  const { $ref, printedAs, anyOf, oneOf, allOf, type } = schema;
  if ($ref) return $ref.replace('#/$defs/', '');
  if (printedAs) return printedAs;
  if (schema.enum) return union(schema.enum.map((choice) => JSON.stringify(choice)));
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (anyOf ?? oneOf) return union((anyOf ?? oneOf)!.map(print));
  if (allOf) return allOf.map((part) => `(${print(part)})`).join(' & ');
  if (Array.isArray(type)) return union(type.map((one) => print({ ...schema, type: one })));
  if (type === 'array') return printArray(schema);
  if (type === 'object') return printObject(schema);
  return type === undefined ? 'unknown' : type.replace('integer', 'number');
}

function printArray({ items, prefixItems }: Schema): string {
  return prefixItems ? `[${prefixItems.map(print).join(', ')}]` : `Array<${items ? print(items) : 'unknown'}>`;
}

function printObject({ properties = {}, required = [], additionalProperties }: Schema): string {
  const fields = Object.entries(properties).map(([name, field]) => {
    const isRequired = required.includes(name);
    const type = isRequired ? print(field) : union([print(field), 'undefined']);
    return `${comment(field.description)}${/^\w+$/.test(name) ? name : JSON.stringify(name)}${isRequired ? '' : '?'}: ${type};`;
  });
  if (typeof additionalProperties === 'object') fields.push(`[name: string]: ${print(additionalProperties)};`);
  return block(fields);
}

const union = (types: string[]) => [...new Set(types)].join(' | ');

const comment = (text: string | undefined) => (text ? `/** ${text.replaceAll('*/', '*\\/')} */\n` : '');

const block = (lines: string[]) =>
  lines.length === 0 ? 'Record<string, never>' : `{\n${lines.join('\n').replace(/^/gm, '  ')}\n}`;
