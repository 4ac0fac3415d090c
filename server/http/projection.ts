import { z } from 'zod';
import { SENT_AS_TEXT } from '../../shared/fields.ts';
import { JsonText } from '../runtime/jsonText.ts';

type Projection = (value: unknown) => unknown;

/** Converts results for REST: unchanged, except for fields that are documented as text. Computed once per schema. */
export function projectionOf(schema: z.ZodType): Projection {
  return project(schema) ?? ((value) => value);
}

function project(schema: z.ZodType): Projection | undefined {
  if (z.globalRegistry.get(schema)?.[SENT_AS_TEXT] !== undefined) return asText;
  if (schema instanceof z.ZodArray) return projectElements(schema.element as z.ZodType);
  if (schema instanceof z.ZodObject) return projectFields(schema.shape);
  return undefined;
}

const asText: Projection = (value) => {
  if (value instanceof JsonText) return value.isLarge ? new JsonText(value.pieces, value.dates, true) : value.text;
  return typeof value === 'string' ? value : JSON.stringify(value);
};

function projectElements(element: z.ZodType): Projection | undefined {
  const projection = project(element);
  return projection && ((values) => (values as unknown[]).map(projection));
}

function projectFields(shape: z.ZodRawShape): Projection | undefined {
  const fields = Object.entries(shape).flatMap(([field, schema]) => {
    const projection = project(schema as z.ZodType);
    return projection ? [[field, projection] as const] : [];
  });
  if (fields.length === 0) return undefined;
  return (value) => {
    const object = value as Record<string, unknown>;
    return {
      ...object,
      ...Object.fromEntries(fields.map(([field, projection]) => [field, projection(object[field])])),
    };
  };
}
