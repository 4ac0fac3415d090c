import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { readPage } from '../../server/database/page.ts';
import type { Db } from '../../server/database/query.ts';
import type { NewRow, Row, RowChanges, TableName } from '../../server/database/tables.ts';
import type { ProjectContext } from '../../server/domain/access/context.ts';
import { changesIn } from '../../server/domain/board/columns.ts';
import { changeRow, findRow } from '../../server/domain/board/row.ts';

/** Never called, only compiled (`npm run check`): each valid line is followed by invalid ones that must not compile. */
export function statements(db: Db) {
  db.selectFrom('cards').select(['id', 'due_date']).where('group_id', '=', 1);
  // @ts-expect-error: there is no such table.
  db.selectFrom('card');
  // @ts-expect-error: there is no such column.
  db.selectFrom('cards').select(['id', 'due']);
  // @ts-expect-error: an id is a number.
  db.selectFrom('cards').where('group_id', '=', '1');

  db.selectFrom('cards').innerJoin('groups', 'groups.id', 'cards.group_id');
  // @ts-expect-error: there is no such column.
  db.selectFrom('cards').innerJoin('groups', 'groups.id', 'cards.groups_id');

  db.insertInto('tags').values({ project_id: 1, name: 'Content' });
  // @ts-expect-error: a tag has a name.
  db.insertInto('tags').values({ project_id: 1 });
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

  const tags = context.db.selectFrom('tags as t').select(['t.id', 't.position']);
  readPage('tags', tags, { limit: 1 }, ['t.position', 'id']);
  // @ts-expect-error: the rows have no such column.
  readPage('tags', tags, { limit: 1 }, ['t.name', 'id']);

  changesIn('tags', { name: null });
  // @ts-expect-error: there is no such column.
  changesIn('tags', { title: null });
}

export const changes: RowChanges<'cards'>[] = [
  { title: 'Check links', due_date: null, tag_id: undefined },
  // @ts-expect-error: there is no such column.
  { title: 'Check links', is_overdue: true },
  // @ts-expect-error: a timestamp is a Date.
  { due_date: '2026-01-31' },
];

describe('the tables, typed by the entities', () => {
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
  it('follow no references by recursion: a bad plan scans a table for each level', () => {
    const domain = join(import.meta.dirname, '../../server/domain');
    const files = readdirSync(domain, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'));

    expect(files.length).toBeGreaterThan(20);
    expect(files.filter((path) => /\bwith recursive\b/i.test(readFileSync(join(domain, path), 'utf8')))).toEqual([]);
  });
});
