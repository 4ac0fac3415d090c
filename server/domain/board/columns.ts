import { type RawBuilder, sql } from 'kysely';
import type { z } from 'zod';
import type { Row, RowChanges } from '../../database/tables.ts';

/** What inserts, updates, calls with many rows, templates and limits of size have to know of a column. */
type ColumnTraits = {
  type: 'text' | 'int' | 'boolean' | 'timestamptz';
  /** Can't be null. In an update, null leaves it as it is. */
  isRequired?: true;
  /** Required, too; of a new row that does not have it. */
  default?: string | boolean;
  /** How copies get it from their template: `once`, when they are added, or `always`, also when it changes. */
  copied?: 'once' | 'always';
  /** It counts in the size of responses. */
  isLong?: true;
  /** The field in requests and events, if it has another name. */
  field?: string;
};

/**
 * Every column that requests write. Who may write it follows from the inputs in `shared/`, which leave out the others. What all
 * nouns handle in the same way is not here: ids, projects, positions and times.
 */
const COLUMNS = {
  boards: {
    title: { type: 'text', isRequired: true, copied: 'always', isLong: true },
    description: { type: 'text', copied: 'always', isLong: true },
    tool_key: { type: 'text', copied: 'always' },
    is_active: { type: 'boolean', default: true, copied: 'always' },
  },
  groups: {
    title: { type: 'text', isRequired: true, copied: 'always', isLong: true },
    description: { type: 'text', copied: 'always', isLong: true },
    type: { type: 'text', copied: 'always' },
    color: { type: 'text', copied: 'always' },
    icon: { type: 'text', copied: 'always' },
    is_active: { type: 'boolean', default: true, copied: 'always' },
    is_collapsed: { type: 'boolean', default: false, copied: 'once' },
  },
  cards: {
    title: { type: 'text', isRequired: true, copied: 'always', isLong: true },
    short_description: { type: 'text', copied: 'always', isLong: true },
    description: { type: 'text', copied: 'always', isLong: true },
    evaluation_check: { type: 'text', copied: 'always' },
    tour_key: { type: 'text', copied: 'always' },
    unique_identifier: { type: 'text', isRequired: true, copied: 'always' },
    is_active: { type: 'boolean', default: true, copied: 'always' },
    status: { type: 'text', default: 'open', copied: 'once' },
    priority: { type: 'text', default: 'normal', copied: 'once' },
    group_id: { type: 'int' },
    owner_id: { type: 'int' },
    tag_id: { type: 'int' },
    due_date: { type: 'timestamptz' },
    is_due_at_midnight: { type: 'boolean', default: false, field: 'due_date' },
    sort_order: { type: 'int', isRequired: true },
  },
  comments: {
    comment: { type: 'text', isRequired: true, isLong: true },
  },
  tags: {
    name: { type: 'text', isRequired: true },
    color: { type: 'text' },
    icon: { type: 'text' },
    is_active: { type: 'boolean', default: true },
  },
} as const satisfies { [Table in 'boards' | 'groups' | 'cards' | 'comments' | 'tags']: Partial<Traits<Table>> };
type Traits<Table extends 'boards' | 'groups' | 'cards' | 'comments' | 'tags'> = Record<keyof Row<Table>, ColumnTraits>;

type Noun = keyof typeof COLUMNS;
export type WrittenColumn<Table extends Noun> = keyof (typeof COLUMNS)[Table] & string;

const traitsOf = (table: Noun): Record<string, ColumnTraits> => COLUMNS[table];

function columnsWhere<Table extends Noun>(table: Table, test: (traits: ColumnTraits, name: string) => boolean) {
  const found = Object.entries(traitsOf(table)).filter(([name, traits]) => test(traits, name));
  return found.map(([name]) => name as WrittenColumn<Table>);
}

/** The columns that an input writes. */
export const columnsOf = <Table extends Noun>(table: Table, input: z.ZodObject) =>
  columnsWhere(table, ({ field }, name) => (field ?? name) in input.shape);

/** The columns that copies get from their template: with `once`, also those that they get only when they are added. */
export const copiedColumns = <Table extends Noun>(table: Table, when: 'once' | 'always') =>
  columnsWhere(table, ({ copied }) => copied === 'always' || copied === when);

export const longTexts = (table: Noun) => columnsWhere(table, ({ isLong }) => isLong === true);

/** The field of requests and events that a column belongs to. */
export const fieldOf = (table: string, column: string): string =>
  (COLUMNS as Record<string, Record<string, ColumnTraits>>)[table]?.[column]?.field ?? column;

/** The columns that the sent fields change. Null is not sent where a column can't be null. */
export function changesIn<Table extends Noun>(table: Table, sent: Sent<Table>): RowChanges<Table> {
  const changed = Object.entries(traitsOf(table)).flatMap(([name, traits]) => {
    const value = sent[name as keyof Sent<Table>];
    const isKept = value === undefined || (value === null && (traits.isRequired || traits.default !== undefined));
    return isKept ? [] : [[name, value]];
  });
  return Object.fromEntries(changed) as RowChanges<Table>;
}
export type Sent<Table extends Noun> = {
  [Column in keyof RowChanges<Table>]?: RowChanges<Table>[Column] | null | undefined;
};

/** Names of columns, for `insert` and `select`. */
export const namesOf = (columns: readonly string[], alias?: string): RawBuilder<unknown> =>
  sql.join(columns.map((column) => sql.ref(alias === undefined ? column : `${alias}.${column}`)));

/** The values of these columns in a new row, with their defaults instead of null. */
export const newValues = <Table extends Noun, Column extends WrittenColumn<Table>>(
  table: Table,
  columns: readonly Column[],
  valueFor: (column: Column) => RawBuilder<unknown>,
): RawBuilder<unknown> =>
  sql.join(
    columns.map((column) => {
      const { type, default: instead } = traitsOf(table)[column] as ColumnTraits;
      const value = sql`${valueFor(column)}::${sql.raw(type)}`;
      return instead === undefined ? value : sql`coalesce(${value}, ${sql.lit(instead)})`;
    }),
  );

/** These columns with their types, for `jsonb_to_recordset`. */
export const typedColumns = (table: Noun, columns: readonly string[]): RawBuilder<unknown> =>
  sql.join(columns.map((column) => sql`${sql.ref(column)} ${sql.raw((traitsOf(table)[column] as ColumnTraits).type)}`));
