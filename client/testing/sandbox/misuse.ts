/** A call of the sandbox that can't be done. Its message says what to send instead. */
export class SandboxMisuse extends Error {}

/** Refuses what is no object, and fields that are not known. */
export function readFields<Name extends string>(value: unknown, known: readonly Name[], what: string) {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new SandboxMisuse(`${what} takes a JSON object with ${listOf(known)}.`);
  const unknown = Object.keys(value).find((name) => !(known as readonly string[]).includes(name));
  if (unknown !== undefined) throw new SandboxMisuse(`${what} takes ${listOf(known)}, not ${unknown}.`);
  return value as Partial<Record<Name, unknown>>;
}

/** Refuses a value that is none of these. */
export function oneOf<Name extends string>(value: unknown, known: readonly Name[], what: string): Name {
  if (!(known as readonly unknown[]).includes(value))
    throw new SandboxMisuse(`${what} must be one of ${known.join(', ')}.`);
  return value as Name;
}

/** Refuses a number that is not in this range. */
export function checkNumber(value: unknown, least: number, most: number, what: string): void {
  if (typeof value !== 'number' || !(value >= least && value <= most))
    throw new SandboxMisuse(`${what} must be a number from ${least} to ${most}.`);
}

export function checkWhole(value: unknown, least: number, most: number, what: string): void {
  checkNumber(value, least, most, what);
  if (!Number.isInteger(value)) throw new SandboxMisuse(`${what} must be a whole number.`);
}

/** Refuses a value that is no text, or not of this form. */
export function textOf(value: unknown, form: RegExp, message: string): string {
  if (typeof value !== 'string' || !form.test(value)) throw new SandboxMisuse(message);
  return value;
}

/** Refuses a value that is no timestamp; `Date` takes the 30th of February for a day in March. */
export function timestampOf(value: unknown, name: string): string {
  const message = `${name} must be a day that exists, or a timestamp with a zone, as in 2026-01-31T09:30:00Z.`;
  const timestamp = textOf(value, TIMESTAMP, message);
  const day = timestamp.slice(0, 10);
  if (Number.isNaN(Date.parse(timestamp)) || !new Date(day).toJSON()?.startsWith(day)) throw new SandboxMisuse(message);
  return timestamp;
}

const TIMESTAMP = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/;

const listOf = (names: readonly string[]) => names.join(', ') || 'no fields';
