import { z } from 'zod';
import { EXAMPLES } from '../../client/testing/examples.ts';
import { FIXED_SETTINGS } from '../../client/testing/messages.ts';
import { HAS_ONE_FIELD } from '../../shared/rows.ts';
import { procedures as called, type Procedure, subscriptions } from '../api/procedures.ts';
import { COMMON_REASONS, specificReasons } from '../api/reasons.ts';
import { environmentSchema } from '../runtime/env.ts';
import { comment, commentOnCall, commentOnField } from './comments.ts';
import type { Schema } from './schema.ts';

const procedures = [...called, ...subscriptions];

/**
 * Prints the types of `client/procedures.ts` with the descriptions of the fields, so that users of the package need neither the
 * server nor Zod. A test compares the two.
 */
export function printProcedures(): string {
  const inputs = schemaWith('input', ({ input }) => input ?? z.undefined());
  const outputs = schemaWith('output', ({ output }) => output);
  const models = outputs.$defs ?? {};

  const printed = Object.entries(models).map(
    ([name, model]) => `${comment(model.description ?? '')}export type ${name} = ${print(model, models)};`,
  );
  const parts = procedures.flatMap(({ name }) => [
    printPart(name, 'Input', printInput(inputs, name)),
    printPart(name, 'Output', print(outputs.properties![name]!, models)),
  ]);
  return [
    "import type { Follow, Mutation, Query } from './calls.ts';",
    `${comment('Every procedure of the service.')}export type Procedures = ${printRouter(procedures, outputs)};`,
    `${comment('The reasons that every call can fail with.')}export type CommonReason = ${union(COMMON_REASONS.map(quoted))};`,
    printReasons(),
    ...printed,
    ...parts,
  ].join('\n\n');
}

function printReasons(): string {
  const lines = procedures.map((procedure) => {
    const { name } = procedure;
    const reasons = union(['CommonReason', ...specificReasons(procedure).map(quoted)]);
    return `${comment(`The reasons of \`${name}\`.`)}${quoted(name)}: ${reasons};`;
  });
  return `${comment('The reasons that each procedure can fail with.')}export type ProcedureReasons = ${block(lines)};`;
}

const quoted = (text: string) => JSON.stringify(text);

/** Prints the type of `client/testing/settings.ts`. */
export function printSettings(): string {
  const { properties = {}, ...schema } = environmentSchema() as Schema;
  const free = Object.entries(properties).filter(([name]) => !FIXED_SETTINGS.some((fixed) => fixed === name));
  const type = print({ ...schema, properties: Object.fromEntries(free) }, {});
  return `${comment('Settings of the service, as in docs/settings.md. Address and database are fixed.')}export type TestSettings = ${type};`;
}

/** Prints the rows of `client/testing/examples.ts`. */
export function printExamples(): string {
  const dates = /"(\d{4}-\d\d-\d\dT[\d:.]+Z)"/g;
  const rows = JSON.stringify(EXAMPLES, null, 2).replace(dates, 'new Date("$1")');
  return `import type { Rows } from './rowTypes.ts';\n\n/** The rows that builders start from. */\nexport const EXAMPLES: Rows = ${rows};\n`;
}

/** One schema for all procedures, so that they share their models. */
function schemaWith(io: 'input' | 'output', part: (procedure: Procedure) => z.ZodType): Schema {
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

function printRouter(members: Procedure[], outputs: Schema, depth = 0): string {
  const byName = Map.groupBy(members, ({ name }) => name.split('.')[depth]!);
  return block(
    [...byName].map(([name, inside]) => {
      const [first] = inside as [Procedure];
      const verbs = inside
        .map((procedure) => procedure.name.split('.')[depth + 1])
        .filter((verb) => verb !== undefined);
      if (verbs.length > 0) return `${commentOnNoun(name, verbs)}${name}: ${printRouter(inside, outputs, depth + 1)};`;

      const kind = KINDS[first.type];
      const parts = ['Input', 'Output'].map((part) => typeName(first.name, part)).join(', ');
      return `${commentOnCall(first, outputs.properties![first.name]!)}${name}: ${kind}<${parts}>;`;
    }),
  );
}

const KINDS = { query: 'Query', mutation: 'Mutation', subscription: 'Follow' };

/** `masterBoards` is about master boards. */
function commentOnNoun(name: string, verbs: string[]): string {
  const noun = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return comment(`The procedures of ${noun}: ${verbs.join(', ')}.`);
}

function printPart(name: string, part: 'Input' | 'Output', type: string): string {
  const does = part === 'Input' ? 'takes' : 'returns';
  return `${comment(`What \`${name}\` ${does}${type === 'void' ? ': nothing' : ''}.`)}export type ${typeName(name, part)} = ${type};`;
}

/** `CardsCreateInput` */
function typeName(name: string, part: string): string {
  return name.replace(/(?:^|\.)(.)/g, (_, letter: string) => letter.toUpperCase()) + part;
}

function printInput({ properties, required }: Schema, name: string): string {
  const printed = print(properties![name]!, {});
  return printed === 'void' || required?.includes(name) ? printed : `${printed} | undefined`;
}

type Models = Record<string, Schema>;

function print(schema: Schema, models: Models): string {
  const { $ref, printedAs, anyOf, oneOf, allOf, type } = schema;
  const printOne = (part: Schema) => print(part, models);
  if ($ref) return $ref.replace('#/$defs/', '');
  if (printedAs) return printedAs;
  if (schema.enum) return union(schema.enum.map((choice) => JSON.stringify(choice)));
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (anyOf ?? oneOf) return printAlternatives((anyOf ?? oneOf)!, printOne);
  if (allOf) return allOf.map((part) => `(${printOne(part)})`).join(' & ');
  if (Array.isArray(type)) return union(type.map((one) => printOne({ ...schema, type: one })));
  if (type === 'array') return printArray(schema, models);
  if (type === 'object') return printObject(schema, models);
  return type === undefined ? 'unknown' : type.replace('integer', 'number');
}

/** Text beside choices is printed so that editors still suggest the choices. */
function printAlternatives(parts: Schema[], printOne: (part: Schema) => string): string {
  const hasChoices = parts.some((part) => part.enum);
  return union(parts.map(printOne).map((type) => (hasChoices && type === 'string' ? '(string & {})' : type)));
}

function printArray({ items, prefixItems }: Schema, models: Models): string {
  if (prefixItems) return `[${prefixItems.map((part) => print(part, models)).join(', ')}]`;
  return `Array<${items ? print(items, models) : 'unknown'}>`;
}

function printObject(schema: Schema, models: Models): string {
  const { properties = {}, required = [], additionalProperties } = schema;
  if (HAS_ONE_FIELD in schema) return printAsUnion(properties, models);
  const fields = Object.entries(properties).map(([name, field]) => {
    const isRequired = required.includes(name);
    const type = isRequired ? print(field, models) : union([print(field, models), 'undefined']);
    const key = /^\w+$/.test(name) ? name : JSON.stringify(name);
    return `${commentOnField(field, models)}${key}${isRequired ? '' : '?'}: ${type};`;
  });
  if (typeof additionalProperties === 'object') fields.push(`[name: string]: ${print(additionalProperties, models)};`);
  return block(fields);
}

/** One type for each field, in which the others are undefined. */
function printAsUnion(fields: Models, models: Models): string {
  const typeWith = (one: string) =>
    Object.entries(fields).map(([name, field]) => {
      const typed = name === one ? `${name}: ${print(field, models)};` : `${name}?: undefined;`;
      return `${commentOnField(field, models)}${typed}`;
    });
  return union(Object.keys(fields).map((name) => block(typeWith(name))));
}

const union = (types: string[]) => [...new Set(types)].join(' | ');

const block = (lines: string[]) =>
  lines.length === 0 ? 'Record<string, never>' : `{\n${lines.join('\n').replace(/^/gm, '  ')}\n}`;
