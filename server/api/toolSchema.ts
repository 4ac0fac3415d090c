import { z } from 'zod';
import { EMPTY_IS_NULL, REQUIRED_UNLESS, SENT_AS_TEXT } from '../../shared/fields.ts';

export type Schema = {
  type: 'object';
  properties?: Record<string, object>;
  required?: string[];
  [keyword: string]: unknown;
};

/** The schema of an input as JSON Schema, for assistants; `inTools` changes descriptions. */
export function inputSchemaOf(schema: z.ZodType | undefined, inTools = (text: string) => text): Schema {
  if (!schema) return { type: 'object', additionalProperties: false };
  const { $schema, ...written } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      // JSON has dates as text.
      if (zodSchema instanceof z.ZodDate) jsonSchema.type = 'string';
      if (jsonSchema.properties) jsonSchema.additionalProperties = false;
      if (jsonSchema.description) jsonSchema.description = inTools(jsonSchema.description);
      for (const keyword of OWN_KEYWORDS) delete jsonSchema[keyword];
    },
  });
  return written as Schema;
}

const OWN_KEYWORDS = ['example', SENT_AS_TEXT, REQUIRED_UNLESS, EMPTY_IS_NULL];
