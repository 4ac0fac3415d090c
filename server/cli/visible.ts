/**
 * Writes characters that a terminal would act on, or that reorder a text, as `\u001b`: a service may send any text. In JSON that
 * is the same value.
 */
export const visible = (text: string) => text.replaceAll(ACTED_ON, (character) => `\\u${hexOf(character)}`);

/** Control characters but line feed and tab, those that change the direction of text, and separators of lines and paragraphs. */
const ACTED_ON = /[\p{Bidi_Control}\p{Zl}\p{Zp}]|(?![\n\t])\p{Cc}/gu;

const hexOf = (character: string) => character.charCodeAt(0).toString(16).padStart(4, '0');
