import { type RawBuilder, sql } from 'kysely';
import type { z } from 'zod';
import { notFound } from '../../../shared/errors.ts';
import type { ProjectOutcome, TemplateRun, TemplateRunList, TemplateRunReport } from '../../../shared/templateRun.ts';
import { type Db, query } from '../../database/query.ts';
import type { SignedInContext } from '../access/context.ts';
import { readCursor, toPage } from '../rows/page.ts';
import type { Template } from './templateCopies.ts';

/** The counts of a finished run. */
export type Applied = { projects_with_access: number; projects_skipped: number; projects_changed: number };

/** Who synced or pushed what, newest first. */
export async function listTemplateRuns({ db }: SignedInContext, { board_id, cursor, limit }: TemplateRunList) {
  const [before = null] = readCursor(cursor, 1);
  const found = await query(
    db,
    sql<RunRow>`${RUNS}
      where (${before}::int is null or r.id < ${before}::int) and (${board_id ?? null}::int is null or r.board_id = ${board_id ?? null}::int)
      order by r.id desc limit ${limit + 1}`,
  );
  return toPage('runs', found, limit);
}

/** One run; its progress while it runs. */
export async function getTemplateRun({ db }: SignedInContext, { id }: { id: number }) {
  const [run] = await query(db, sql<RunRow>`${RUNS} where r.id = ${id}`);
  if (!run) throw noSuchRun();

  return { run };
}

/** What a run did to each project. */
export async function reportTemplateRun(
  { db }: SignedInContext,
  { id, outcome = null, cursor, limit }: TemplateRunReport,
) {
  const [run] = await query(db, sql`select id from template_runs where id = ${id}`);
  if (!run) throw noSuchRun();

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

/**
 * A run without progress for three minutes has lost its node, since a step waits for the lock for at most two minutes. A run
 * that was only delayed shows as running again after its next step. Only the database's clock counts.
 */
const INTERRUPTED_AT = sql`coalesce(r.interrupted_at,
  case when r.finished_at is null and r.progressed_at < now() - interval '3 minutes' then r.progressed_at end)`;

type RunRow = z.input<typeof TemplateRun>;

const RUNS = sql`
  select r.id, r.kind, r.board_id, r.group_id, r.card_id, r.user_id, r.started_at, r.finished_at, ${INTERRUPTED_AT} as interrupted_at,
    r.projects_total, r.projects_done, r.projects_with_access, r.projects_skipped, r.projects_changed, r.cards_added, r.boards_updated,
    r.groups_updated, r.cards_updated, b.title as board_title, g.title as group_title, c.title as card_title, u.name as user_name
  from template_runs r join boards b on b.id = r.board_id left join groups g on g.id = r.group_id
  left join cards c on c.id = r.card_id left join users u on u.id = r.user_id`;

const noSuchRun = () => notFound('There is no such run.');

export async function beginRun(
  db: Db,
  userId: number | null,
  { kind, board_id, group_id, card_id }: Template,
): Promise<number> {
  const [run] = await query(
    db,
    sql<{ id: number }>`
      insert into template_runs (kind, board_id, group_id, card_id, user_id, projects_total)
      select ${kind}, ${board_id}, ${kind === 'push_group' ? group_id : null}::int, ${card_id ?? null}::int, ${userId}::int, count(*)
      from projects where is_active returning id`,
  );
  return run!.id;
}

/** Projects that are done count from the end of the step's transaction on. */
export async function recordProgress(db: Db, run: number, projects: number): Promise<void> {
  await query(
    db,
    sql`
      update template_runs set progressed_at = now(), interrupted_at = null, projects_done = projects_done + ${projects}
      where id = ${run}`,
  );
}

/** Marks unfinished runs as interrupted at the time of their last progress. */
async function interruptRuns(db: Db, which: RawBuilder<unknown>): Promise<void> {
  await query(
    db,
    sql`update template_runs set interrupted_at = progressed_at where ${which} and finished_at is null and interrupted_at is null`,
  );
}

export const interruptRun = (db: Db, run: number) => interruptRuns(db, sql`id = ${run}`);

/** For the start of the embedded database, which only one process uses: unfinished runs belong to a process that ended. */
export const interruptAllRuns = (db: Db) => interruptRuns(db, sql`true`);

export async function finishRun(db: Db, run: number): Promise<Applied> {
  const [finished] = await query(
    db,
    sql<Applied>`
      update template_runs r set finished_at = now(), interrupted_at = null, projects_with_access = o.with_access, projects_skipped = o.skipped,
        projects_changed = o.changed, cards_added = o.cards_added, boards_updated = o.boards_updated, groups_updated = o.groups_updated,
        cards_updated = o.cards_updated
      from (
        select count(*) filter (where reason is distinct from 'no_access') as with_access,
          count(*) filter (where reason = 'no_access') as skipped,
          count(*) filter (where outcome in ('added', 'updated')) as changed,
          coalesce(sum(cards_added), 0) as cards_added, coalesce(sum(boards_updated), 0) as boards_updated,
          coalesce(sum(groups_updated), 0) as groups_updated, coalesce(sum(cards_updated), 0) as cards_updated
        from template_outcomes where run_id = ${run}
      ) o
      where r.id = ${run}
      returning r.projects_with_access, r.projects_skipped, r.projects_changed`,
  );
  return finished!;
}
