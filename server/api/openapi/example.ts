import { SENT_AS_TEXT } from '../../../shared/fields.ts';

/** The part of JSON Schema that our schemas use. */
export type Schema = {
  description?: string;
  $ref?: string;
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  enum?: unknown[];
  const?: unknown;
  example?: unknown;
  [key: string]: unknown;
};

/** Builds an example for a schema from those of its fields. */
export function exampleOf(schema: Schema, schemas: Record<string, Schema>): unknown {
  const { [SENT_AS_TEXT]: isText, ...typed } = schema;
  if (isText !== undefined) return JSON.stringify(exampleOf(typed, schemas));
  if (schema.$ref) return exampleOf(schemas[schema.$ref.split('/').at(-1)!]!, schemas);
  if (schema.example !== undefined) return schema.example;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf) return exampleOf(schema.anyOf.find(({ type }) => type !== 'null')!, schemas);
  if (Array.isArray(schema.type)) return null;

  switch (schema.type) {
    case 'object':
      return exampleOfFields(schema, schemas);
    case 'array':
      return schema.items ? [exampleOf(schema.items, schemas)] : [];
    case 'boolean':
      return false;
    case 'integer':
    case 'number':
      return 1;
    default:
      return 'text';
  }
}

function exampleOfFields({ properties = {} }: Schema, schemas: Record<string, Schema>) {
  return Object.fromEntries(Object.entries(properties).map(([field, schema]) => [field, exampleOf(schema, schemas)]));
}
