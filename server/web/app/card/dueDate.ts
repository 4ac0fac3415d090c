const DAY_MILLISECONDS = 24 * 60 * 60_000;

type Due = { due_date: Date | null; status: string; is_overdue: boolean };

/** A date without a time is sent as midnight UTC: it is the same day in every time zone. */
export const isWholeDay = (due: Date) => due.getTime() % DAY_MILLISECONDS === 0;

/** The day of a due date, for people. */
export const dayOf = (due: Date) => dateText(due, { dateStyle: 'medium' });

/** The day, and the time if it has one. */
export const dueText = (due: Date) => (isWholeDay(due) ? dayOf(due) : `${dayOf(due)}, ${timeOf(due)}`);

/** A due date in few words: "Today", "Tomorrow 14:30", "3 Nov"; undefined without one. */
export function dueChip({ due_date, status, is_overdue }: Due, now = new Date()) {
  if (due_date === null) return undefined;
  const day = DAYS[String(dayNumber(due_date) - localDay(now))] ?? shortDay(due_date, now);
  const text = isWholeDay(due_date) ? day : `${day} ${timeOf(due_date)}`;
  return { text, isOverdue: status !== 'closed' && (is_overdue || hasPassed(due_date, now)) };
}
const DAYS: Record<string, string> = { '-1': 'Yesterday', '0': 'Today', '1': 'Tomorrow' };

/** As the service decides it: of a date without a time, the whole day must have passed. */
const hasPassed = (due: Date, now: Date) => due.getTime() + (isWholeDay(due) ? DAY_MILLISECONDS : 0) <= now.getTime();

/** As a field of a form has it: `2026-01-31`, with a time `2026-01-31T09:30`, empty without a date. */
export function toField(time: Date | null): string {
  if (time === null) return '';
  if (isWholeDay(time)) return time.toISOString().slice(0, 10);
  return toLocalField(time);
}

/** With the time, also at midnight UTC. */
export function toLocalField(time: Date | null): string {
  if (time === null) return '';
  const [year, ...others] = [
    time.getFullYear(),
    time.getMonth() + 1,
    time.getDate(),
    time.getHours(),
    time.getMinutes(),
  ];
  const [month, day, hours, minutes] = others.map((number) => String(number).padStart(2, '0'));
  return `${String(year).padStart(4, '0')}-${month}-${day}T${hours}:${minutes}`;
}

/** What is sent for a field: a date as it is, and a local time as an instant. */
export function fromField(text: string): string | Date | null {
  if (!text.includes('T')) return text || null;
  const time = new Date(text);
  // Midnight UTC would be taken for a date without a time, on another day west of Greenwich.
  return isWholeDay(time) ? new Date(time.getTime() + 1) : time;
}

const dateText = (due: Date, options: Intl.DateTimeFormatOptions) =>
  due.toLocaleDateString(undefined, { ...options, ...(isWholeDay(due) && { timeZone: 'UTC' }) });

const timeOf = (due: Date) => due.toLocaleTimeString(undefined, { timeStyle: 'short' });

const shortDay = (due: Date, now: Date) =>
  dateText(due, {
    day: 'numeric',
    month: 'short',
    ...(toField(due).slice(0, 4) !== String(now.getFullYear()) && { year: 'numeric' }),
  });

const dayNumber = (due: Date) => (isWholeDay(due) ? due.getTime() / DAY_MILLISECONDS : localDay(due));
const localDay = (time: Date) => Date.UTC(time.getFullYear(), time.getMonth(), time.getDate()) / DAY_MILLISECONDS;
