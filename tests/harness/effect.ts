import { sql } from 'kysely';
import { query } from '../../server/database/query.ts';
import { testDb } from './world.ts';

type Row = Record<string, unknown>;

/** What was written to each table since a moment, and how many rows it has now. */
export type Written = { tables: Record<string, { rows: Row[]; count: number }>; moment: number };

/** A moment to measure from: what is written later has a higher number. */
export async function now(): Promise<number> {
  const [found] = await query(await testDb(), sql<{ moment: number }>`select ${MOMENT} as moment`);
  return found!.moment;
}
const MOMENT = sql`pg_current_xact_id()::text::float8`;

/** Everything that was written since a moment, whoever wrote it: PostgreSQL keeps with each row which transaction did. */
export async function writtenSince(moment: number): Promise<Written> {
  const db = await testDb();
  tables ??= await query(
    db,
    sql<{ name: string }>`
      select table_name as name from information_schema.tables
      where table_schema = 'public' and table_name <> 'mikro_orm_migrations' order by 1`,
  );
  const parts = tables.map(
    ({ name }) => sql`${sql.lit(name)}, json_build_object(
      'count', (select count(*) from ${sql.table(name)}),
      'rows', (select coalesce(json_agg(to_jsonb(t) order by to_jsonb(t) -> 'id'), '[]') from ${sql.table(name)} t
        where t.xmin::text::bigint > ${moment}))`,
  );
  const [found] = await query(
    db,
    sql<Written>`
      select json_build_object(${sql.join(parts)}) as tables, ${MOMENT} as moment`,
  );
  return found!;
}
let tables: { name: string }[] | undefined;

/** Names for ids, by table: so that two worlds can be compared whose rows are alike, and have ids of their own. */
type Names = Map<string, string>;

/** Names what was written after its table and its place in it: that of the one world is called as that of the other. */
export function nameRows({ tables }: Written, owner: string, names: Names = new Map()): Names {
  for (const [table, { rows }] of Object.entries(tables)) {
    const unnamed = rows.filter(({ id }) => typeof id === 'number' && !names.has(`${table} ${id}`));
    for (const [at, { id }] of unnamed.entries()) names.set(`${table} ${id}`, `${owner} ${table} ${at + 1}`);
  }
  return names;
}

/** The same, with names for ids, and without what is by chance or by the clock. */
export function withNames(value: unknown, names: Names, table = 'users', key = ''): unknown {
  if (Array.isArray(value)) return value.map((part) => withNames(part, names, table, key));
  if (value !== null && /_at$/.test(key)) return 'a moment';
  if (typeof value === 'number') return names.get(`${tableOf(key, table)} ${value}`) ?? value;
  if (typeof value === 'string') return value.replace(UUID, 'a uuid').replace(TOKEN, 'a token');
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([field, part]) => [field, withNames(part, names, tableNamed(field) ?? table, field)]),
  );
}

const UUID = /[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g;
const TOKEN = /^eyJ[\w-]+\.[\w-]+\.[\w-]+$/;

const NOUNS: Record<string, string> = { owner: 'user', version: 'theme_version', run: 'template_run' };

/** The table that an id is of, by the name of its field: `parent_comment_id` is of comments. */
function tableOf(key: string, table: string): string | undefined {
  if (key === 'id') return table;
  if (key === 'created_by') return 'users';
  const noun = /^(?:(?:master|parent|default|replacement)_)?(\w+)_id$/.exec(key)?.[1];
  return noun && `${NOUNS[noun] ?? noun}s`;
}

/** The table of an object in an answer, by the name of the field that holds it or a list of such. */
function tableNamed(field: string): string | undefined {
  return /^(board|group|card|comment|tag)s?$/.exec(field)?.[1]?.concat('s');
}
