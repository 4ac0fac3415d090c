import { visible } from './visible.ts';
import { padded, shortened, widthOf, wrapped } from './width.ts';

export type Fields = Record<string, unknown>;

/** Rows below the names of their columns. On a terminal the table fits its width; otherwise nothing is cut. */
export function rowsAsTable(rows: Fields[], names: string[], width: number): string {
  const textOfCell = width === Number.POSITIVE_INFINITY ? textOf : shortTextOf;
  const columns = names.map((name): Column => columnOf(name, rows, textOfCell));
  const { shown, hidden } = fitting(columns, width);
  const widths = shrunk(shown, width);
  const line = (cells: string[]) =>
    cells
      .map((cell, at) => padded(shortened(cell, widths[at]!), widths[at]!))
      .join(GAP)
      .trimEnd();
  const lines = [shown.map(({ name }) => name), ...rows.map((_, row) => shown.map(({ cells }) => cells[row]!))];
  return [...lines.map(line), ...hintAt(hidden, width)].join('\n');
}

/** How wide the table is if nothing is cut. */
export const tableWidth = (rows: Fields[], names: string[]) =>
  totalOf(names.map((name) => columnOf(name, rows, shortTextOf).natural));

/** `natural` is the width that shows everything, `least` the smallest that is still of use. */
type Column = { name: string; cells: string[]; natural: number; least: number; isUniform: boolean };

function columnOf(name: string, rows: Fields[], textOfCell: (value: unknown) => string): Column {
  const values = rows.map((row) => row[name]);
  const cells = values.map(textOfCell);
  const natural = [name, ...cells].reduce((widest, text) => Math.max(widest, widthOf(text)), 0);
  const isText = values.some((value) => typeof value === 'string' || Array.isArray(value));
  const least = isText ? Math.min(natural, Math.max(widthOf(name), SHORTEST_TEXT)) : natural;
  // For example the project of all rows.
  const isUniform = !isText && new Set(cells).size === 1;
  return { name, cells, natural, least, isUniform };
}

const GAP = '  ';
const SHORTEST_TEXT = 12;
/** Usually the id and the title. */
const ALWAYS_SHOWN = 2;

const totalOf = (widths: number[]) => widths.reduce((sum, one) => sum + one + GAP.length, -GAP.length);

/** Hides columns only if they can't be made narrow enough: those with one value, then times, then ids of other rows. */
function fitting(columns: Column[], width: number): { shown: Column[]; hidden: Column[] } {
  const shown = [...columns];
  while (shown.length > ALWAYS_SHOWN && totalOf(shown.map(({ least }) => least)) > width) {
    const optional = shown.slice(ALWAYS_SHOWN);
    const dropped =
      optional.findLast(({ isUniform }) => isUniform) ??
      optional.findLast(({ name }) => name.endsWith('_at')) ??
      optional.findLast(({ name }) => name.endsWith('_id')) ??
      optional.at(-1)!;
    shown.splice(shown.indexOf(dropped), 1);
  }
  return { shown, hidden: columns.filter((column) => !shown.includes(column)) };
}

/** Takes from the widest text columns what is missing; the last resort is to cut the last column. */
function shrunk(columns: Column[], width: number): number[] {
  const widths = columns.map(({ natural, least }) => Math.max(least, Math.min(natural, width)));
  for (let excess = totalOf(widths) - width; excess > 0; excess--) {
    const spare = widths.map((current, at) => (current > columns[at]!.least ? current : 0));
    const widest = Math.max(...spare);
    const at = widest > 0 ? spare.indexOf(widest) : widths.length - 1;
    widths[at] = Math.max(1, widths[at]! - 1);
  }
  return widths;
}

function hintAt(hidden: Column[], width: number): string[] {
  if (hidden.length === 0) return [];
  const names = hidden.map(({ name }) => name).join(', ');
  return ['', wrapped(`Not shown: ${names}. Choose with --columns NAME,NAME; --json shows all.`, width)];
}

export function textOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (value instanceof Date) return value.toISOString();
  if (typeof value === 'object' && !Array.isArray(value)) return visible(JSON.stringify(value));
  // Line ends in values must not break the rows.
  return visible(
    (Array.isArray(value) ? value.map(elementText).join(', ') : String(value)).replaceAll(/\r?\n|\t/g, ' '),
  );
}

/** For people, to the minute. */
const shortTextOf = (value: unknown) =>
  value instanceof Date ? value.toISOString().replace(/^(.{10})T(.{5}).*$/, '$1 $2Z') : textOf(value);

const elementText = (value: unknown) =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
