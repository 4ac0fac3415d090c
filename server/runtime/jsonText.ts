/** The fields of a value that are dates: its own, and those of the elements of its lists or, if it is a list itself, of its elements. */
export type DateFields = {
  own: readonly string[];
  lists?: Readonly<Record<string, readonly DateFields[]>>;
  elements?: readonly DateFields[];
};

/**
 * A part of a response that PostgreSQL has written as JSON. It is passed on unchanged: parsing and serializing thousands of cards
 * would block the event loop for a quarter of a second. Only allowed as a top-level field of a response.
 */
export class JsonText {
  readonly pieces: readonly string[];
  readonly dates: DateFields;
  /** Whether it is escaped and sent as a JSON string. */
  readonly isQuoted: boolean;
  /** Whether it came in pieces: each of them then takes a turn of the event loop. */
  readonly isLarge: boolean;

  constructor(text: string | readonly string[], dates: DateFields, isQuoted = false) {
    this.isLarge = typeof text !== 'string';
    this.pieces = typeof text === 'string' ? [text] : text;
    this.dates = dates;
    this.isQuoted = isQuoted;
  }

  get text(): string {
    return this.pieces.join('');
  }

  toJSON(): unknown {
    return JSON.parse(this.text);
  }
}

/** Typed as the value that callers receive. */
export const asJsonText = <Value>(text: string | readonly string[], dates: DateFields): Value =>
  new JsonText(text, dates) as unknown as Value;

/** A response with the values of its JSON texts: superjson can't annotate their dates. */
export function withValues(response: unknown): unknown {
  if (typeof response !== 'object' || response === null || !Object.values(response).some(isJsonText)) return response;
  return Object.fromEntries(
    Object.entries(response).map(([name, value]) => [name, isJsonText(value) ? readJsonText(value) : value]),
  );
}

const isJsonText = (value: unknown) => value instanceof JsonText;

/** The value itself, with its dates. */
function readJsonText({ text, dates }: JsonText): unknown {
  const value = JSON.parse(text);
  reviveDates(value, dates);
  return value;
}

/** Whether to use `writeFieldsInPieces`. */
export const hasLargeField = (value: object) =>
  Object.values(value).some((field) => field instanceof JsonText && field.isLarge);

/** Serializes an object like `writeFields`, in pieces: each is written when the caller asks for it. */
export function* writeFieldsInPieces(value: object): Generator<string> {
  let before = '{';
  for (const [name, field] of Object.entries(value)) {
    const text = field instanceof JsonText ? '' : JSON.stringify(field);
    if (text === undefined) continue;
    yield `${before}${JSON.stringify(name)}:${text}`;
    before = ',';
    if (field instanceof JsonText) yield* field.isQuoted ? quote(field.pieces) : field.pieces;
  }
  yield before === '{' ? '{}' : '}';
}

function* quote(pieces: readonly string[]): Generator<string> {
  yield '"';
  for (const text of pieces) for (const piece of cut(text)) yield JSON.stringify(piece).slice(1, -1);
  yield '"';
}

const LONGEST_PIECE = 64 * 1024;

/** Cuts a long text, but no character. */
export function* cut(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    let end = at + LONGEST_PIECE;
    if (isHighSurrogate(text.charCodeAt(end - 1))) end--;
    yield text.slice(at, end);
    at = end;
  }
}

const isHighSurrogate = (unit: number) => unit >= 0xd800 && unit < 0xdc00;

/** Serializes an object whose fields may be JSON texts. Undefined fields are left out, as by `JSON.stringify`. */
export function writeFields(value: object): string {
  let fields = '';
  for (const [name, field] of Object.entries(value)) {
    const text = field instanceof JsonText ? field.text : JSON.stringify(field);
    if (text !== undefined) fields += `${fields && ','}${JSON.stringify(name)}:${text}`;
  }
  return `{${fields}}`;
}

type Lists = Record<string, Record<string, unknown>[]>;

function reviveDates(value: Record<string, unknown>, { own, lists = {}, elements = [] }: DateFields): void {
  for (const name of own) value[name] = new Date(String(value[name]));
  for (const [name, ofList] of Object.entries(lists)) reviveEach((value as Lists)[name] ?? [], ofList);
  if (Array.isArray(value)) reviveEach(value, elements);
}

function reviveEach(values: Record<string, unknown>[], elements: readonly DateFields[]): void {
  for (const [at, element] of values.entries()) {
    const dates = elements[at];
    if (dates) reviveDates(element, dates);
  }
}
