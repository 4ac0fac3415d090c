import { type RawBuilder, sql } from 'kysely';
import { startFailure } from '../runtime/startFailure.ts';
import type { Database } from './connect.ts';
import { ID_SHIFT, TABLES_OF_LASTING_IDS } from './incarnation.ts';
import { integrityRules, type Rule } from './integrityRules.ts';
import { executedMigrations, pendingMigrations } from './migrate.ts';
import { type Db, oneRow, query } from './query.ts';
import { schemaDifference } from './schemaDifference.ts';
import { TENANT_KEYS } from './tenantKeys.ts';
import { describeTable, type TableText } from './transfer/tableText.ts';

/** A kind of fault; `ids` are those of the first rows, with `/` between the columns of a composite key. */
export type Fault = { problem: string; rows: number; ids: string[]; whatToDo: string };

export type Verified = { tables: number; rows: number; pending: string[]; faults: Fault[] };

type OnProgress = (progress: { table: string; rows: number }) => void;

/**
 * Looks for rows that the constraints would refuse, and for what else a restore can break. It only reads, in batches by primary
 * key with a short transaction each, so that nodes may run meanwhile: each batch sees the tables at one moment.
 */
export async function verifyDatabase(
  database: Database,
  { onProgress = () => {}, rowsPerBatch = 5000 }: { onProgress?: OnProgress; rowsPerBatch?: number } = {},
): Promise<Verified> {
  const { db } = database;
  const orm = await database.orm();
  if (!(await executedMigrations(db)))
    throw startFailure('The database has no tables yet: run npx deckhand migrate first.');
  const pending = await pendingMigrations(db);
  const entities = [...orm.getMetadata().getAll().values()].toSorted((one, other) =>
    one.tableName < other.tableName ? -1 : 1,
  );
  // Theme versions have a column of the same name.
  const versioned = entities
    .filter(({ properties }) => 'version' in properties && 'deletion_id' in properties)
    .map(({ tableName }) => tableName);
  const rules = integrityRules(orm);

  const verified: Verified = { tables: 0, rows: 0, pending, faults: [] };
  for (const { tableName: name, primaryKeys } of entities) {
    const table = await readOnly(db, (db) => describeTable(db, name));
    if (table.columns.length === 0) continue;
    const columns = new Set(table.columns.map((column) => column.name));
    const found = rules.filter((rule) => rule.table === name && rule.columns.every((column) => columns.has(column)));
    const checks = await readOnly(db, (db) => checkRules(db, name));
    const onBatch = (rows: number) => onProgress({ table: name, rows: verified.rows + rows });
    const { rows, faults } = await verifyTable(db, table, primaryKeys, [...found, ...checks], rowsPerBatch, onBatch);
    verified.tables++;
    verified.rows += rows;
    verified.faults.push(...faults, ...(await sequenceFaults(db, table, pending.length === 0)));
  }
  // Pending migrations add what is missing.
  if (pending.length === 0)
    verified.faults.push(...(await schemaFaults(database)), ...(await triggerFaults(db, versioned)));
  return verified;
}

const readOnly = <Result>(db: Db, work: (db: Db) => Promise<Result>): Promise<Result> =>
  db.transaction().execute(async (transaction) => {
    await query(transaction, sql`set transaction read only`);
    return work(transaction);
  });

/** The check constraints of the database: one that is not validated may have wrong rows. */
async function checkRules(db: Db, table: string): Promise<Rule[]> {
  const checks = await query(
    db,
    sql<{ name: string; expression: string }>`
      select conname as name, pg_get_expr(conbin, conrelid) as expression from pg_constraint
      where contype = 'c' and conrelid = to_regclass(quote_ident(${table})) order by conname`,
  );
  return checks.map(({ name, expression }) => ({
    table,
    columns: [],
    problem: `${table} violates ${name}: ${expression}`,
    whatToDo: 'Correct the columns that it names.',
    isWrong: sql<boolean>`(${sql.raw(expression)}) is false`,
  }));
}

type Batch = { rows: number; last: string[] | null; faults: { rule: number; rows: number; ids: string[] }[] };

async function verifyTable(
  db: Db,
  table: TableText,
  primaryKeys: string[],
  rules: Rule[],
  rowsPerBatch: number,
  onBatch: (rows: number) => void,
): Promise<{ rows: number; faults: Fault[] }> {
  const faults = rules.map(({ problem, whatToDo }): Fault => ({ problem, rows: 0, ids: [], whatToDo }));
  let rows = 0;
  let after: string[] | null = null;
  do {
    const statement: RawBuilder<Batch> = batchStatement(table, primaryKeys, rules, after, rowsPerBatch);
    const batch = oneRow(await readOnly(db, (db) => query(db, statement)));
    for (const found of batch.faults) {
      const fault = faults[found.rule]!;
      fault.rows += found.rows;
      fault.ids = [...fault.ids, ...found.ids].slice(0, MOST_IDS);
    }
    rows += batch.rows;
    after = batch.last;
    onBatch(rows);
  } while (after !== null);
  return { rows, faults: faults.filter((fault) => fault.rows > 0) };
}

const MOST_IDS = 5;

/** The next rows by primary key, and which rules they break. One statement, so that it sees rows and parents at one moment. */
function batchStatement(
  { name, columns }: TableText,
  primaryKeys: string[],
  rules: Rule[],
  after: string[] | null,
  size: number,
): RawBuilder<Batch> {
  const keys = primaryKeys.map((key) => sql.ref(key));
  const types = primaryKeys.map((key) => sql.raw(columns.find((column) => column.name === key)!.type));
  const values = after?.map((value, at) => sql`${value}::text::${types[at]}`);
  const next = values ? sql`where (${sql.join(keys)}) > (${sql.join(values)})` : sql``;
  const ids = sql.join(keys.map((key) => sql`t.${key}::text`));
  const tested = rules.map(({ isWrong }, at) => sql`(${sql.lit(at)}, ${isWrong})`);
  const faults = sql`
    select rule, count(*)::int as rows, (array_agg(concat_ws('/', ${ids}) order by ${sql.join(keys)}))[1:${sql.lit(MOST_IDS)}] as ids
    from batch t cross join lateral (values ${sql.join(tested)}) as tested (rule, is_wrong) where is_wrong group by rule`;
  return sql`
    with batch as materialized (select * from ${sql.table(name)} ${next} order by ${sql.join(keys)} limit ${sql.lit(size)})
    select (select count(*)::int from batch) as rows,
      (select json_build_array(${ids}) from batch t order by ${sql.join(keys.map((key) => sql`${key} desc`))} limit 1) as last,
      coalesce((select json_agg(faults) from (${tested.length > 0 ? faults : sql`select where false`}) as faults), '[]') as faults`;
}

/** A restore of rows alone may leave the counter behind: new rows would get ids that exist. */
async function sequenceFaults(db: Db, { name, columns }: TableText, isShifted: boolean): Promise<Fault[]> {
  const faults: Fault[] = [];
  for (const { name: column, sequence } of columns) {
    if (sequence === null) continue;
    const id = sql.ref(column);
    const shift = isShifted && TABLES_OF_LASTING_IDS.includes(name) ? ID_SHIFT : sql`0`;
    const [counter] = await query(
      db,
      sql<{ largest: number; next: string }>`
        select (select coalesce(max(${id}), 0) from ${sql.table(name)}) as largest,
          (last_value + is_called::int + ${shift})::text as next from ${sql.raw(sequence)}`,
    );
    const { largest, next } = counter!;
    if (Number(next) > largest) continue;
    faults.push({
      problem: `${name}.${column}: the next new row would get the id ${next}, which is not above the largest one`,
      rows: 1,
      ids: [String(largest)],
      whatToDo: `Run: select setval('${sequence}', ${largest});`,
    });
  }
  return faults;
}

/**
 * A restore may leave the triggers of versions out, disabled, or enabled for replication only (`R`). The triggers that fill columns
 * need no look: check constraints refuse rows with wrong columns.
 */
async function triggerFaults(db: Db, tables: string[]): Promise<Fault[]> {
  const found = await query(
    db,
    sql<{ table: string; trigger: string; isMissing: boolean }>`
      select name as table, name || '_raise_version' as trigger, t.tgname is null as "isMissing"
      from unnest(${tables}::text[]) as name
      left join pg_trigger t on t.tgrelid = to_regclass(name) and t.tgname = name || '_raise_version'
      where t.tgenabled is null or t.tgenabled in ('D', 'R') order by name`,
  );
  return found.map(({ table, trigger, isMissing }) => ({
    problem: `The trigger ${trigger} is ${isMissing ? 'missing' : 'disabled'}: versions of ${table} do not rise`,
    ...{ rows: 0, ids: [] },
    whatToDo: isMissing
      ? `Run: delete from mikro_orm_migrations where name = '${ROW_VERSIONS}'; Then: npx deckhand migrate`
      : `Run: alter table ${table} enable trigger ${trigger};`,
  }));
}
const ROW_VERSIONS = 'Migration20261118100000_row_versions';

/** Tables, columns, indexes and constraints that are missing, or not validated. */
async function schemaFaults({ orm, db }: Database): Promise<Fault[]> {
  const difference = (await schemaDifference(await orm())).filter((statement) =>
    /^create |^alter table .* add /.test(statement),
  );
  const constraints = await query(
    db,
    sql<{ name: string; isValid: boolean }>`
      select conname as name, convalidated as "isValid" from pg_constraint
      where connamespace = current_schema()::regnamespace order by conname`,
  );
  const names = new Set(constraints.map(({ name }) => name));
  const fault = (problem: string, whatToDo: string): Fault => ({ problem, rows: 0, ids: [], whatToDo });
  return [
    ...difference.map((statement) => fault('The tables lack something', `Run: ${statement}`)),
    ...Object.entries(TENANT_KEYS)
      .filter(([name]) => !names.has(name))
      .map(([name, { table, columns, target, key, onDelete }]) =>
        fault(
          `The foreign key ${name} is missing`,
          `Run: alter table ${table} add constraint ${name} foreign key (${columns.join(', ')}) references ${target} (${key.join(', ')})${onDelete ? ` on delete ${onDelete.toLowerCase()}` : ''};`,
        ),
      ),
    ...constraints
      .filter(({ isValid }) => !isValid)
      .map(({ name }) =>
        fault(
          `The constraint ${name} is not validated`,
          'Repair the rows above, then: alter table … validate constraint ….',
        ),
      ),
  ];
}
