import { sql } from 'kysely';
import type { z } from 'zod';
import type { Page } from '../../shared/paging.ts';
import type { OwnProject, Project, ProjectCreate, ProjectList, ProjectUpdate } from '../../shared/project.ts';
import type { Provisioning } from '../context.ts';
import { type EntityManager, orRefuse, query, transact } from '../database/query.ts';
import { invalid, notFound } from '../errors.ts';
import type { SignedInContext } from '../trpc.ts';
import { DEFAULT_PROJECT } from './caller.ts';
import { readCursor, toPage } from './page.ts';
import { assignments, unlessNull } from './row.ts';

type ProjectRow = z.input<typeof Project>;

/** The active projects that the caller belongs to. */
export async function listOwnProjects({ em, caller }: SignedInContext, { cursor, limit }: Page) {
  const [after] = readCursor(cursor, 1) ?? [0];
  const found = await query(
    em,
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

export async function createProject({ em }: Provisioning, { platform_id, name, tools }: ProjectCreate) {
  return transact(em, async (em) => {
    const inserted = query(
      em,
      sql<{ id: number }>`insert into projects (platform_id, name) values (${platform_id}, ${name}) returning id`,
    );
    const [created] = await orRefuse(inserted, {
      projects_platform_id_foreign: () => invalid({ platform_id: 'names no platform' }),
    });
    await setTools(em, created!.id, tools);
    return { project: await findProject(em, created!.id) };
  });
}

/** Changes what was sent of a project; tools that are sent take the place of those that it had. */
export async function updateProject({ em }: Provisioning, { id, tools, ...fields }: ProjectUpdate) {
  return transact(em, async (em) => {
    const changed = await query(
      em,
      sql`update projects set ${assignments(unlessNull(fields))} where id = ${id} returning id`,
    );
    if (changed.length === 0) throw notFound('There is no such project.');
    if (tools) await setTools(em, id, tools);
    return { project: await findProject(em, id) };
  });
}

export async function listProjects({ em }: Provisioning, { platform_id, cursor, limit }: ProjectList) {
  const [after] = readCursor(cursor, 1) ?? [0];
  const found = await query(
    em,
    sql<ProjectRow>`
      select ${PROJECT} from projects p
      where p.id > ${after} and (${platform_id ?? null}::int is null or p.platform_id = ${platform_id ?? null})
      order by p.id limit ${limit + 1}`,
  );
  const { rows: projects, next_cursor } = toPage(found, limit, ({ id }) => [id]);
  return { projects, next_cursor };
}

async function findProject(em: EntityManager, id: number): Promise<ProjectRow> {
  const [project] = await query(em, sql<ProjectRow>`select ${PROJECT} from projects p where p.id = ${id}`);
  return project!;
}

async function setTools(em: EntityManager, projectId: number, tools: string[]): Promise<void> {
  await query(
    em,
    sql`delete from project_tools where project_id = ${projectId} and tool_key <> all (${tools}::text[])`,
  );
  await query(
    em,
    sql`
      insert into project_tools (project_id, tool_key) select ${projectId}, unnest(${tools}::text[])
      on conflict (project_id, tool_key) do nothing`,
  );
}
