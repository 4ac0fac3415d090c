import { sql } from 'kysely';
import { invalid, notFound } from '../../../shared/errors.ts';
import type { OwnProjectList, ProjectCreate, ProjectList, ProjectUpdate } from '../../../shared/project.ts';
import { bulkTransaction } from '../../database/bulk.ts';
import { readPage } from '../../database/page.ts';
import { lockProject } from '../../database/projectLock.ts';
import { containsText, type Db, mapConstraintErrors, transact } from '../../database/query.ts';
import { NOW } from '../../database/timestamp.ts';
import { defaultProjectOf } from '../access/caller.ts';
import type { AccountContext, Caller, ProvisioningContext } from '../access/context.ts';
import { differingFields, writeEvents } from '../event/event.ts';
import { fillProject, lockMasterBoards } from '../template/template.ts';

/** The active projects of the caller. */
export async function listOwnProjects({ db, caller }: AccountContext, { id, search, ...page }: OwnProjectList) {
  // Looked up once, however many rows there are.
  const ofCaller = sql`select ${defaultProjectOf(sql`${caller.superadmin}::boolean`)} from users u where u.id = ${caller.id}`;
  const projects = db
    .selectFrom('members as m')
    .innerJoin('projects as p', 'p.id', 'm.project_id')
    .innerJoin('platforms as pl', 'pl.id', 'p.platform_id')
    .select(['p.id', 'p.platform_id', 'p.name', 'pl.name as platform_name', 'm.role'])
    .select(sql<boolean>`coalesce(p.id = (${ofCaller}), false)`.as('is_default'))
    .where('m.user_id', '=', caller.id)
    .where('p.is_active', 'is', true)
    .where(({ and }) => and({ 'p.id': caller.key?.projectId ?? undefined }))
    .where(({ and }) => and({ 'p.id': id ?? undefined }))
    .where(containsText(search, 'p.name'));
  return readPage('projects', projects, page, ['p.id']);
}

/** Whether a project is active and the user is a member of it or has a right in it; undefined if there is none. */
export async function isOwnProject(
  db: Db,
  { id, superadmin }: Pick<Caller, 'superadmin'> & { id: number },
  projectId: number,
): Promise<boolean | undefined> {
  const project = await db
    .selectFrom('projects as p')
    .innerJoin('users as u', (user) => user.on('u.id', '=', id))
    .leftJoin('members as m', (own) => own.onRef('m.project_id', '=', 'p.id').onRef('m.user_id', '=', 'u.id'))
    .select(['p.is_active', 'u.superadmin_billing', 'm.role'])
    .where('p.id', '=', projectId)
    .executeTakeFirst();
  return project?.is_active && (superadmin || project.superadmin_billing || project.role !== null);
}

/** Creates a project with its tools, and copies the master boards that it has access to. */
export async function createProject(context: ProvisioningContext, { platform_id, name, tools }: ProjectCreate) {
  return bulkTransaction(context.db, async (db) => {
    const boards = await lockMasterBoards(db);
    const inserted = db.insertInto('projects').values({ platform_id, name }).returning('id').executeTakeFirstOrThrow();
    const { id } = await mapConstraintErrors(inserted, {
      projects_platform_id_foreign: () => invalid({ platform_id: 'does not exist' }, 'unknown_reference'),
    });
    await setTools(db, id, tools);
    const project = await findProject(db, id);
    const accessible = boards.filter((board) => hasAccess(project, board));
    await fillProject(db, id, accessible);
    await writeEvents({ ...context, db }, [{ type: 'project.created', project_id: id, subject_id: id }]);
    return { project };
  });
}

/**
 * Changes the sent fields of a project; `tools` replaces the previous ones. It gets the master boards of new tools; when it
 * becomes active again, all that it has access to, since it missed their syncs.
 */
export async function updateProject(context: ProvisioningContext, { id, name, is_active, tools }: ProjectUpdate) {
  const getsBoards = tools != null || is_active === true;
  return (getsBoards ? bulkTransaction : transact)(context.db, async (db) => {
    const boards = getsBoards ? await lockMasterBoards(db) : [];
    await lockProject(db, id);
    const before = await projectsWithTools(db).where('id', '=', id).executeTakeFirstOrThrow(unknownProject);

    await db
      .updateTable('projects')
      .set({ name: name ?? undefined, is_active: is_active ?? undefined, updated_at: NOW })
      .where('id', '=', id)
      .execute();
    if (tools) await setTools(db, id, tools);
    const project = await findProject(db, id);
    const gained = boards.filter((board) => hasAccess(project, board) && !hasAccess(before, board));
    const count = await fillProject(db, id, gained);
    const fields = differingFields(before, project);
    const data = { fields, ...(count > 0 && { count }) };
    const updated = { type: 'project.updated', project_id: id, subject_id: id, data } as const;
    await writeEvents({ ...context, db }, fields.length > 0 ? [updated] : []);
    return { project };
  });
}

/** Whether a project gets the copies of a master board. */
const hasAccess = (
  { is_active, tools }: { is_active: boolean; tools: string[] },
  { tool_key }: { tool_key: string | null },
) => is_active && (tool_key === null || tools.includes(tool_key));

export const unknownProject = () => notFound('There is no such project.');

export async function listProjects({ db }: ProvisioningContext, { platform_id, id, search, ...page }: ProjectList) {
  const projects = projectsWithTools(db)
    .where(({ and }) => and({ platform_id: platform_id ?? undefined, id: id ?? undefined }))
    .where(containsText(search, 'name'));
  return readPage('projects', projects, page);
}

const findProject = (db: Db, id: number) => projectsWithTools(db).where('id', '=', id).executeTakeFirstOrThrow();

/** Projects as superadmins see them. */
const projectsWithTools = (db: Db) =>
  db.selectFrom('projects').select(['id', 'platform_id', 'name', 'is_active', TOOLS, 'created_at', 'updated_at']);

const TOOLS = sql<string[]>`coalesce(
  (select json_agg(tool_key order by tool_key) from project_tools where project_id = projects.id), '[]')`.as('tools');

async function setTools(db: Db, projectId: number, tools: string[]): Promise<void> {
  await db
    .deleteFrom('project_tools')
    .where('project_id', '=', projectId)
    .where('tool_key', '<>', sql<string>`all (${tools}::text[])`)
    .execute();
  const added = sql<string>`unnest(${tools}::text[])`.as('tool_key');
  await db
    .insertInto('project_tools')
    .columns(['project_id', 'tool_key'])
    .expression(db.selectNoFrom([sql<number>`${projectId}::int`.as('project_id'), added]))
    .onConflict((known) => known.doNothing())
    .execute();
}
