import { sql } from 'kysely';
import type { Page } from '../../../shared/paging.ts';
import { Tag, type TagCreate, type TagDelete, type TagUpdate } from '../../../shared/tag.ts';
import { readPage } from '../../database/page.ts';
import { lockProject } from '../../database/projectLock.ts';
import { type Db, live, nextPosition, transact } from '../../database/query.ts';
import { insertRow } from '../../database/rows.ts';
import { VERSION, withVersion } from '../../database/version.ts';
import { actingProject } from '../access/access.ts';
import type { ProjectContext } from '../access/context.ts';
import { clearCards } from './cardReference.ts';
import { changesIn } from './columns.ts';
import { changeAndPlace, insertAt } from './position.ts';
import { restoredAs, restoreRow } from './restoration.ts';
import { deleteRow, findRow, mustHaveVersion } from './row.ts';

/** The columns of a tag in responses. */
const TAG_COLUMNS = Tag.keyof().options;

/** Creates a tag in the project, after the others unless a position was sent. */
export async function createTag(context: ProjectContext, { name, position, ...sent }: TagCreate) {
  const { caller } = context;
  const { id: project_id } = actingProject(caller);
  const last = sql`select max(position) from tags where project_id = ${project_id} and ${live()}`;
  const row = {
    project_id,
    name,
    ...changesIn('tags', sent),
    created_by: caller.id,
    position: position ?? nextPosition(last),
  };
  const event = { type: 'tag.created', position } as const;
  const lock = (db: Db) => lockProject(db, project_id);
  const siblings = { table: 'tags', isSibling: sql<boolean>`t.project_id = ${project_id}`, lock } as const;
  const insert = (db: Db) => insertRow(db, 'tags', row, [...TAG_COLUMNS, VERSION]);
  return withVersion('tag', await insertAt(context, event, siblings, insert));
}

/** The tags of the project in order. */
export async function listTags({ db, caller }: ProjectContext, page: Page) {
  const project = actingProject(caller);
  const tags = db.selectFrom('tags').select(TAG_COLUMNS).where('project_id', '=', project.id).where(live());
  return readPage('tags', tags, page, ['position', 'id']);
}

/** Changes the sent fields of a tag. */
export async function updateTag(context: ProjectContext, sent: TagUpdate) {
  return withVersion('tag', await changeAndPlace(context, 'tags', sent, TAG_COLUMNS));
}

/** Deletes a tag, and removes it from its cards. */
export async function deleteTag(context: ProjectContext, { id, if_version }: TagDelete) {
  const { project } = await findRow(context, 'tags', id);

  await transact(context.db, async (db) => {
    await lockProject(db, project.id);
    // Waits for changes that give it to cards, so that it is taken from these, too.
    await db.selectFrom('tags').select('id').where('id', '=', id).forUpdate().execute();
    await mustHaveVersion(db, 'tags', id, if_version);
    const { ids, data } = await clearCards(db, 'tag_id', sql`tag_id = ${id}`);
    const deletion_id = await deleteRow({ ...context, db }, 'tags', id, { data });
    // One list in one row: a row for each card would take longer.
    const taken = sql<number[]>`${ids}::int[]`;
    const changes = { card_ids: taken, count: sql<number>`cardinality(${taken})` };
    if (ids !== null) await db.updateTable('deletions').set(changes).where('id', '=', deletion_id).execute();
  });
}

/** Restores a tag on the cards that it was taken from, except those that got another. */
export async function restoreTag(context: ProjectContext, { id }: { id: number }) {
  return restoredAs('tag', await restoreRow(context, 'tags', id, TAG_COLUMNS));
}
