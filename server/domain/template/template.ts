import { sql } from 'kysely';
import type { z } from 'zod';
import { tooManyRequests } from '../../../shared/errors.ts';
import type { Page } from '../../../shared/paging.ts';
import type { ProjectOutcome } from '../../../shared/templateRun.ts';
import { workOff } from '../../database/background.ts';
import { allowOnlyMergeJoins, bulkTransaction } from '../../database/bulk.ts';
import { readCursor, toPage } from '../../database/page.ts';
import { anyOf, type Db, live, query, queryOne } from '../../database/query.ts';
import type { SignedInContext } from '../access/context.ts';
import { CLEARING, clearGroups } from '../board/deletion.ts';
import { type Published, publish } from './release.ts';
import { abortOpenRollout, followRelease } from './rolloutEnd.ts';
import type { Template } from './templateCopies.ts';
import { stepTransaction, TEMPLATE_LOCKS, templateTransaction } from './templateLock.ts';
import { type Applied, beginRun, finishRun, interruptRun, recordProgress } from './templateRun.ts';
import type { Source } from './templateSource.ts';
import { copyStatement, fillStatement, previewStatement } from './templateStatement.ts';

/**
 * Copies a template to every active project with access, in batches of projects with one transaction each: an interrupted run
 * leaves no project half done, and other calls are served in between. Existing and deleted copies are not added again. Returns
 * the counts, which the history stores.
 */
export async function applyTemplate(context: SignedInContext, template: Template): Promise<Applied> {
  const { db, services } = context;
  const { bulkPace, isStopping } = services;
  // In short transactions, so that the steps of the run find few cards to mark under the lock of their project.
  await workOff(db, CLEARING, { rows: 500, pauseMilliseconds: 0, isStopped: isStopping });
  const begun = await templateTransaction(db, template.board_id, (db) => begin({ ...context, db }, template));
  const { run } = begun;
  const left = projectsLeft(template, bulkPace.rowsPerStep);
  const applySteps = async () => {
    for (let projects = await left.next(db); projects.length > 0; projects = await left.next(db)) {
      if (isStopping())
        throw tooManyRequests(
          'The service is stopping. Run this again: finished projects stay.',
          5,
          'service_stopping',
        );
      const taken = projects;
      await stepTransaction(db, template.board_id, (db) => applyToProjects({ ...context, db }, begun, taken));
      await bulkPace.pause();
    }
  };
  running++;
  try {
    // Runs at the same time have one step each, so that they leave connections for other calls.
    const steps = Array.from({ length: running > 1 ? 1 : bulkPace.stepsAtOnce }, applySteps);
    for (const step of steps) step.catch(left.end);
    for (const { reason } of (await Promise.allSettled(steps)).filter(isRejected)) throw reason;
    return await finishRun(db, run);
  } catch (error) {
    // If the database is unreachable, the lack of progress marks the run as interrupted.
    await interruptRun(db, run).catch(() => undefined);
    throw error;
  } finally {
    running--;
  }
}

/** What a run writes. */
export const RUN_EVENTS = ['release.published', 'rollout.aborted', 'template.started', 'template.applied'] as const;

const isRejected = (settled: PromiseSettledResult<void>) => settled.status === 'rejected';

/** How many runs this process works on. */
export const runningTemplates = () => running;
let running = 0;

/** What a run applies. */
type Begun = Template & { run: number; release: Published };

/** Publishes what is about to be brought, ends a rollout of the board that is open, and records the run. */
async function begin(context: SignedInContext, template: Template): Promise<Begun> {
  const release = await publish(context, template, null);
  const aborted_rollout_id = await abortOpenRollout(context, template.board_id);
  await followRelease(context, template, release);
  const run = await beginRun(context, template, { release_id: release.id, aborted_rollout_id });
  return { ...template, run, release };
}

/** Like `applyTemplate`, but inside the transaction that created the template, without pauses. */
export async function applyTemplateWithin(context: SignedInContext, template: Template): Promise<Applied> {
  const { db, services } = context;
  const { bulkPace } = services;
  const begun = await begin(context, template);
  const left = projectsLeft(template, bulkPace.rowsPerStep);
  for (let projects = await left.next(db); projects.length > 0; projects = await left.next(db))
    await applyToProjects(context, begun, projects);
  return finishRun(db, begun.run);
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

/** A master board that concerns a project, by its tool, and the release that all projects got by a rollout. */
type LockedBoard = { id: number; tool_key: string | null; rolled_out_id: number | null };

/**
 * Locks all master boards, for `fillProject` in the same bulk transaction: before the project, as a sync does. Shared: several
 * projects are filled at once, but no board is synced or changed meanwhile.
 */
export async function lockMasterBoards(db: Db): Promise<LockedBoard[]> {
  await query(
    db,
    sql`
      select pg_advisory_xact_lock_shared(${TEMPLATE_LOCKS}, id) from (
        select id from boards where is_master and ${live()} order by id offset 0) as b`,
  );
  // Read under the locks: a rollout that was about to end has ended.
  return query(
    db,
    sql<LockedBoard>`
      select id, tool_key, rolled_out_id from boards where is_master and ${live()} order by position, id`,
  );
}

/**
 * Copies these boards to a project, as their syncs would; those without access or that are inactive are skipped. A board that was
 * rolled out to all projects comes in that release, any other as it is now. Returns how many rows it changed.
 */
export async function fillProject(db: Db, projectId: number, boards: LockedBoard[]): Promise<number> {
  if (boards.length === 0) return 0;
  await clearGroups(db, sql`(is_master or project_id = ${projectId})`);
  await allowOnlyMergeJoins(db);
  // In order, so that the copies are in order: neighbours of the same kind together.
  const sources: Source[] = [];
  for (const { id, rolled_out_id } of boards) {
    const last = sources.at(-1);
    if (rolled_out_id === null && last && 'boards' in last) last.boards.push(id);
    else if (rolled_out_id !== null && last && 'releases' in last) last.releases.push(rolled_out_id);
    else sources.push(rolled_out_id === null ? { boards: [id] } : { releases: [rolled_out_id] });
  }
  let count = 0;
  for (const source of sources) count += (await queryOne(db, fillStatement(source, projectId))).count;
  return count;
}

/** The ids of the active projects, as many at a time as fit into a step. */
export function projectsLeft({ rowCount }: Pick<Template, 'rowCount'>, rowsPerStep: number) {
  const most = Math.max(1, Math.floor(rowsPerStep / Math.max(1, rowCount)));
  let after: number | null = 0;
  let turn: Promise<number[]> = Promise.resolve([]);
  const read = async (db: Db): Promise<number[]> => {
    if (after === null) return [];
    const projects = await db
      .selectFrom('projects')
      .select('id')
      .where('is_active', 'is', true)
      .where('id', '>', after)
      .orderBy('id')
      .limit(most)
      .execute();
    after = projects.length < most ? null : (projects.at(-1)?.id ?? null);
    return projects.map(({ id }) => id);
  };
  return {
    /** One at a time, so that no project is read twice. */
    next: (db: Db): Promise<number[]> => {
      turn = turn.catch(() => []).then(() => read(db));
      return turn;
    },
    /** After a failure: the other steps end, too. */
    end: () => {
      after = null;
    },
  };
}

/** Locks the projects in the order of their ids, before their copies are read. */
async function applyToProjects(context: SignedInContext, template: Begun, ids: number[]): Promise<void> {
  const { db } = context;
  await allowOnlyMergeJoins(db);
  const projects = await db
    .selectFrom('projects')
    .select('id')
    .where('is_active', 'is', true)
    .where('id', '=', anyOf(ids))
    .orderBy('id')
    .forNoKeyUpdate()
    .execute();
  const locked = projects.map(({ id }) => id);
  if (locked.length > 0) {
    await clearGroups(db, sql`(is_master or project_id = ${anyOf(locked)})`);
    await query(db, copyStatement(context, template, template.run, locked));
  }
  // Last, since it locks the row of the run: another step waits for it.
  await recordProgress(db, template.run, ids.length);
}
