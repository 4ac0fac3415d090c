import { afterEach, describe, expect, it } from 'vitest';
import { dayOf, dueChip, fromField, toField } from '../../server/web/app/card/dueDate.ts';

const { TZ } = process.env;
afterEach(() => {
  if (TZ === undefined) delete process.env.TZ;
  else process.env.TZ = TZ;
});

const card = (due_date: string | null, more = {}) => ({
  due_date: due_date === null ? null : new Date(due_date),
  status: 'open',
  is_overdue: false,
  ...more,
});

describe.each(['America/New_York', 'UTC', 'Asia/Tokyo', 'Pacific/Auckland'])('a due date on the page in %s', (zone) => {
  it('without a time is shown as that date', () => {
    process.env.TZ = zone;

    expect(dayOf(new Date('2026-01-31'))).toContain('31');
    expect(dueChip(card('2026-01-31'), new Date('2025-06-01T12:00:00Z'))?.text).toMatch(/31.*2026/);
    expect(toField(new Date('2026-01-31'))).toBe('2026-01-31');
  });

  it('with a time is shown as the day where the reader is', () => {
    process.env.TZ = zone;

    const days = { 'America/New_York': '30', UTC: '31', 'Asia/Tokyo': '31', 'Pacific/Auckland': '31' };
    expect(dayOf(new Date('2026-01-31T04:30:00Z'))).toContain(days[zone as keyof typeof days]);
  });

  it('is Today, Tomorrow or Yesterday by the calendar of the reader', () => {
    process.env.TZ = zone;
    const noon = new Date('2026-01-31T12:00');

    expect(dueChip(card('2026-01-31'), noon)?.text).toBe('Today');
    expect(dueChip(card('2026-02-01'), noon)?.text).toBe('Tomorrow');
    expect(dueChip(card('2026-01-30'), noon)?.text).toBe('Yesterday');
    const evening = new Date('2026-01-31T21:30').toISOString();
    expect(dueChip(card(evening), noon)?.text).toMatch(/^Today .*9:30|^Today 21:30/);
  });

  it('is sent as typed: a date stays a date, a local time becomes that instant', () => {
    process.env.TZ = zone;

    expect(fromField('')).toBe(null);
    expect(fromField('2026-01-31')).toBe('2026-01-31');
    expect(fromField('2026-01-31T09:30')).toEqual(new Date('2026-01-31T09:30'));
    for (let hour = 0; hour < 24; hour++) {
      const typed = `2026-01-31T${String(hour).padStart(2, '0')}:00`;
      expect(toField(fromField(typed) as Date)).toBe(typed);
    }
  });
});

describe('a due date is overdue', () => {
  it('after its time, or after its whole day, unless the card is closed', () => {
    const now = new Date('2026-01-31T12:00:00Z');

    expect(dueChip(card('2026-01-31T11:59:00Z'), now)?.isOverdue).toBe(true);
    expect(dueChip(card('2026-01-31T12:01:00Z'), now)?.isOverdue).toBe(false);
    expect(dueChip(card('2026-01-31'), now)?.isOverdue).toBe(false);
    expect(dueChip(card('2026-01-30'), now)?.isOverdue).toBe(true);
    expect(dueChip(card('2026-01-30', { status: 'closed' }), now)?.isOverdue).toBe(false);
    expect(dueChip(card(null), now)).toBe(undefined);
  });
});
