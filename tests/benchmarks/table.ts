export type Table = {
  title: string;
  note?: string;
  columns: string[];
  rows: string[][];
  /** How many of the first columns are names, by default one; the others are figures. */
  names?: number;
};

export function toText({ title, note, columns, rows, names = 1 }: Table): string {
  const widths = widthsOf([columns, ...rows]);
  const line = (cells: string[]) => `  ${padded(cells, widths, names).join('  ')}`.trimEnd();
  return [title, '', line(columns), ...rows.map(line), ...(note ? ['', `  ${note}`] : []), ''].join('\n');
}

export function toMarkdown({ title, note, columns, rows, names = 1 }: Table): string {
  const widths = widthsOf([columns, ...rows]);
  const line = (cells: string[]) => `| ${padded(cells, widths, names).join(' | ')} |`;
  const rule = widths.map((width, at) => (at < names ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  return [`## ${title}`, '', line(columns), line(rule), ...rows.map(line), ...(note ? ['', note] : []), ''].join('\n');
}

const SHORTEST_RULE = 3;

const widthsOf = (lines: string[][]) =>
  lines[0]!.map((_, at) => Math.max(SHORTEST_RULE, ...lines.map((cells) => cells[at]!.length)));

/** Names are aligned left, figures right. */
const padded = (cells: string[], widths: number[], names: number) =>
  cells.map((cell, at) => (at < names ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!)));

export const whole = (value: number) => Math.round(value).toLocaleString('en');
export const precise = (value: number, digits = 2) => value.toFixed(digits);
export const percent = (share: number) => `${Math.round(share * 100)} %`;
