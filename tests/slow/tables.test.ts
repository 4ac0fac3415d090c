import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sql } from 'kysely';
import { describe, expect, expectTypeOf, it } from 'vitest';
import type { Db } from '../../server/database/query.ts';
import type { NewRow, Row, RowChanges, TableName } from '../../server/database/tables.ts';
import type { ProjectContext } from '../../server/domain/access/context.ts';
import { readPage } from '../../server/domain/rows/page.ts';
import { changeRow, findRow, withoutNulls } from '../../server/domain/rows/row.ts';

/** Never called, only compiled: each valid line is followed by invalid ones that must not compile. */
export function statements(db: Db) {
  db.selectFrom('cards');
  // @ts-expect-error: there is no such table.
  db.selectFrom('card');

  db.selectFrom('cards').select(['id', 'due_date']);
  // @ts-expect-error: there is no such column.
  db.selectFrom('cards').select(['id', 'due']);

  db.selectFrom('cards').where('group_id', '=', 1);
  // @ts-expect-error: there is no such column.
  db.selectFrom('cards').where('group', '=', 1);
  // @ts-expect-error: an id is a number.
  db.selectFrom('cards').where('group_id', '=', '1');

  db.selectFrom('cards').innerJoin('groups', 'groups.id', 'cards.group_id');
  // @ts-expect-error: there is no such column.
  db.selectFrom('cards').innerJoin('groups', 'groups.id', 'cards.groups_id');

  db.insertInto('tags').values({ project_id: 1, name: 'Content' });
  // @ts-expect-error: a tag has a name.
  db.insertInto('tags').values({ project_id: 1 });
  // @ts-expect-error: there is no such column.
  db.insertInto('tags').values({ project_id: 1, name: 'Content', colour: 'red' });
  // @ts-expect-error: a position is a number.
  db.insertInto('tags').values({ project_id: 1, name: 'Content', position: 'first' });

  db.updateTable('cards').set({ priority: 'high', updated_at: sql<Date>`now()` });
  // @ts-expect-error: there is no such priority.
  db.updateTable('cards').set({ priority: 'highest' });
  // @ts-expect-error: a title can't be null.
  db.updateTable('cards').set({ title: null });
  // @ts-expect-error: there is no such column.
  db.updateTable('cards').set({ titel: 'Check links' });

  db.deleteFrom('sessions').where('user_id', '=', 1).returning('id');
  // @ts-expect-error: there is no such column.
  db.deleteFrom('sessions').where('user_id', '=', 1).returning('token');
}

/** The same for the functions that the domain shares. */
export function rows(context: ProjectContext) {
  findRow(context, 'comments', 1, ['user_id']);
  // @ts-expect-error: there is no such column.
  findRow(context, 'comments', 1, ['owner_id']);

  changeRow(context, 'tags', 1, { name: 'Content' }, ['id', 'project_id']);
  // @ts-expect-error: there is no such column.
  changeRow(context, 'tags', 1, { title: 'Content' }, ['id', 'project_id']);
  // @ts-expect-error: there is no such column.
  changeRow(context, 'tags', 1, { name: 'Content' }, ['id', 'project_id', 'title']);

  const tags = context.db.selectFrom('tags as t').select(['t.id', 't.position']);
  readPage('tags', tags, { limit: 1 }, ['t.position', 'id']);
  // @ts-expect-error: the rows have no such column.
  readPage('tags', tags, { limit: 1 }, ['t.name', 'id']);

  withoutNulls<'tags'>({ name: null });
  // @ts-expect-error: there is no such column.
  withoutNulls<'tags'>({ title: null });
}

/** Row changes may only have columns of the table. */
export const changes: RowChanges<'cards'>[] = [
  { title: 'Check links', due_date: null, tag_id: undefined },
  // @ts-expect-error: there is no such column.
  { title: 'Check links', is_overdue: true },
  // @ts-expect-error: a timestamp is a Date.
  { due_date: '2026-01-31' },
];

export const columns = [
  ['id', 'name'] as const satisfies (keyof Row<'platforms'>)[],
  // @ts-expect-error: there is no such column.
  ['id', 'title'] as const satisfies (keyof Row<'platforms'>)[],
];

describe('the tables, typed by the entities', () => {
  it('make unknown tables and columns, and wrong types, compile errors', async () => {
    const errors = await compile(import.meta.filename);

    expect(errors).toBe('');
  }, 120_000);

  it('give the types of rows and of inserts', () => {
    expectTypeOf<Row<'cards'>['id']>().toEqualTypeOf<number>();
    expectTypeOf<Row<'cards'>['due_date']>().toEqualTypeOf<Date | null>();
    expectTypeOf<Row<'cards'>['priority']>().toEqualTypeOf<'low' | 'normal' | 'high' | 'urgent'>();
    expectTypeOf<Row<'cards'>['group_id']>().toEqualTypeOf<number | null>();
    expectTypeOf<{ project_id: number; tool_key: string }>().toExtend<NewRow<'project_tools'>>();
    expectTypeOf<'theme_versions'>().toExtend<TableName>();
    expectTypeOf<'theme_version'>().not.toExtend<TableName>();
  });
});

describe('statements', () => {
  it('follow no references by recursion: a bad plan scans a table for each level', async () => {
    const domain = join(ROOT, 'server/domain');
    const texts = await Promise.all((await readdir(domain)).map((file) => readFile(join(domain, file), 'utf8')));

    expect(texts.filter((text) => /\bwith recursive\b/i.test(text))).toEqual([]);
  });
});

const ROOT = join(import.meta.dirname, '../..');

/** The compiler output for one file, with the settings of the project. */
async function compile(file: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'deckhand-types-'));
  try {
    const typeRoots = [join(ROOT, 'node_modules/@types')];
    const settings = {
      extends: join(ROOT, 'tsconfig.json'),
      include: [],
      files: [file],
      compilerOptions: { typeRoots },
    };
    await writeFile(join(directory, 'tsconfig.json'), JSON.stringify(settings));
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const run = promisify(execFile)(process.execPath, [tsc, '--pretty', 'false', '--checkers', '1'], {
      cwd: directory,
    });
    return await run.then(
      () => '',
      ({ stdout, stderr }) => `${stdout}${stderr}`,
    );
  } finally {
    await rm(directory, { recursive: true });
  }
}
