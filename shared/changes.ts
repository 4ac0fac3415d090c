import type { z } from 'zod';

const CLEARED_BY_NULL = 'Not changed if not sent; null clears it.';
export const KEPT_BY_NULL = 'Not changed if not sent or null.';

/** The optional fields of an update. Their descriptions say whether null clears the field or keeps it. */
export function changesOf<Fields extends Record<string, z.ZodType>>(
  fields: Fields,
  clearedByNull: readonly (keyof Fields)[],
): Fields {
  const described = Object.entries(fields).map(([name, field]) => {
    const note = clearedByNull.includes(name) ? CLEARED_BY_NULL : KEPT_BY_NULL;
    return [name, field.meta({ description: `${field.description} ${note}` })];
  });
  return Object.fromEntries(described) as Fields;
}
