import { sql } from 'kysely';
import { allOf } from '../../database/query.ts';
import type { Removal } from '../../database/removal.ts';
import { singularOf } from '../../database/selection.ts';
import { daysBefore } from '../../database/timestamp.ts';
import { RESTORABLE } from '../board/nouns.ts';

/** The tables whose rows are templates, copies of templates, or neither. */
type CopiedTable = 'boards' | 'groups' | 'cards';

/** A column that refers to rows of a table. */
type Reference = { table: string; column: string };

/**
 * Rows that were soft-deleted long ago, contents first. A deleted copy stays as long as its template is not removed: it is what keeps a
 * sync from adding a new copy, so that what a project deleted stays deleted.
 */
export const deletedRowRemovals = (days: number): Removal[] => [
  {
    table: 'comments',
    due: (now) => sql`t.deleted_at < ${daysBefore(now, days)}`,
    by: 'deleted_at',
    isFree: nothingRefersTo([{ table: 'comments', column: 'parent_comment_id' }]),
  },
  ...copiedRows('cards', days, [{ table: 'template_runs', column: 'card_id' }], {
    table: 'comments',
    column: 'card_id',
    last: 'id',
  }),
  {
    table: 'tags',
    due: (now) => sql`t.deleted_at < ${daysBefore(now, days)}`,
    by: 'deleted_at',
    isFree: nothingRefersTo([{ table: 'cards', column: 'tag_id' }]),
  },
  ...copiedRows('groups', days, [
    { table: 'cards', column: 'group_id' },
    { table: 'template_runs', column: 'group_id' },
  ]),
  ...copiedRows('boards', days, [
    { table: 'groups', column: 'board_id' },
    { table: 'template_runs', column: 'board_id' },
    { table: 'rollouts', column: 'board_id' },
  ]),
  {
    table: 'deletions',
    due: (now) => sql`t.deleted_at < ${daysBefore(now, days)}`,
    by: 'deleted_at',
    isFree: allOf(RESTORABLE.map(isRemoved)),
  },
];

/** The deletion `t` is not of a row of this table, or that row is removed. */
const isRemoved = (table: string) => sql`
  not exists (select from ${sql.table(table)} r where r.id = t.subject_id and t.noun = ${sql.lit(singularOf(table))})`;

/** Copies of deleted templates, then the templates themselves and the rows that are neither. */
function copiedRows(
  table: CopiedTable,
  days: number,
  references: Reference[],
  contents?: Removal['contents'],
): Removal[] {
  const column = `master_${singularOf(table)}_id`;
  const master = sql.ref(`t.${column}`);
  const isFree = nothingRefersTo([...references, { table, column }]);
  return [
    {
      table,
      due: (now) => sql`t.deleted_at < ${daysBefore(now, days)} and ${master} in (
        select m.id from ${sql.table(table)} m
        where m.${sql.ref(column)} is null and m.is_master and m.deleted_at < ${daysBefore(now, days)})`,
      isFree,
      contents,
    },
    {
      table,
      due: (now) => sql`t.deleted_at < ${daysBefore(now, days)} and ${master} is null and not exists (
        select from ${sql.table(table)} c where c.${sql.ref(column)} = t.id and c.deleted_at is null)`,
      isFree,
      contents,
    },
  ];
}

const nothingRefersTo = (references: Reference[]) =>
  allOf(
    references.map(
      ({ table, column }) => sql`not exists (select from ${sql.table(table)} r where r.${sql.ref(column)} = t.id)`,
    ),
  );
