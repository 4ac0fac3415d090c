/**
 * A part of an answer that PostgreSQL has written as JSON. It is passed on unchanged: parsing and serializing thousands of cards
 * would block the event loop for a quarter of a second. Only allowed as a top-level field of an answer.
 */
export class JsonText {
  readonly text: string;
  readonly writeAnnotation: () => string;

  /** `writeAnnotation` returns the superjson annotation of its dates; only RPC calls it. */
  constructor(text: string, writeAnnotation: () => string) {
    this.text = text;
    this.writeAnnotation = writeAnnotation;
  }

  toJSON(): unknown {
    return JSON.parse(this.text);
  }
}

/** Typed as the value that callers receive. */
export const asJsonText = <Value>(text: string, writeAnnotation: () => string): Value =>
  new JsonText(text, writeAnnotation) as unknown as Value;
