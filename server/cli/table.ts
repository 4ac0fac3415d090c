/** Formats a result for people: a list as a table, a row as its fields, rows with rows in them as a tree. */
export function asText(result: unknown): string {
  if (result === undefined || result === null) return 'Done.';
  const { next_cursor, ...named } = result as Fields;
  const parts = Object.entries(named).flatMap(([name, value]) => partOf(name, value));
  const facts = Object.fromEntries(Object.entries(named).filter(([name, value]) => isFact(name, value)));
  if (Object.keys(facts).length > 0) parts.push(fieldsAsList(facts));
  if (next_cursor) parts.push(`More: --cursor ${next_cursor}, or --all`);
  return parts.join('\n');
}

type Fields = Record<string, unknown>;

function partOf(name: string, value: unknown): string[] {
  if (Array.isArray(value)) return [rowsAsText(value)];
  if (isFact(name, value) || !isFields(value)) return [];
  return [nestedIn(value) ? rowAsTree(value) : fieldsAsList(value)];
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);

const isFact = (name: string, value: unknown) =>
  value !== null && !IN_NO_TEXT.has(name) && !isFields(value) && !Array.isArray(value);

function rowsAsText(rows: unknown[]): string {
  if (rows.length === 0) return 'None.';
  if (!rows.every(isFields)) return rows.map(textOf).join('\n');
  return rows.some(nestedIn) ? rows.map(rowAsTree).join('\n\n') : rowsAsTable(rows, shownColumns(rows));
}

/** Lists of rows inside a row; other lists, such as the tools of a project, are values. */
const NESTED = ['groups', 'cards', 'replies'];

const nestedIn = (row: Fields) => NESTED.find((name) => Array.isArray(row[name]));

/** A heading with the most important fields, and below it, indented, the rows inside. */
function rowAsTree(row: Fields): string {
  const name = nestedIn(row)!;
  const rows = row[name] as Fields[];
  const [, text, ...facts] = briefColumns(row);
  const about = facts.map((column) => `${column} ${textOf(row[column])}`).join(', ');
  const heading = `${row.id}  ${textOf(row[text!])}${about && `  (${about})`}`;
  const { [`${name}_next_cursor`]: cursor } = row;
  const more = cursor ? [`More ${name}: --cursor ${cursor}`] : [];
  if (rows.length === 0) return [heading, ...more].join('\n');

  const below = rows.some(nestedIn) ? rows.map(rowAsTree).join('\n\n') : rowsAsTable(rows, briefColumns(...rows));
  const gap = rows.some(nestedIn) ? '\n\n' : '\n';
  return heading + gap + [below, ...more].join('\n').replaceAll(/^(?=.)/gm, '  ');
}

/** In trees only these columns of titled rows and of comments are shown. */
const briefColumns = (...rows: Fields[]) =>
  ['id', 'title', 'status', 'owner_id', 'due_date', 'comment', 'user_id', 'created_at'].filter(
    (column) => isShown(rows, column) && !(column === 'created_at' && 'title' in rows[0]!),
  );

function shownColumns(rows: Fields[]): string[] {
  const shown = Object.keys(rows[0]!).filter((column) => isShown(rows, column) && !IN_NO_TABLE.has(column));
  // Projects and subscriptions show their platform; what belongs to a project has it from there.
  const isOfProject = shown.includes('project_id') && !shown.includes('product');
  const others = shown.filter((column) => column !== 'platform_id' || !isOfProject);
  return [...new Set(['id', 'title', ...others])].filter((column) => others.includes(column));
}

const isShown = (rows: Fields[], column: string) =>
  !IN_NO_TEXT.has(column) && rows.some((row) => row[column] !== null && row[column] !== undefined);

/** Fields that `--json` alone has: for programs, or too long. */
const IN_NO_TEXT = new Set(['deleted_at', 'qr_svg']);
const IN_NO_TABLE = new Set([
  'created_by',
  'description',
  'evaluation_check',
  'is_master',
  'sort_order',
  'unique_identifier',
  'updated_at',
]);

function rowsAsTable(rows: Fields[], columns: string[]): string {
  const lines = [columns, ...rows.map((row) => columns.map((column) => shortened(textOf(row[column]))))];
  const widths = columns.map((_, at) => Math.max(...lines.map((line) => line[at]!.length)));
  const padded = lines.map((line) => line.map((cell, at) => cell.padEnd(widths[at]!)).join('  '));
  return padded.map((line) => line.trimEnd()).join('\n');
}

const shortened = (cell: string) => (cell.length > LONGEST_CELL ? `${cell.slice(0, LONGEST_CELL - 1)}…` : cell);
const LONGEST_CELL = 60;

function fieldsAsList(fields: Fields): string {
  const shown = Object.keys(fields).filter((name) => isShown([fields], name));
  const width = Math.max(...shown.map((name) => name.length));
  return shown.map((name) => `${name.padEnd(width)}  ${textOf(fields[name])}`.trimEnd()).join('\n');
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (value instanceof Date) return value.toISOString();
  // Control characters in values must not break the rows.
  return (Array.isArray(value) ? value.join(', ') : String(value)).replaceAll(/\p{Cc}/gu, ' ');
}
