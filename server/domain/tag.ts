import { sql } from 'kysely';
import type { z } from 'zod';
import type { Page } from '../../shared/paging.ts';
import type { Tag, TagCreate, TagUpdate } from '../../shared/tag.ts';
import { behind, query, transact } from '../database/query.ts';
import type { ProjectContext } from '../trpc.ts';
import { readCursor, toPage } from './page.ts';
import { changeRow, deleteRow, findRow, lockProject, unlessNull } from './row.ts';

type TagRow = z.input<typeof Tag>;

/** Creates a tag of the project, behind the others unless a place was sent. */
export async function createTag(
  { db, caller: { id, project } }: ProjectContext,
  { name, color, icon, position }: TagCreate,
) {
  const [tag] = await query(
    db,
    sql<TagRow>`
      insert into tags (project_id, name, color, icon, created_by, position)
      values (${project.id}, ${name}, ${color ?? null}, ${icon ?? null}, ${id}, coalesce(${position ?? null}::int,
        ${behind(sql`select max(position) from tags where project_id = ${project.id} and deleted_at is null`)}))
      returning *`,
  );
  return { tag: tag! };
}

/** The tags of the project in their order. */
export async function listTags({ db, caller: { project } }: ProjectContext, { cursor, limit }: Page) {
  const [position, id] = readCursor(cursor, 2) ?? [null, null];
  const found = await query(
    db,
    sql<TagRow>`
      select * from tags
      where project_id = ${project.id} and deleted_at is null and (${id}::int is null or (position, id) > (${position}::int, ${id}::int))
      order by position, id limit ${limit + 1}`,
  );
  const { rows: tags, next_cursor } = toPage(found, limit, (tag) => [tag.position, tag.id]);
  return { tags, next_cursor };
}

/** Changes what was sent of a tag. */
export async function updateTag(context: ProjectContext, { id, name, position, is_active, ...clearable }: TagUpdate) {
  const changes = { ...clearable, ...unlessNull({ name, position, is_active }) };
  return { tag: await changeRow<TagRow>(context, 'tags', id, changes) };
}

/** Deletes a tag, and takes it off the cards that have it. */
export async function deleteTag(context: ProjectContext, { id }: { id: number }) {
  await findRow(context, 'tags', id);

  await transact(context.db, async (db) => {
    await lockProject(db, context.caller.project);
    await deleteRow({ ...context, db }, 'tags', id);
    await query(db, sql`update cards set tag_id = null, updated_at = now() where tag_id = ${id}`);
  });
}
