import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Schema } from '../../server/api/openapi/example.ts';
import { procedures } from '../../server/api/procedures.ts';

/** The names of fields that are answered as a `Date`, in any procedure. */
const answeredAsDate = new Set(procedures.flatMap(({ output }) => dateFieldsOf(output)));

/** Every input field that takes a timestamp: by its format, or since a field of this name is answered as one. */
const moments = procedures.flatMap(({ name, input }) => {
  const { properties = {} } = input ? (z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' }) as Schema) : {};
  return Object.entries(properties)
    .filter(([field, schema]) => answeredAsDate.has(field) || JSON.stringify(schema).includes('"date-time"'))
    .map(([field]) => ({ procedure: name, field, schema: (input as z.ZodObject).shape[field] as z.ZodType }));
});

describe('timestamps in inputs', () => {
  it('are found', () => {
    expect([...answeredAsDate]).toEqual(expect.arrayContaining(['due_date', 'expires_at', 'trial_ends_at']));
    expect(moments.map(({ procedure, field }) => `${procedure} ${field}`)).toEqual([
      'cards.create due_date',
      'cards.update due_date',
      'cards.snooze until',
      'keys.create expires_at',
    ]);
  });

  it.each(moments)('$procedure takes $field as a Date, and as text', ({ schema }) => {
    const moment = new Date('2030-01-31T09:30:00Z');

    expect(schema.parse(moment)).toEqual(moment);
    expect(schema.parse(moment.toISOString())).toEqual(moment);
    expect(schema.safeParse(new Date(Number.NaN)).success).toBe(false);
  });
});

function dateFieldsOf(output: z.ZodType): string[] {
  const found = new Set<string>();
  z.toJSONSchema(output, {
    unrepresentable: 'any',
    override: ({ zodSchema, path }) => {
      if (zodSchema._zod.def.type !== 'date') return;
      const name = path.findLast((_, index) => path[index - 1] === 'properties');
      if (name !== undefined) found.add(String(name));
    },
  });
  return [...found];
}
