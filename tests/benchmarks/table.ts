export type Table = {
  title: string;
  note?: string;
  columns: string[];
  rows: string[][];
  /** How many columns hold names; the others hold figures. One unless told. */
  names?: number;
};

export function toText({ title, note, columns, rows, names = 1 }: Table): string {
  const pad = padding([columns, ...rows], names);
  const line = (cells: string[]) => `  ${cells.map(pad).join('  ')}`.trimEnd();
  return [title, '', line(columns), ...rows.map(line), ...(note ? ['', `  ${note}`] : []), ''].join('\n');
}

export function toMarkdown({ title, note, columns, rows, names = 1 }: Table): string {
  const rule = columns.map((_, at) => (at < names ? '---' : '--:'));
  const pad = padding([columns, rule, ...rows], names);
  const line = (cells: string[]) => `| ${cells.map(pad).join(' | ')} |`;
  const ruled = line(rule).replaceAll(/( +)(--:)/g, (_, spaces) => ` ${'-'.repeat(spaces.length + 1)}:`);
  return [`## ${title}`, '', line(columns), ruled, ...rows.map(line), ...(note ? ['', note] : []), ''].join('\n');
}

/** Names to the left, figures to the right. */
function padding(lines: string[][], names: number) {
  const widths = lines[0]!.map((_, at) => Math.max(...lines.map((cells) => cells[at]!.length)));
  return (cell: string, at: number) => (at < names ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!));
}

export const whole = (value: number) => Math.round(value).toLocaleString('en');
export const precise = (value: number, digits = 2) => value.toFixed(digits);
export const percent = (share: number) => `${Math.round(share * 100)} %`;

export function median(values: number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
