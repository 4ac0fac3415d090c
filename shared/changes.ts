import { z } from 'zod';

const CLEARED_BY_NULL = 'Not changed if not sent; null clears it.';
export const KEPT_BY_NULL = 'Not changed if not sent or null.';

/** The optional fields of an update. Their descriptions say whether null clears the field, which the model then allows, or keeps it. */
export function fieldsOfUpdate<Fields extends Record<string, z.ZodType>>(fields: Fields, model: z.ZodObject): Fields {
  const described = Object.entries(fields).map(([name, field]) => {
    const note = model.shape[name] instanceof z.ZodNullable ? CLEARED_BY_NULL : KEPT_BY_NULL;
    return [name, field.meta({ description: `${field.description} ${note}` })];
  });
  return Object.fromEntries(described) as Fields;
}
