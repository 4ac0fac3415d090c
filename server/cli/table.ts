/** Formats a result: a list as a table, a single row as a list of fields, nothing as "Done.". */
export function asTable(result: unknown): string {
  if (result === undefined || result === null) return 'Done.';
  const { next_cursor, ...named } = result as Record<string, unknown>;
  const [content] = Object.values(named);
  const more = next_cursor ? `\nMore: --cursor ${next_cursor}` : '';
  if (Array.isArray(content)) return rowsAsTable(content) + more;
  return fieldsAsList(typeof content === 'object' && content !== null ? content : named);
}

function rowsAsTable(rows: unknown[]): string {
  if (rows.length === 0) return 'None.';
  if (typeof rows[0] !== 'object') return rows.map(textOf).join('\n');

  const columns = Object.keys(rows[0] as object);
  const lines = [
    columns,
    ...rows.map((row) => columns.map((column) => textOf((row as Record<string, unknown>)[column]))),
  ];
  const widths = columns.map((_, at) => Math.max(...lines.map((line) => line[at]!.length)));
  return lines
    .map((line) =>
      line
        .map((cell, at) => cell.padEnd(widths[at]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function fieldsAsList(fields: object): string {
  const width = Math.max(...Object.keys(fields).map((name) => name.length));
  return Object.entries(fields)
    .map(([name, value]) => `${name.padEnd(width)}  ${textOf(value)}`.trimEnd())
    .join('\n');
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (value instanceof Date) return value.toISOString();
  // Control characters in values must not break the rows.
  return (Array.isArray(value) ? value.join(', ') : String(value)).replaceAll(/\p{Cc}/gu, ' ');
}
