import type { z } from 'zod';

/** How the descriptions of fields of updates end: an absent field is never changed. */
const CLEARED_BY_NULL = 'Not changed if not sent; null clears it.';
export const KEPT_BY_NULL = 'Not changed if not sent or null.';

/** The optional fields of an update: null clears some of them, and does not change the others. */
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
