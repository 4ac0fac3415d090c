import { readFile } from 'node:fs/promises';
import type { Migration } from '@mikro-orm/migrations';
import { describe, expect, it } from 'vitest';
import { entities } from '../../server/database/entities.ts';
import { migrationNames } from '../../server/database/migrate.ts';
import { StepwiseMigration } from '../../server/database/stepwiseMigration.ts';

/** The statements of one transaction; those outside a transaction are alone. */
type Step = { isTransaction: boolean; statements: string[] };

const LOCK_ORDER = entities.map(({ meta }) => meta.tableName);

/** A driver that records statements and finds no rows. */
function recordingDriver() {
  const steps: Step[] = [];
  const driver = {
    execute: async (statement: string, _values: unknown, _method: string, transaction?: Step) => {
      if (transaction) transaction.statements.push(statement);
      else steps.push({ isTransaction: false, statements: [statement] });
      return [];
    },
    getConnection: () => ({
      transactional: async (work: (transaction: Step) => Promise<void>) => {
        const step = { isTransaction: true, statements: [] };
        steps.push(step);
        await work(step);
      },
    }),
  };
  return { driver, steps };
}

async function stepsOf(name: string): Promise<Step[]> {
  const module = await import(`../../server/database/migrations/${name}.ts`);
  const { driver, steps } = recordingDriver();
  const migration: Migration = new module[name](driver, undefined);
  await migration.up();
  const statements = migration.getQueries().map(String);
  return migration instanceof StepwiseMigration ? steps : [{ isTransaction: true, statements }];
}

const TABLE = '(?:"?public"?\\.)?"?(\\w+)"?';
const named = (statement: string, pattern: string) =>
  [...statement.matchAll(new RegExp(pattern.replaceAll('TABLE', TABLE), 'gi'))].map((match) => match[1]!);

const createdIn = (statement: string) => named(statement, 'create table (?:if not exists )?TABLE');
const changedIn = (statement: string) => [
  ...named(statement, '\\b(?:alter table|truncate|lock table) (?:only )?(?:if exists )?TABLE'),
  ...named(statement, 'create (?:or replace )?trigger [\\s\\S]*? on TABLE'),
  ...named(statement, 'drop trigger (?:if exists )?\\S+ on TABLE'),
];
const referredTo = (statement: string) => named(statement, 'references TABLE');

/** What breaks a rule of docs/adding.md. */
function violations({ isTransaction, statements }: Step): string[] {
  const created = new Set(statements.flatMap(createdIn));
  const existing = (tables: string[]) => [...new Set(tables)].filter((table) => !created.has(table));
  const changed = existing(statements.flatMap(changedIn));
  const referred = existing(statements.flatMap(referredTo)).filter((table) => !changed.includes(table));
  const found = (pattern: RegExp, rule: string) =>
    statements.filter((statement) => pattern.test(statement)).map((statement) => `${rule}: ${statement.trim()}`);

  const ofExisting = statements.filter((statement) => existing(changedIn(statement)).length > 0);
  const unchecked = ofExisting.filter(
    (statement) =>
      /add (constraint|foreign key|check|unique|primary key)/i.test(statement) &&
      !/not valid|using index/i.test(statement),
  );
  const indexes = statements.filter((statement) =>
    existing(named(statement, 'create (?:unique )?index (?:if not exists )?"?\\w+"? on TABLE')).some(Boolean),
  );
  return [
    ...(changed.length > 1 ? [`changes several tables: ${changed.join(', ')}`] : []),
    ...(changed.length === 0 && !isSorted(referred) ? [`refers to tables out of order: ${referred.join(', ')}`] : []),
    ...found(/^\s*lock table|statement_timeout|lock_timeout = (?!'100ms')/i, 'sets locks or timeouts by itself'),
    ...found(
      /alter column \S+ (set not null|type |set data type)|generated always as \([\s\S]*\) stored/i,
      'scans or rewrites',
    ),
    ...unchecked.map((statement) => `checks all rows under a lock: ${statement}`),
    ...indexes.map((statement) => `blocks writes while it builds an index: ${statement}`),
    ...(isTransaction ? [] : found(/^\s*(update|delete|insert)\b/i, 'rewrites rows outside a batch')),
  ];
}

const isSorted = (tables: string[]) =>
  tables.every((table, at) => at === 0 || LOCK_ORDER.indexOf(tables[at - 1]!) <= LOCK_ORDER.indexOf(table));

/** They create the tables, so they run only on an empty database. */
const FIRST = ['Migration20261115000000_create_tables', 'Migration20261115000001_same_tenant_references'];

describe('every migration', async () => {
  const names = (await migrationNames()).filter((name) => !FIRST.includes(name));

  it.each(names)('%s takes short locks, in one order', async (name) => {
    const steps = await stepsOf(name);

    expect(steps.flatMap(violations)).toEqual([]);
  });

  it.each(names)('%s rewrites rows only in batches', async (name) => {
    const text = await readFile(new URL(`../../server/database/migrations/${name}.ts`, import.meta.url), 'utf8');
    if (!/\b(update|delete from|insert into)\b[^`']*\b(set|where|select|values)\b/i.test(text)) return;

    expect(text).toContain('extends StepwiseMigration');
  });

  it.each([
    ['two tables', ['alter table "users" add "a" int', 'alter table "cards" add "b" int'], 'changes several tables'],
    ['an index', ['create index "x" on "cards" ("id")'], 'blocks writes'],
    ['a constraint', ['alter table "cards" add constraint "x" check (id > 0)'], 'checks all rows'],
    ['a lock', ['lock table cards in share mode'], 'sets locks'],
    ['a changed type', ['alter table "cards" alter column "title" type text'], 'scans or rewrites'],
    [
      'references out of order',
      [
        'create table "x" ("id" int)',
        'alter table "x" add foreign key ("id") references "cards", add foreign key ("id") references "users"',
      ],
      'out of order',
    ],
  ])('is refused with %s', (_name, statements, reason) => {
    expect(violations({ isTransaction: true, statements }).join()).toContain(reason);
  });
});
