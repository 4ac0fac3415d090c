import { type RawBuilder, sql } from 'kysely';
import type { z } from 'zod';
import type { ProjectOutcome, TemplateRun, TemplateRunList, TemplateRunReport } from '../../shared/master.ts';
import type { Page } from '../../shared/paging.ts';
import type { SignedInContext } from '../context.ts';
import { allowOnlyMergeJoins, bulkTransaction } from '../database/bulk.ts';
import { type Db, query } from '../database/query.ts';
import { notFound, tooManyRequests } from '../errors.ts';
import { readCursor, toPage } from './page.ts';
import { copyStatement, previewStatement, type Template } from './templateStatement.ts';

type Applied = { projects_with_access: number; projects_skipped: number; projects_changed: number };

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
  try {
    let after: number | null = 0;
    while (after !== null) {
      if (isStopping())
        throw tooManyRequests(
          'The service is stopping. Run this again: finished projects stay.',
          5,
          'service_stopping',
        );
      after = await templateTransaction(db, template.board_id, (db) =>
        applyToNextProjects(db, template, run, after!, bulkPace.cardsPerStep),
      );
      await bulkPace.pause();
    }
    return await finishRun(db, run);
  } catch (error) {
    // If the database is unreachable, the lack of progress marks the run as interrupted.
    await interruptRuns(db, sql`id = ${run}`).catch(() => undefined);
    throw error;
  }
}

/** Like `applyTemplate`, but inside the transaction that created the template, without pauses. */
export async function applyTemplateWithin(
  db: Db,
  { caller, bulkPace }: SignedInContext,
  template: Template,
): Promise<Applied> {
  const run = await beginRun(db, caller.id, template);
  let after: number | null = 0;
  while (after !== null) after = await applyToNextProjects(db, template, run, after, bulkPace.cardsPerStep);
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

/** Who synced or pushed what, newest first. */
export async function listTemplateRuns({ db }: SignedInContext, { board_id, cursor, limit }: TemplateRunList) {
  const [before = null] = readCursor(cursor, 1);
  const found = await query(
    db,
    sql<z.input<typeof TemplateRun>>`
      select r.id, r.kind, r.board_id, r.card_id, r.user_id, r.started_at, r.finished_at, ${INTERRUPTED_AT} as interrupted_at,
        r.projects_with_access, r.projects_skipped, r.projects_changed, r.cards_added, r.cards_updated, b.title as board_title, c.title as card_title, u.name as user_name
      from template_runs r join boards b on b.id = r.board_id
      left join cards c on c.id = r.card_id left join users u on u.id = r.user_id
      where (${before}::int is null or r.id < ${before}::int) and (${board_id ?? null}::int is null or r.board_id = ${board_id ?? null}::int)
      order by r.id desc limit ${limit + 1}`,
  );
  return toPage('runs', found, limit);
}

/** What a run did to each project. */
export async function reportTemplateRun(
  { db }: SignedInContext,
  { id, outcome = null, cursor, limit }: TemplateRunReport,
) {
  const [run] = await query(db, sql`select id from template_runs where id = ${id}`);
  if (!run) throw notFound('There is no such run.');

  const [after = 0] = readCursor(cursor, 1);
  const found = await query(
    db,
    sql<z.input<typeof ProjectOutcome>>`
      select o.*, p.name as project_name from template_outcomes o join projects p on p.id = o.project_id
      where o.run_id = ${id} and o.project_id > ${after} and (${outcome}::text is null or o.outcome = ${outcome})
      order by o.project_id limit ${limit + 1}`,
  );
  return toPage('projects', found, limit, ['project_id']);
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

async function beginRun(db: Db, userId: number | null, { board_id, card }: Template): Promise<number> {
  const [run] = await query(
    db,
    sql<{ id: number }>`
      insert into template_runs (kind, board_id, card_id, user_id)
      values (${card ? 'push' : 'sync'}, ${board_id}, ${card?.id ?? null}, ${userId}) returning id`,
  );
  return run!.id;
}

/**
 * A run without progress for three minutes has lost its node, since a step waits for the lock for at most two minutes. A run
 * that was only delayed shows as running again after its next step. Only the database's clock counts.
 */
const INTERRUPTED_AT = sql`coalesce(r.interrupted_at,
  case when r.finished_at is null and r.progressed_at < now() - interval '3 minutes' then r.progressed_at end)`;

/** Marks unfinished runs as interrupted at the time of their last progress. */
async function interruptRuns(db: Db, which: RawBuilder<unknown>): Promise<void> {
  await query(
    db,
    sql`update template_runs set interrupted_at = progressed_at where ${which} and finished_at is null and interrupted_at is null`,
  );
}

/** For the start of the embedded database, which only one process uses: unfinished runs belong to a process that ended. */
export const interruptAllRuns = (db: Db) => interruptRuns(db, sql`true`);

async function finishRun(db: Db, run: number): Promise<Applied> {
  const [finished] = await query(
    db,
    sql<Applied>`
      update template_runs r set finished_at = now(), interrupted_at = null, projects_with_access = o.with_access, projects_skipped = o.skipped,
        projects_changed = o.changed, cards_added = o.cards_added, cards_updated = o.cards_updated
      from (
        select count(*) filter (where reason is distinct from 'no_access') as with_access,
          count(*) filter (where reason = 'no_access') as skipped,
          count(*) filter (where outcome in ('added', 'updated')) as changed,
          coalesce(sum(cards_added), 0) as cards_added, coalesce(sum(cards_updated), 0) as cards_updated
        from template_outcomes where run_id = ${run}
      ) o
      where r.id = ${run}
      returning r.projects_with_access, r.projects_skipped, r.projects_changed`,
  );
  return finished!;
}

/** Returns the id of the last project of the batch, or null if there are no more. */
async function applyToNextProjects(
  db: Db,
  template: Template,
  run: number,
  after: number,
  cardsPerStep: number,
): Promise<number | null> {
  const projectsAtOnce = Math.max(1, Math.floor(cardsPerStep / Math.max(1, template.cardCount)));

  await query(db, sql`update template_runs set progressed_at = now(), interrupted_at = null where id = ${run}`);
  await allowOnlyMergeJoins(db);
  const projects = await query(
    db,
    sql<{ id: number }>`
      select id from projects where is_active and id > ${after} order by id limit ${projectsAtOnce} for no key update`,
  );
  if (projects.length === 0) return null;

  await query(
    db,
    copyStatement(
      template,
      run,
      projects.map(({ id }) => id),
    ),
  );
  return projects.length < projectsAtOnce ? null : projects.at(-1)!.id;
}
