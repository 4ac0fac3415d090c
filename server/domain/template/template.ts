import { sql } from 'kysely';
import type { z } from 'zod';
import { tooManyRequests } from '../../../shared/errors.ts';
import type { Page } from '../../../shared/paging.ts';
import type { ProjectOutcome } from '../../../shared/templateRun.ts';
import { allowOnlyMergeJoins, bulkTransaction } from '../../database/bulk.ts';
import { type Db, live, query } from '../../database/query.ts';
import type { SignedInContext } from '../access/context.ts';
import { readCursor, toPage } from '../rows/page.ts';
import type { Template } from './templateCopies.ts';
import { type Applied, beginRun, finishRun, interruptRun, recordProgress } from './templateRun.ts';
import { copyStatement, fillStatement, previewStatement } from './templateStatement.ts';

/**
 * Copies a template to every active project with access, in batches of projects with one transaction each: an interrupted run
 * leaves no project half done, and other calls are served in between. Existing and deleted copies are not added again. Returns
 * the counts, which the history stores.
 */
export async function applyTemplate(
  { db, caller, bulkPace, isStopping }: SignedInContext,
  template: Template,
): Promise<Applied> {
  const run = await beginRun(db, caller.id, template);
  running++;
  try {
    let after: number | null = 0;
    while (after !== null) {
      if (isStopping())
        throw tooManyRequests(
          'The service is stopping. Run this again: finished projects stay.',
          5,
          'service_stopping',
        );
      const last: number = after;
      after = await templateTransaction(db, template.board_id, (db) =>
        applyToNextProjects(db, template, run, last, bulkPace.rowsPerStep),
      );
      await bulkPace.pause();
    }
    return await finishRun(db, run);
  } catch (error) {
    // If the database is unreachable, the lack of progress marks the run as interrupted.
    await interruptRun(db, run).catch(() => undefined);
    throw error;
  } finally {
    running--;
  }
}

/** How many runs this process works on. */
export const runningTemplates = () => running;
let running = 0;

/** Like `applyTemplate`, but inside the transaction that created the template, without pauses. */
export async function applyTemplateWithin(
  db: Db,
  { caller, bulkPace }: SignedInContext,
  template: Template,
): Promise<Applied> {
  const run = await beginRun(db, caller.id, template);
  let after: number | null = 0;
  while (after !== null) after = await applyToNextProjects(db, template, run, after, bulkPace.rowsPerStep);
  return finishRun(db, run);
}

/** What `applyTemplate` would do to each project; nothing changes. */
export async function previewTemplate({ db }: SignedInContext, template: Template, { cursor, limit }: Page) {
  const [after = 0] = readCursor(cursor, 1);
  const found = await bulkTransaction(db, async (db) => {
    await allowOnlyMergeJoins(db);
    return query<z.input<typeof ProjectOutcome>>(db, previewStatement(template, after, limit + 1));
  });
  return toPage('projects', found, limit, ['project_id']);
}

/** A master board that concerns a project, by its tool. */
type LockedBoard = { id: number; tool_key: string | null };

/**
 * Locks all master boards, for `fillProject` in the same bulk transaction: before the project, as a sync does. Shared: several
 * projects are filled at once, but no board is synced or changed meanwhile.
 */
export const lockMasterBoards = (db: Db): Promise<LockedBoard[]> =>
  query(
    db,
    sql<LockedBoard>`
      select id, tool_key, pg_advisory_xact_lock_shared(${TEMPLATE_LOCKS}, id) from (
        select id, tool_key from boards where is_master and ${live()} order by id offset 0) as b`,
  );

/** Copies these boards to a project, as their syncs would; those without access or that are inactive are skipped. */
export async function fillProject(db: Db, projectId: number, boards: LockedBoard[]): Promise<void> {
  if (boards.length === 0) return;
  await allowOnlyMergeJoins(db);
  await query(
    db,
    fillStatement(
      boards.map(({ id }) => id),
      projectId,
    ),
  );
}

/** A transaction that changes a master board or copies it to projects: one at a time for each board. */
export function templateTransaction<Result>(
  db: Db,
  board_id: number,
  work: (db: Db) => Promise<Result>,
): Promise<Result> {
  return bulkTransaction(db, async (db) => {
    await query(db, sql`select pg_advisory_xact_lock(${TEMPLATE_LOCKS}, ${board_id})`);
    return work(db);
  });
}

/** The first key of the advisory locks of master boards ("TMPL" in ASCII); the second is the board's id. */
const TEMPLATE_LOCKS = 1_414_352_972;

/** Returns the id of the last project of the batch, or null if there are no more. */
async function applyToNextProjects(
  db: Db,
  template: Template,
  run: number,
  after: number,
  rowsPerStep: number,
): Promise<number | null> {
  const projectsAtOnce = Math.max(1, Math.floor(rowsPerStep / Math.max(1, template.rowCount)));

  await allowOnlyMergeJoins(db);
  const projects = await db
    .selectFrom('projects')
    .select('id')
    .where('is_active', 'is', true)
    .where('id', '>', after)
    .orderBy('id')
    .limit(projectsAtOnce)
    .forNoKeyUpdate()
    .execute();
  await recordProgress(db, run, projects.length);
  if (projects.length === 0) return null;

  await query(
    db,
    copyStatement(
      template,
      run,
      projects.map(({ id }) => id),
    ),
  );
  return projects.length < projectsAtOnce ? null : (projects.at(-1)?.id ?? null);
}
