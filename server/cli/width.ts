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
  if (width === Number.POSITIVE_INFINITY) return text;
  const lines = [''];
  for (const word of text.split(' ').flatMap((word) => pieces(word, width))) {
    const line = lines.at(-1) ?? '';
    if (line === '') lines[lines.length - 1] = word;
    else if (widthOf(line) + 1 + widthOf(word) <= width) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines.join(`\n${' '.repeat(indent)}`);
}

/** A word that is wider than a line, in pieces. Each has at least one character, even if that is wider than the line. */
function pieces(word: string, width: number): string[] {
  const [first] = segmenter.segment(word);
  const piece = startOf(word, width) || (first?.segment ?? '');
  return piece === word ? [word] : [piece, ...pieces(word.slice(piece.length), width)];
}

function startOf(text: string, width: number): string {
  let end = 0;
  let used = 0;
  for (const { segment, index } of segmenter.segment(text)) {
    used += widthOf(segment);
    if (used > width) break;
    end = index + segment.length;
  }
  return text.slice(0, end);
}

const segmenter = new Intl.Segmenter();
