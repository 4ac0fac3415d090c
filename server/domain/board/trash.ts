import { type AliasedRawBuilder, type RawBuilder, sql } from 'kysely';
import type { Page } from '../../../shared/paging.ts';
import type { DeletionPreview } from '../../../shared/trash.ts';
import { readCursor, toPage } from '../../database/page.ts';
import { type Db, live, query } from '../../database/query.ts';
import { singularOf } from '../../database/selection.ts';
import { actingProject } from '../access/access.ts';
import type { ProjectContext, SignedInContext } from '../access/context.ts';
import { findMaster } from '../template/masterRow.ts';
import { repliesTo } from './comment.ts';
import { NOUNS, RESTORABLE, type Restorable } from './nouns.ts';
import { findRow } from './row.ts';

/** What was deleted in the project and can be restored, newest first. */
export function listTrash({ db, caller }: ProjectContext, page: Page) {
  return readTrash(db, sql`project_id = ${actingProject(caller).id}`, page);
}

/** The same for templates. */
export function listMasterTrash({ db }: SignedInContext, page: Page) {
  return readTrash(db, sql`project_id is null`, page);
}

type Entry = {
  deletion_id: number;
  type: string;
  id: number;
  title: string | null;
  count: number;
  deleted_by: number | null;
  deleted_at: Date;
};

/** A page of deletions, with the titles of their rows. Those whose row was removed meanwhile are left out. */
async function readTrash(db: Db, isThere: RawBuilder<unknown>, { cursor, limit }: Page) {
  const [before] = readCursor(cursor, 1);
  const found = await query(
    db,
    sql<Entry & { is_kept: boolean }>`
      select d.id as deletion_id, d.noun as type, d.subject_id as id, subject.title, d.count, d.user_id as deleted_by, d.deleted_at,
        coalesce(subject.is_kept, false) as is_kept
      from (
        select * from deletions where ${isThere} ${before === undefined ? sql`` : sql`and id < ${before}`}
        order by id desc limit ${limit + 1}
      ) as d left join lateral (${sql.join(SUBJECTS, sql` union all `)}) as subject on true
      order by d.id desc`,
  );
  const { entries, next_cursor } = toPage('entries', found, limit, ['deletion_id']);
  return { entries: entries.filter(({ is_kept }) => is_kept).map(({ is_kept, ...entry }) => entry), next_cursor };
}

/** How a row is called. */
function titleIn(table: Restorable): RawBuilder<string | null> {
  const { title } = NOUNS[table];
  return title === null ? sql`null::text` : sql.ref(title);
}

const SUBJECTS = RESTORABLE.map(
  (table) => sql`
    select ${titleIn(table)} as title, t.deleted_at is not null as is_kept from ${sql.table(table)} t
    where d.noun = ${sql.lit(singularOf(table))} and t.id = d.subject_id`,
);

/** What the deletion of a row would take along. */
export async function previewDeletion(context: ProjectContext, { type, id }: DeletionPreview) {
  const table = `${type}s` as const;
  const { row } = await findRow(context, table, id, countsOf(table, 't'));
  if (type !== 'comment') return row as Previewed;
  const { row: comment } = await findRow(context, 'comments', id, ['id', 'root_comment_id']);
  return { ...(row as Previewed), comments_count: (await repliesTo(context.db, comment)).length };
}

/** The same for a template. */
export async function previewMasterDeletion({ db }: SignedInContext, { type, id }: DeletionPreview) {
  const table = `${type}s` as 'boards' | 'groups' | 'cards';
  return (await findMaster(db, table, id, countsOf(table, table))) as Previewed;
}

type Previewed = { title: string | null; groups_count: number; cards_count: number; comments_count: number };

function countsOf(table: Restorable, alias: string): AliasedRawBuilder<unknown, string>[] {
  const id = sql.ref(`${alias}.id`);
  const count = (rows: RawBuilder<unknown>) => sql`(select count(*)::int from ${rows})`;
  const groups = sql`groups g where g.board_id = ${id} and ${live('g')}`;
  const cards: Partial<Record<Restorable, RawBuilder<unknown>>> = {
    boards: sql`groups g join cards c on c.group_id = g.id and ${live('c')} where g.board_id = ${id} and ${live('g')}`,
    groups: sql`cards c where c.group_id = ${id} and ${live('c')}`,
    tags: sql`cards c where c.tag_id = ${id} and ${live('c')}`,
  };
  return [
    titleIn(table).as('title'),
    (table === 'boards' ? count(groups) : sql`0`).as('groups_count'),
    (cards[table] ? count(cards[table]) : sql`0`).as('cards_count'),
    sql`0`.as('comments_count'),
  ];
}
