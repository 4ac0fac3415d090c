import { misuse } from './misuse.ts';
import { type Fields, rowsAsTable, tableWidth, textOf } from './table.ts';
import { wrapped } from './width.ts';

/** How a result is shown: `width` is that of the terminal, infinite without one, and `columns` are those of `--columns`. */
type View = { width: number; columns?: string[] | undefined };

/** Formats a result for people: a list as a table, a row as its fields, rows with rows in them as a tree. */
export function asText(result: unknown, view: View = { width: Number.POSITIVE_INFINITY }): string {
  const { next_cursor, paused_webhooks, results, ...others } = (result ?? {}) as Fields;
  const named = Array.isArray(results) ? { ...others, results: results.map(asRow) } : others;
  if (view.columns) mustExist(view.columns, fieldsIn(Object.values(named)));

  const hasSeveral = Object.values(named).filter(isPart).length > 1;
  const parts = Object.entries(named).flatMap(([name, value]) => {
    const part = partOf(value, view);
    // Beside something else, a list has to say what it is.
    return hasSeveral && Array.isArray(value) ? [`${name}:${value.length === 0 ? ' none' : `\n${part}`}`] : part;
  });
  const facts = Object.fromEntries(Object.entries(named).filter(([name, value]) => isFact(name, value)));
  if (Object.keys(facts).length > 0) parts.push(fieldsAsList(facts, { width: view.width }));
  if (next_cursor) parts.push(`More: --cursor ${next_cursor}, or --all`);
  if (Array.isArray(paused_webhooks) && paused_webhooks.length > 0)
    parts.push(`Webhooks that are switched off by it:\n${rowsAsText(paused_webhooks, view)}`);
  return parts.length === 0 ? 'Done.' : parts.join('\n');
}

/** One of many results: the saved row, or the message of its error, with its place from 0. */
function asRow({ error, ...saved }: Fields, row: number): Fields {
  const { message = null } = (error ?? {}) as { message?: string };
  return { row, ...(Object.values(saved)[0] as Fields | undefined), error: message };
}

function partOf(value: unknown, view: View): string[] {
  if (Array.isArray(value)) return [rowsAsText(value, view)];
  if (!isFields(value)) return [];
  return [nestedIn(value) ? rowAsTree(value, view) : fieldsAsList(value, view)];
}

/** The names of all fields, of rows inside rows, too. */
function fieldsIn(values: unknown[]): Set<string> {
  const rows = values.flat().filter(isFields);
  const inside = rows.flatMap((row) => NESTED.map((name) => row[name] ?? []));
  return rows.length === 0 ? new Set() : new Set([...rows.flatMap(Object.keys), ...fieldsIn(inside)]);
}

function mustExist(columns: string[], known: Set<string>): void {
  const unknown = columns.find((column) => !known.has(column));
  if (unknown === undefined || known.size === 0) return;
  throw misuse(`There is no column ${unknown}. There are ${[...known].join(', ')}.`);
}

const isPart = (value: unknown) => Array.isArray(value) || isFields(value);

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);

/** The version of a row is for programs. */
const isFact = (name: string, value: unknown) =>
  value !== null && name !== 'version' && !IN_NO_TEXT.has(name) && !isFields(value) && !Array.isArray(value);

function rowsAsText(rows: unknown[], view: View): string {
  if (rows.length === 0) return 'None.';
  if (!rows.every(isFields)) return rows.map(textOf).join('\n');
  if (rows.some(nestedIn)) return rows.map((row) => rowAsTree(row, view)).join('\n\n');
  const columns = view.columns ?? shownColumns(rows);
  const isTooWide = tableWidth(rows, columns) > view.width;
  return rows.length === 1 && isTooWide ? fieldsAsList(rows[0]!, view) : rowsAsTable(rows, columns, view.width);
}

/** Lists of rows inside a row; other lists, such as the tools of a project, are values. */
const NESTED = ['groups', 'cards', 'replies'];

const nestedIn = (row: Fields) => NESTED.find((name) => Array.isArray(row[name]));

/** A heading with the most important fields, and below it, indented, the rows inside. */
function rowAsTree(row: Fields, view: View): string {
  const name = nestedIn(row)!;
  const rows = row[name] as Fields[];
  const [, text = 'id', ...facts] = briefColumns(row);
  const about = facts.map((column) => `${column} ${textOf(row[column])}`).join(', ');
  const indent = `${row.id}  `.length;
  const title = wrapped(`${textOf(row[text])}${about && `  (${about})`}`, view.width - indent, indent);
  const heading = `${row.id}  ${title}`;
  const { [`${name}_next_cursor`]: cursor } = row;
  const more = cursor ? [`More: npx deckhand comments list-replies --id ${row.id} --cursor ${cursor}`] : [];
  if (rows.length === 0) return [heading, ...more].join('\n');

  const inside = { ...view, width: view.width - INDENT.length };
  const isDeep = rows.some(nestedIn);
  const below = isDeep
    ? rows.map((row) => rowAsTree(row, inside)).join('\n\n')
    : rowsAsTable(rows, view.columns ?? briefColumns(...rows), inside.width);
  return heading + (isDeep ? '\n\n' : '\n') + [below, ...more].join('\n').replaceAll(/^(?=.)/gm, INDENT);
}
const INDENT = '  ';

/** In trees only these columns of titled rows and of comments are shown. */
const briefColumns = (...rows: Fields[]) =>
  ['id', 'title', 'status', 'owner_id', 'due_date', 'comment', 'user_id', 'created_at'].filter(
    (column) => isShown(rows, column) && !(column === 'created_at' && rows.some((row) => 'title' in row)),
  );

function shownColumns(rows: Fields[]): string[] {
  const shown = new Set(['id', 'title', ...rows.flatMap(Object.keys)].filter((column) => isShown(rows, column)));
  // Rows of a project don't show its platform; projects and subscriptions do.
  if (shown.has('project_id') && !shown.has('product')) shown.delete('platform_id');
  return [...shown].filter((column) => !IN_NO_TABLE.has(column));
}

const isShown = (rows: Fields[], column: string) =>
  !IN_NO_TEXT.has(column) && rows.some((row) => row[column] !== null && row[column] !== undefined);

/** Fields that `--json` alone has: for programs, or too long. */
const IN_NO_TEXT = new Set(['qr_svg']);
const IN_NO_TABLE = new Set([
  'created_by',
  'description',
  'evaluation_check',
  'is_master',
  'sort_order',
  'unique_identifier',
  'updated_at',
]);

/** One field in each line; long values continue below, on a terminal. */
function fieldsAsList(fields: Fields, { width, columns }: View): string {
  const shown = columns ?? Object.keys(fields).filter((name) => isShown([fields], name));
  const indent = Math.max(...shown.map((name) => name.length)) + 2;
  const valueIn = (name: string) => wrapped(textOf(fields[name]), Math.max(NARROWEST_VALUE, width - indent), indent);
  return shown.map((name) => `${name.padEnd(indent)}${valueIn(name)}`.trimEnd()).join('\n');
}
const NARROWEST_VALUE = 10;
