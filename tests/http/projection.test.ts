import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { projectionOf } from '../../server/http/projection.ts';
import { sentAsText } from '../../shared/fields.ts';

describe('the projection of results for REST', () => {
  const Group = z.object({ id: z.int(), title: z.string(), created_at: z.date() });
  const group = { id: 1, title: 'A "group"', created_at: new Date('2026-01-31T09:30:00Z') };
  const asText = '{"id":1,"title":"A \\"group\\"","created_at":"2026-01-31T09:30:00.000Z"}';

  it('sends an object as JSON text, and a number as decimal text', () => {
    const toRest = projectionOf(
      z.object({ group: sentAsText(Group, 'a group'), count: sentAsText(z.int(), 'a count'), plain: z.int() }),
    );

    expect(toRest({ group, count: 12, plain: 3 })).toEqual({ group: asText, count: '12', plain: 3 });
  });

  it('sends each element of a list as text', () => {
    const toRest = projectionOf(z.object({ boards: z.array(sentAsText(Group, 'a board')) }));

    expect(toRest({ boards: [group, group] })).toEqual({ boards: [asText, asText] });
    expect(toRest({ boards: [] })).toEqual({ boards: [] });
  });

  it('covers nested fields, and does not change texts', () => {
    const toRest = projectionOf(z.object({ outer: z.object({ inner: sentAsText(z.string(), 'a text') }) }));

    expect(toRest({ outer: { inner: 'as it is' } })).toEqual({ outer: { inner: 'as it is' } });
  });

  it('returns the result itself if nothing is sent as text', () => {
    const result = { group };

    expect(projectionOf(z.object({ group: Group }))(result)).toBe(result);
  });
});
