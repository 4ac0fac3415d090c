/** The fields of a value that are dates: its own, and those of the elements of its lists. */
export type DateFields = { own: readonly string[]; lists?: Readonly<Record<string, readonly DateFields[]>> };

/**
 * A part of a response that PostgreSQL has written as JSON. It is passed on unchanged: parsing and serializing thousands of cards
 * would block the event loop for a quarter of a second. Only allowed as a top-level field of a response.
 */
export class JsonText {
  readonly text: string;
  readonly dates: DateFields;

  constructor(text: string, dates: DateFields) {
    this.text = text;
    this.dates = dates;
  }

  toJSON(): unknown {
    return JSON.parse(this.text);
  }
}

/** Typed as the value that callers receive. */
export const asJsonText = <Value>(text: string, dates: DateFields): Value =>
  new JsonText(text, dates) as unknown as Value;

/** The value itself, with its dates. */
export function readJsonText({ text, dates }: JsonText): unknown {
  const value = JSON.parse(text);
  reviveDates(value, dates);
  return value;
}

type Lists = Record<string, Record<string, unknown>[]>;

function reviveDates(value: Record<string, unknown>, { own, lists = {} }: DateFields): void {
  for (const name of own) value[name] = new Date(String(value[name]));
  for (const [name, elements] of Object.entries(lists)) {
    const values = (value as Lists)[name] ?? [];
    for (const [at, element] of values.entries()) {
      const dates = elements[at];
      if (dates) reviveDates(element, dates);
    }
  }
}
