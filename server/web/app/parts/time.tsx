/** A time of the service, written as in the reader's country. */
export const Time = ({ at }: { at: Date }) => <time dateTime={at.toISOString()}>{timeText(at)}</time>;

export const timeText = (at: Date) => at.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });

/** The first moment of a day that was picked in a date field, in the reader's time zone. */
export const startOfDay = (day: string) => new Date(`${day}T00:00`);
export const endOfDay = (day: string) => new Date(`${day}T23:59:59.999`);

/** The value of a date field, so many days from today. */
export function inDays(days: number): string {
  const at = new Date();
  at.setDate(at.getDate() + days);
  return [at.getFullYear(), at.getMonth() + 1, at.getDate()].map((part) => String(part).padStart(2, '0')).join('-');
}
