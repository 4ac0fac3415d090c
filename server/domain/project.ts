import { sql } from 'kysely';
import type { z } from 'zod';
import type { Page } from '../../shared/paging.ts';
import type { OwnProject, Project, ProjectCreate, ProjectList, ProjectUpdate } from '../../shared/project.ts';
import type { Provisioning } from '../context.ts';
import { type Db, orRefuse, query, transact } from '../database/query.ts';
import { invalid, notFound } from '../errors.ts';
import type { SignedInContext } from '../trpc.ts';
import { DEFAULT_PROJECT } from './caller.ts';
import { readCursor, toPage } from './page.ts';
import { assignments, unlessNull } from './row.ts';

type ProjectRow = z.input<typeof Project>;

/** The active projects that the caller belongs to. */
export async function listOwnProjects({ db, caller }: SignedInContext, { cursor, limit }: Page) {
  const [after] = readCursor(cursor, 1) ?? [0];
  const found = await query(
    db,
    sql<z.input<typeof OwnProject>>`
      select p.id, p.platform_id, p.name, pl.name as platform_name, m.role,
        coalesce(p.id = ${DEFAULT_PROJECT}, false) as is_default
      from members m
      join projects p on p.id = m.project_id and p.is_active
      join platforms pl on pl.id = p.platform_id
      join users u on u.id = m.user_id
      where m.user_id = ${caller.id} and p.id > ${after}
      order by p.id limit ${limit + 1}`,
  );
  const { rows: projects, next_cursor } = toPage(found, limit, ({ id }) => [id]);
  return { projects, next_cursor };
}

/** A project `p` with its tools, as superadmins see it. */
const PROJECT = sql`p.*, coalesce((select json_agg(t.tool_key order by t.tool_key) from project_tools t where t.project_id = p.id), '[]') as tools`;

export async function createProject({ db }: Provisioning, { platform_id, name, tools }: ProjectCreate) {
  return transact(db, async (db) => {
    const inserted = query(
      db,
      sql<{ id: number }>`insert into projects (platform_id, name) values (${platform_id}, ${name}) returning id`,
    );
    const [created] = await orRefuse(inserted, {
      projects_platform_id_foreign: () => invalid({ platform_id: 'names no platform' }),
    });
    await setTools(db, created!.id, tools);
    return { project: await findProject(db, created!.id) };
  });
}

/** Changes what was sent of a project; tools that are sent take the place of those that it had. */
export async function updateProject({ db }: Provisioning, { id, tools, ...fields }: ProjectUpdate) {
  return transact(db, async (db) => {
    const changed = await query(
      db,
      sql`update projects set ${assignments(unlessNull(fields))} where id = ${id} returning id`,
    );
    if (changed.length === 0) throw notFound('There is no such project.');
    if (tools) await setTools(db, id, tools);
    return { project: await findProject(db, id) };
  });
}

export async function listProjects({ db }: Provisioning, { platform_id, cursor, limit }: ProjectList) {
  const [after] = readCursor(cursor, 1) ?? [0];
  const found = await query(
    db,
    sql<ProjectRow>`
      select ${PROJECT} from projects p
      where p.id > ${after} and (${platform_id ?? null}::int is null or p.platform_id = ${platform_id ?? null})
      order by p.id limit ${limit + 1}`,
  );
  const { rows: projects, next_cursor } = toPage(found, limit, ({ id }) => [id]);
  return { projects, next_cursor };
}

async function findProject(db: Db, id: number): Promise<ProjectRow> {
  const [project] = await query(db, sql<ProjectRow>`select ${PROJECT} from projects p where p.id = ${id}`);
  return project!;
}

async function setTools(db: Db, projectId: number, tools: string[]): Promise<void> {
  await query(
    db,
    sql`delete from project_tools where project_id = ${projectId} and tool_key <> all (${tools}::text[])`,
  );
  await query(
    db,
    sql`
      insert into project_tools (project_id, tool_key) select ${projectId}, unnest(${tools}::text[])
      on conflict (project_id, tool_key) do nothing`,
  );
}
