import { z } from 'zod';
import { REQUIRED_UNLESS, SENT_AS_TEXT } from '../../shared/fields.ts';

export type Schema = {
  type: 'object';
  properties?: Record<string, object>;
  required?: string[];
  [keyword: string]: unknown;
};

/** Clients check refusals against the schema of the result, so that no field of it is required. */
export function resultSchema(output: z.ZodType): Schema {
  const { properties, required, ...schema } = schemaOf(output, 'output');
  return { ...schema, type: 'object', properties: { ...properties, error: schemaOf(Refusal, 'output') } };
}

/** A schema of Zod as JSON Schema, for assistants. */
export function schemaOf(schema: z.ZodType | undefined, io: 'input' | 'output'): Schema {
  if (!schema || schema instanceof z.ZodVoid) return { type: 'object' };
  const { $schema, ...written } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      // JSON has dates as text.
      if (zodSchema instanceof z.ZodDate) jsonSchema.type = 'string';
      // New fields may be added to answers later.
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
      for (const keyword of OWN_KEYWORDS) delete jsonSchema[keyword];
    },
  });
  return written as Schema;
}

const OWN_KEYWORDS = ['example', SENT_AS_TEXT, REQUIRED_UNLESS];

const Refusal = z
  .object({
    status: z.int().meta({ description: 'The HTTP status that REST has for it.' }),
    reason: z.string().meta({ description: 'A stable code, from docs/errors.md.' }),
    message: z.string().meta({ description: 'What to do, for people.' }),
    errors: z.record(z.string(), z.array(z.string())).optional().meta({ description: 'The errors of each field.' }),
    retry_after_seconds: z.int().optional().meta({ description: 'When to try again.' }),
  })
  .meta({ description: 'Instead of the result: why the call was refused.' });
