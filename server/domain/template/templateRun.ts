import { sql } from 'kysely';
import { notFound } from '../../../shared/errors.ts';
import {
  ProjectOutcome,
  type RunKind,
  type TemplateRunList,
  type TemplateRunReport,
} from '../../../shared/templateRun.ts';
import { readPage } from '../../database/page.ts';
import { type Db, queryOne } from '../../database/query.ts';
import type { Removal } from '../../database/removal.ts';
import { daysBefore, NOW } from '../../database/timestamp.ts';
import type { SignedInContext } from '../access/context.ts';
import { eventPartsOf } from '../event/event.ts';
import type { Template } from './templateCopies.ts';

/** The counts of a finished run. */
export type Applied = { projects_with_access: number; projects_skipped: number; projects_changed: number };

/** Who synced or pushed what, newest first. */
export async function listTemplateRuns({ db }: SignedInContext, { board_id, ...page }: TemplateRunList) {
  const runs = runsWithTitles(db).where(({ and }) => and({ 'r.board_id': board_id ?? undefined }));
  return readPage('runs', runs, page, ['r.id'], 'desc');
}

/** One run; its progress while it runs. */
export async function getTemplateRun({ db }: SignedInContext, { id }: { id: number }) {
  const run = await runsWithTitles(db).where('r.id', '=', id).executeTakeFirstOrThrow(noSuchRun);
  return { run };
}

/** What a run did to each project. */
export async function reportTemplateRun({ db }: SignedInContext, { id, outcome, ...page }: TemplateRunReport) {
  await db.selectFrom('template_runs').select('id').where('id', '=', id).executeTakeFirstOrThrow(noSuchRun);

  const outcomes = db
    .selectFrom('template_outcomes as o')
    .innerJoin('projects as p', 'p.id', 'o.project_id')
    .select(OUTCOME_COLUMNS)
    .select('p.name as project_name')
    .where(({ and }) => and({ 'o.run_id': id, 'o.outcome': outcome ?? undefined }));
  return readPage('projects', outcomes, page, ['o.project_id']);
}

const OUTCOME_COLUMNS = ProjectOutcome.omit({ project_name: true }).keyof().options;

/**
 * A run without progress for three minutes has lost its node, since a step waits for the lock for at most two minutes. A run
 * that was only delayed shows as running again after its next step. Only the database's clock counts.
 */
const INTERRUPTED_AT = sql<Date | null>`coalesce(r.interrupted_at,
  case when r.finished_at is null and r.progressed_at < now() - interval '3 minutes' then r.progressed_at end)`;

const runsWithTitles = (db: Db) =>
  db
    .selectFrom('template_runs as r')
    .innerJoin('boards as b', 'b.id', 'r.board_id')
    .leftJoin('groups as g', 'g.id', 'r.group_id')
    .leftJoin('cards as c', 'c.id', 'r.card_id')
    .leftJoin('users as u', 'u.id', 'r.user_id')
    .select(['r.id', 'r.kind', 'r.board_id', 'r.group_id', 'r.card_id', 'r.user_id', 'r.started_at', 'r.finished_at'])
    .select(['r.release_id', 'r.aborted_rollout_id'])
    .select([INTERRUPTED_AT.as('interrupted_at'), 'r.projects_total', 'r.projects_done', 'r.projects_with_access'])
    .select(['r.projects_skipped', 'r.projects_changed', 'r.cards_added', 'r.boards_updated', 'r.groups_updated'])
    .select(['r.cards_updated', 'b.title as board_title', 'g.title as group_title', 'c.title as card_title'])
    .select('u.name as user_name');

const noSuchRun = () => notFound('There is no such run.');

/** Records a new run and its event, in one statement. */
export async function beginRun(
  context: SignedInContext,
  { kind, board_id, group_id, card_id }: Template,
  found: { release_id: number; aborted_rollout_id: number | null },
): Promise<number> {
  const begun = context.db
    .insertInto('template_runs')
    .values(({ selectFrom, fn }) => ({
      kind: kind as RunKind,
      board_id,
      ...found,
      group_id: kind === 'push_group' ? (group_id ?? null) : null,
      card_id: card_id ?? null,
      user_id: context.caller.id,
      projects_total: selectFrom('projects').select(fn.countAll<number>().as('count')).where('is_active', 'is', true),
    }))
    .returning(['id', 'kind', 'board_id']);
  const started = sql`
    select 'template.started' as type, null::int as platform_id, null::int as project_id, board_id as subject_id,
      jsonb_build_object('run_id', id, 'kind', kind) as data, null::int as by_user_id
    from begun`;
  const note = eventPartsOf(context, started, 'template.started');
  const run = await queryOne(context.db, sql<{ id: number }>`with begun as (${begun}), ${note} select id from begun`);
  return run.id;
}

/** Projects that are done count from the end of the step's transaction on. */
export async function recordProgress(db: Db, run: number, projects: number): Promise<void> {
  await db
    .updateTable('template_runs')
    .set(({ eb }) => ({
      progressed_at: NOW,
      interrupted_at: null,
      projects_done: eb('projects_done', '+', projects),
    }))
    .where('id', '=', run)
    .execute();
}

export const interruptRun = (db: Db, run: number) => interruptRuns(db, { id: run });

/** For the start of the embedded database, which only one process uses: unfinished runs belong to a process that ended. */
export const interruptAllRuns = (db: Db) => interruptRuns(db, {});

/** Marks unfinished runs as interrupted at the time of their last progress. */
async function interruptRuns(db: Db, which: { id?: number }): Promise<void> {
  await db
    .updateTable('template_runs')
    .set(({ ref }) => ({ interrupted_at: ref('progressed_at') }))
    .where(({ and }) => and(which))
    .where('finished_at', 'is', null)
    .where('interrupted_at', 'is', null)
    .execute();
}

/** Old runs with their outcomes: none that is running, and not the last run of a master board that exists. */
export const runRemoval = (days: number): Removal => ({
  table: 'template_runs',
  due: (now) => sql`t.started_at < ${daysBefore(now, days)} and t.progressed_at < ${daysBefore(now, days)} and (
    exists (select from template_runs n where n.board_id = t.board_id and n.id > t.id)
    or exists (select from boards b where b.id = t.board_id and b.deleted_at is not null))`,
  by: 'started_at',
  contents: { table: 'template_outcomes', column: 'run_id', last: 'project_id' },
});

/** Finishes a run and adds up the outcomes of its projects, in one statement. */
export async function finishRun(db: Db, run: number): Promise<Applied> {
  return queryOne(
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
}
