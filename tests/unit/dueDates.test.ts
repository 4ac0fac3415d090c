import { afterEach, describe, expect, it } from 'vitest';
import { dayOf } from '../../server/web/pages/board/dueDate.js';

const { TZ } = process.env;
afterEach(() => {
  if (TZ === undefined) delete process.env.TZ;
  else process.env.TZ = TZ;
});

describe.each(['America/Los_Angeles', 'UTC', 'Pacific/Auckland'])('a due date on the board page in %s', (zone) => {
  it('without a time is shown as that date', () => {
    process.env.TZ = zone;

    expect(dayOf(new Date('2026-01-31'))).toContain('31');
  });

  it('with a time is shown as the day where the reader is', () => {
    process.env.TZ = zone;

    const days = { 'America/Los_Angeles': '30', UTC: '31', 'Pacific/Auckland': '31' };
    expect(dayOf(new Date('2026-01-31T07:30:00Z'))).toContain(days[zone as keyof typeof days]);
  });
});
