export type Table = { title: string; note?: string; columns: string[]; rows: string[][] };

/** For the terminal: the first column to the left, figures to the right. */
export function toText({ title, note, columns, rows }: Table): string {
  const widths = widthsOf([columns, ...rows]);
  const line = (cells: string[]) => `  ${cells.map((cell, at) => pad(cell, widths[at]!, at)).join('  ')}`.trimEnd();
  return [title, ...(note ? [`  ${note}`] : []), '', line(columns), ...rows.map(line), ''].join('\n');
}

export function toMarkdown({ title, note, columns, rows }: Table): string {
  const widths = widthsOf([columns, ...rows]);
  const line = (cells: string[]) => `| ${cells.map((cell, at) => pad(cell, widths[at]!, at)).join(' | ')} |`;
  const rule = widths.map((width, at) => (at === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  return [`## ${title}`, '', ...(note ? [note, ''] : []), line(columns), line(rule), ...rows.map(line), ''].join('\n');
}

const widthsOf = (lines: string[][]) =>
  lines[0]!.map((_, at) => Math.max(3, ...lines.map((cells) => cells[at]!.length)));
const pad = (cell: string, width: number, at: number) => (at === 0 ? cell.padEnd(width) : cell.padStart(width));

export const whole = (value: number) => Math.round(value).toLocaleString('en');
export const precise = (value: number, digits = 2) => value.toFixed(digits);
export const percent = (share: number) => `${Math.round(share * 100)} %`;

export function median(values: number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
