/**
 * A part of an answer that PostgreSQL has written as JSON. It is passed on as it is: reading and writing thousands of cards
 * again would stop everybody else for a quarter of a second. It stands for a field of the answer, not deeper in it.
 */
export class JsonText {
  readonly text: string;
  readonly writeAnnotation: () => string;

  /** `writeAnnotation` tells where its dates are, as superjson annotates them; only RPC asks for that. */
  constructor(text: string, writeAnnotation: () => string) {
    this.text = text;
    this.writeAnnotation = writeAnnotation;
  }

  toJSON(): unknown {
    return JSON.parse(this.text);
  }
}

/** For types, it is what it will be for whoever receives it. */
export const asWritten = <Value>(text: string, writeAnnotation: () => string): Value =>
  new JsonText(text, writeAnnotation) as unknown as Value;
