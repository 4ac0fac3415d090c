import stringWidth from 'string-width';

/** Texts by the columns that they take on a terminal: wide characters, such as 漢 and most emoji, take two. */

export const widthOf = (text: string) => stringWidth(text);

export const padded = (text: string, width: number) => text + ' '.repeat(Math.max(0, width - widthOf(text)));

/** Cuts a text that is too wide, and ends it with `…`. */
export function shortened(text: string, width: number): string {
  return widthOf(text) <= width ? text : `${startOf(text, width - 1)}…`;
}

/** Breaks a text into lines, between words where possible; all but the first are indented. */
export function wrapped(text: string, width: number, indent = 0): string {
  const lines = [''];
  for (const word of text.split(' ').flatMap((word) => pieces(word, width))) {
    const line = lines.at(-1) ?? '';
    if (line === '') lines[lines.length - 1] = word;
    else if (widthOf(line) + 1 + widthOf(word) <= width) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines.join(`\n${' '.repeat(indent)}`);
}

/** A word that is wider than a line, in pieces. */
function pieces(word: string, width: number): string[] {
  const found: string[] = [];
  let rest = word;
  while (widthOf(rest) > width) {
    // At least one character, even if it is wider than the line.
    const piece = startOf(rest, width) || graphemes(rest).next().value!.segment;
    found.push(piece);
    rest = rest.slice(piece.length);
  }
  return rest === '' && found.length > 0 ? found : [...found, rest];
}

function startOf(text: string, width: number): string {
  let end = 0;
  let used = 0;
  for (const { segment, index } of graphemes(text)) {
    used += widthOf(segment);
    if (used > width) break;
    end = index + segment.length;
  }
  return text.slice(0, end);
}

const segmenter = new Intl.Segmenter();
const graphemes = (text: string) => segmenter.segment(text)[Symbol.iterator]();
