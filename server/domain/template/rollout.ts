import { type RawBuilder, sql } from 'kysely';
import { badRequest, invalid } from '../../../shared/errors.ts';
import type { EventType } from '../../../shared/event.ts';
import type { RolloutPlan, Stage } from '../../../shared/rollout.ts';
import { allowNoNestedLoops, bulkTransaction } from '../../database/bulk.ts';
import { anyOf, type Db, mapConstraintErrors, query, transact } from '../../database/query.ts';
import type { Removal } from '../../database/removal.ts';
import { countRows, insertRow, rowById } from '../../database/rows.ts';
import type { Row, RowChanges } from '../../database/tables.ts';
import { daysBefore, NOW } from '../../database/timestamp.ts';
import type { SignedInContext } from '../access/context.ts';
import { writeEvents } from '../event/event.ts';
import { findMaster } from './masterRow.ts';
import { noSuchRelease } from './release.ts';
import { getRollout, noSuchRollout } from './rolloutReport.ts';
import { assignStages, planStatement } from './rolloutStatement.ts';
import { callForStep } from './rolloutWork.ts';
import { projectsLeft } from './template.ts';
import { templateTransaction } from './templateLock.ts';

/** How many plans of a board can wait at once; they are removed after a day. */
const MOST_PLANS = 10;
const PLAN_MILLISECONDS = 24 * 60 * 60 * 1000;

/** Plans a rollout: what it would do to each project that it reaches. Nothing changes there until it is started. */
export async function planRollout(context: SignedInContext, input: RolloutPlan) {
  const { db, services, caller } = context;
  const { release_id, stages, overwrite, max_failed, max_conflicts, note } = input;
  const { board_id } = await rowById(db, 'releases', release_id, ['board_id'], { missing: noSuchRelease });
  await findMaster(db, 'boards', board_id, ['id']);
  await mustKnowProjects(db, stages);
  const rollout = await transact(db, async (db) => {
    await mustHaveRoom(db, board_id);
    const row = { board_id, release_id, stages: JSON.stringify(stages), overwrite, max_failed, max_conflicts, note };
    const columns = ['id', 'board_id', 'release_id', 'overwrite', 'user_id'] as const;
    return insertRow(db, 'rollouts', { ...row, state: 'planning', user_id: caller.id } as never, columns);
  });

  const rowCount = await countRows(db, 'release_rows', sql`release_id = ${release_id}`);
  const left = projectsLeft({ rowCount }, services.bulkPace.rowsPerStep);
  for (let projects = await left.next(db); projects.length > 0; projects = await left.next(db)) {
    await bulkTransaction(db, async (db) => {
      await allowNoNestedLoops(db);
      await query(db, planStatement(rollout, stages.length, projects));
    });
    await services.bulkPace.pause();
  }
  const planned = { from: ['planning'], event: 'rollout.planned', set: { state: 'planned' } } as const;
  return change(context, rollout.id, planned, (db) => query(db, assignStages(rollout.id, stages)));
}

async function mustKnowProjects(db: Db, stages: readonly Stage[]): Promise<void> {
  const named = stages.flatMap(({ projects }) => projects ?? []);
  const found = await db
    .selectFrom('projects')
    .select('id')
    .where('id', '=', anyOf(named))
    .where('is_active', 'is', true)
    .execute();
  const known = new Set(found.map(({ id }) => id));
  const unknown = named.filter((id) => !known.has(id));
  if (unknown.length > 0)
    throw invalid(
      { stages: `has projects that do not exist or are inactive: ${unknown.slice(0, 10).join(', ')}` },
      'unknown_reference',
    );
}

async function mustHaveRoom(db: Db, board_id: number): Promise<void> {
  const plans = await db
    .selectFrom('rollouts')
    .select('id')
    .where('board_id', '=', board_id)
    .where('state', 'in', ['planning', 'planned'])
    .execute();
  if (plans.length >= MOST_PLANS)
    throw badRequest(
      `This board has ${MOST_PLANS} plans that were not started. Start or abort one first.`,
      'place_full',
    );
}

type State = Row<'rollouts'>['state'];
type Changes = { [Column in keyof RowChanges<'rollouts'>]: RowChanges<'rollouts'>[Column] | RawBuilder<unknown> };
type Change = { from: readonly State[]; event: EventType; set: Changes };

/** Changes the state of a rollout, after the step that is under way. */
async function change(
  context: SignedInContext,
  id: number,
  { from, event, set }: Change,
  more?: (db: Db) => Promise<unknown>,
) {
  const work = transact(context.db, async (db) => {
    const locked = { lock: 'no key update', missing: noSuchRollout } as const;
    const { state, board_id } = await rowById(db, 'rollouts', id, ['state', 'board_id'], locked);
    if (!from.includes(state))
      throw badRequest(`This rollout is ${state}. This works only while it is ${from.join(', ')}.`, 'rollout_state');
    await db
      .updateTable('rollouts')
      .set(set as RowChanges<'rollouts'>)
      .where('id', '=', id)
      .execute();
    await more?.(db);
    await writeEvents({ ...context, db }, [{ type: event, subject_id: id, data: { board_id } }]);
    return getRollout({ db }, { id });
  });
  const changed = await mapConstraintErrors(work, {
    rollouts_one_open: () =>
      badRequest('Another rollout of this board is open. Finish, abort or roll it back first.', 'rollout_open'),
  });
  callForStep();
  return changed;
}

/** What new projects get until it is rolled out everywhere: what was rolled out before, or what most projects have. */
const PREVIOUS = sql<number>`coalesce(
  (select b.rolled_out_id from boards b where b.id = rollouts.board_id),
  (select t.release_id from project_templates t where t.board_id = rollouts.board_id and t.release_id <> rollouts.release_id
    group by t.release_id order by count(*) desc, t.release_id desc limit 1))`;

const followPrevious = (db: Db, id: number, condition: RawBuilder<unknown>) =>
  query(
    db,
    sql`
      update boards b set rolled_out_id = o.previous_release_id from rollouts o
      where o.id = ${id} and b.id = o.board_id and ${condition} and b.rolled_out_id is distinct from o.previous_release_id`,
  );

export async function startRollout(context: SignedInContext, { id }: { id: number }) {
  const { rollout } = await getRollout(context, { id });
  const user_id = context.caller.id;
  const set = { state: 'running', started_at: NOW, next_at: NOW, progressed_at: NOW, user_id } as const;
  return templateTransaction(context.db, rollout.board_id, (db) =>
    change(
      { ...context, db },
      id,
      { from: ['planned'], event: 'rollout.started', set: { ...set, previous_release_id: PREVIOUS } },
      async (db) => {
        if (Date.now() - rollout.created_at.getTime() > PLAN_MILLISECONDS)
          throw badRequest('This plan is older than a day. Make a new one.', 'rollout_state');
        await mustHaveNoRun(db, rollout.board_id);
        await followPrevious(db, id, sql`b.rolled_out_id is null`);
      },
    ),
  );
}

/** A soak goes on meanwhile, but the next stage waits. */
export const pauseRollout = (context: SignedInContext, { id }: { id: number }) =>
  change(context, id, { from: ['running'], event: 'rollout.paused', set: { state: 'paused', reason: 'user' } });

export const resumeRollout = (context: SignedInContext, { id }: { id: number }) =>
  change(context, id, {
    from: ['paused'],
    event: 'rollout.resumed',
    // What has failed so far is accepted: it would pause again at once.
    set: {
      state: 'running',
      reason: null,
      progressed_at: NOW,
      max_failed: sql`greatest(max_failed, ${countTargets('failed')})`,
      max_conflicts: sql`case when max_conflicts is not null then greatest(max_conflicts, ${countTargets('conflict')}) end`,
    },
  });

const countTargets = (state: string) =>
  sql`(select count(*)::int from rollout_targets t where t.rollout_id = rollouts.id and t.state = ${sql.lit(state)})`;

export const abortRollout = (context: SignedInContext, { id }: { id: number }) =>
  change(context, id, {
    from: ['planning', 'planned', 'running', 'paused'],
    event: 'rollout.aborted',
    set: { state: 'aborted', reason: 'user', next_at: null, finished_at: NOW },
  });

/** Begins the next stage without waiting any longer. */
export const advanceRollout = (context: SignedInContext, { id }: { id: number }) =>
  change(context, id, { from: ['running'], event: 'rollout.advanced', set: { next_at: NOW } }, async (db) => {
    const advanced = await query(
      db,
      sql`update rollouts set stage = stage + 1, is_soaking = false, progressed_at = now() where id = ${id} and is_soaking returning id`,
    );
    if (advanced.length === 0)
      throw badRequest('The current stage is not finished yet: the rollout goes on by itself.', 'rollout_state');
  });

/** Throws a 400 if a later rollout reached projects: it replaced what this one brought, and is taken back first. */
async function mustHaveNoLater(db: Db, id: number): Promise<void> {
  const [later] = await query(
    db,
    sql<{ id: number }>`
      select l.id from rollouts o join rollouts l on l.board_id = o.board_id and l.started_at > o.started_at
      where o.id = ${id} and l.state in ('running', 'paused', 'aborted', 'done', 'rolling_back') order by l.id desc limit 1`,
  );
  if (later) throw badRequest(`Roll back rollout ${later.id} first, which came after this one.`, 'rollout_state');
}

/** Throws a 400 while a sync or push of the board makes progress. */
async function mustHaveNoRun(db: Db, board_id: number): Promise<void> {
  const running = await query(
    db,
    sql`
      select from template_runs where board_id = ${board_id} and finished_at is null and interrupted_at is null
        and progressed_at > now() - interval '3 minutes' limit 1`,
  );
  if (running.length > 0)
    throw badRequest('A sync or push of this board is running. Wait for its end.', 'rollout_state');
}

/** Throws a 400 if a rollout, sync or push of the board has begun since this one. */
async function mustBeLatest(db: Db, id: number, message: string): Promise<void> {
  const later = await query(
    db,
    sql`
      select from rollouts o where o.id = ${id} and (
        exists (select from rollouts l where l.board_id = o.board_id and l.started_at > o.started_at)
        or exists (select from template_runs r where r.board_id = o.board_id and r.started_at > o.started_at))`,
  );
  if (later.length > 0) throw badRequest(message, 'rollout_state');
}

/** Tries again what failed, was held, or had gained a conflict: fields in conflict stay as the project has them. */
export async function retryRollout(context: SignedInContext, { id }: { id: number }) {
  const { rollout } = await getRollout(context, { id });
  const set = { state: 'running', reason: null, next_at: NOW, progressed_at: NOW, finished_at: null } as const;
  return templateTransaction(context.db, rollout.board_id, (db) =>
    change(
      { ...context, db },
      id,
      { from: ['running', 'paused', 'done'], event: 'rollout.retried', set: { ...set, is_soaking: false } },
      async (db) => {
        await mustBeLatest(db, id, 'Something later was brought to the projects: roll that out instead.');
        const retried = await query(
          db,
          sql`
            update rollout_targets set state = 'planned', digest = null, updated_at = now()
            where rollout_id = ${id} and state in ('failed', 'conflict', 'held') returning project_id`,
        );
        if (retried.length === 0)
          throw badRequest('No project failed, holds changes or gained a conflict.', 'rollout_state');
      },
    ),
  );
}

/** Takes back what it changed; new projects get what they got before it. */
export async function rollBack(context: SignedInContext, { id }: { id: number }) {
  const { rollout } = await getRollout(context, { id });
  return templateTransaction(context.db, rollout.board_id, (db) =>
    change(
      { ...context, db },
      id,
      {
        from: ['running', 'paused', 'aborted', 'done', 'rolled_back'],
        event: 'rollout.rollback_started',
        set: {
          state: 'rolling_back',
          next_at: NOW,
          progressed_at: NOW,
          finished_at: null,
          is_soaking: false,
          user_id: context.caller.id,
        },
      },
      async (db) => {
        if (!rollout.started_at) throw badRequest('This rollout was never started.', 'rollout_state');
        await mustHaveNoLater(db, id);
        // Projects where the rollback failed are tried again.
        const again = await query(
          db,
          sql`
            update rollout_targets t set state = 'done', error = null
            where t.rollout_id = ${id} and t.state = 'failed' and exists (
              select from rollout_changes c where c.rollout_id = t.rollout_id and c.project_id = t.project_id and c.undone is null)
            returning project_id`,
        );
        if (rollout.state === 'rolled_back' && again.length === 0)
          throw badRequest('This rollout is rolled back in all of its projects.', 'rollout_state');
        await followPrevious(db, id, sql`b.rolled_out_id = o.release_id`);
      },
    ),
  );
}

/** Ended rollouts with what they did, and plans that were not started within a day. */
export const rolloutRemoval = (days: number): Removal => ({
  table: 'rollouts',
  due: (now) => sql`t.created_at < ${daysBefore(now, 1)} and (
    t.state in ('planning', 'planned') or (t.finished_at < ${daysBefore(now, days)} and t.state in ('aborted', 'done', 'rolled_back')))`,
  by: 'created_at',
  contents: { table: 'rollout_targets', column: 'rollout_id', last: 'project_id' },
});
