import { sql } from 'kysely';
import { allowNoNestedLoops } from '../../database/bulk.ts';
import { lockProjects } from '../../database/projectLock.ts';
import { anyOf, type Db, live, query, transact } from '../../database/query.ts';
import type { Row } from '../../database/tables.ts';
import type { Log } from '../../runtime/log.ts';
import { clearGroups } from '../board/deletion.ts';
import { BY_THE_SERVICE, writeEvents } from '../event/event.ts';
import { applyStatement, type Planned, planStatement, replanStatement } from './rolloutStatement.ts';
import { takeBack } from './rolloutUndo.ts';
import { stepTransaction, templateTransaction } from './templateLock.ts';

export type RolloutRow = Row<'rollouts'>;

type Target = { project_id: number; digest: string | null; is_held: boolean; fields_in_conflict: number };

/** What a step has done: null if nothing was due. */
export type Stepped = { id: number; projects: number } | null;

/**
 * Does the next step of a rollout that is due: some projects, or the end of a stage, in one transaction. A node that is killed
 * leaves no trace of its step, and any other node does it. While one node has the row of the rollout locked, others leave it.
 */
export async function stepRollout(db: Db, rowsPerStep: number, log?: Pick<Log, 'warn'>): Promise<Stepped> {
  const due = await query(
    db,
    sql<{ id: number; board_id: number }>`
      select id, board_id from rollouts where next_at <= now() and state in ('running', 'rolling_back') order by next_at limit 10`,
  );
  let failure: unknown;
  for (const { id, board_id } of due) {
    const rollout = { id, board_id, log };
    try {
      const stepped = await stepOrAlone(db, rollout, rowsPerStep);
      if (stepped) return stepped;
    } catch (error) {
      failure = error;
      log?.warn({ err: error, rollout: id }, `Rollout ${id} waits for the next look.`);
      // Others go on meanwhile.
      await query(
        db,
        sql`update rollouts set next_at = now() + interval '30 seconds' where id = ${rollout.id} and next_at <= now()`,
      );
    }
  }
  if (failure) throw failure;
  return null;
}

type Due = Pick<RolloutRow, 'id' | 'board_id'> & { log: Pick<Log, 'warn'> | undefined };

async function stepOrAlone(db: Db, rollout: Due, rowsPerStep: number): Promise<Stepped> {
  const taken: number[] = [];
  try {
    return await stepOnce(db, rollout, rowsPerStep, taken);
  } catch (error) {
    if (!reasonOf(error) || taken.length === 0) throw error;
    // One of them fails: alone, the others succeed.
    for (const project of taken) await stepAlone(db, rollout, project);
    await transact(db, (db) => goOn(db, rollout));
    return { id: rollout.id, projects: taken.length };
  }
}

/** What is wrong with the rows of a project, in words; undefined for a lost connection or a full disk, which is nobody's fault. */
function reasonOf(error: unknown): string | undefined {
  const {
    code = '',
    constraint,
    column,
    message,
  } = error as Partial<Record<'code' | 'constraint' | 'column' | 'message', string>>;
  if (code === '55P03') return 'Other work kept a row of this project locked for too long.';
  if (code === '57014') return 'The step in this project took too long.';
  if (code === 'P0001') return `The database refused a row: ${message}`;
  if (/^2[23]/.test(code))
    return `The database refused a row${constraint || column ? ` (${constraint ?? column})` : ''}.`;
  return undefined;
}

async function stepAlone(db: Db, rollout: Due, project: number): Promise<void> {
  try {
    await stepOnce(db, rollout, 1, [], project);
  } catch (error) {
    const reason = reasonOf(error);
    if (!reason) throw error;
    rollout.log?.warn(
      { err: error, rollout: rollout.id, project },
      `Rollout ${rollout.id} failed in project ${project}.`,
    );
    await query(
      db,
      sql`
        update rollout_targets set state = 'failed', error = ${reason}, attempts = attempts + 1, updated_at = now()
        where rollout_id = ${rollout.id} and project_id = ${project} and state in ('planned', 'done', 'unchanged')`,
    );
  }
}

async function stepOnce(
  db: Db,
  { id, board_id }: { id: number; board_id: number },
  rowsPerStep: number,
  taken: number[],
  only?: number,
): Promise<Stepped> {
  const stepped = await stepTransaction(db, board_id, async (db) => {
    // It may be the second attempt, after a deadlock.
    taken.length = 0;
    const [rollout] = await query(
      db,
      sql<RolloutRow & { rows: number }>`
        select *, (select count(*)::int from release_rows p where p.release_id = o.release_id) as rows from rollouts o
        where id = ${id} and next_at <= now() and state in ('running', 'rolling_back') for no key update skip locked`,
    );
    if (!rollout) return null;
    const isUndone = rollout.state === 'rolling_back';
    const most = Math.max(1, Math.floor(rowsPerStep / Math.max(1, rollout.rows)));
    const which = isUndone ? REACHED : sql`state = 'planned' and stage <= ${rollout.stage}`;
    const targets = rollout.is_soaking
      ? []
      : await query(
          db,
          sql<Target>`
            select project_id, digest, is_held, fields_in_conflict from rollout_targets
            where rollout_id = ${id} and ${which} and ${only === undefined ? sql`true` : sql`project_id = ${only}`}
            order by stage, project_id limit ${sql.lit(most)}`,
        );
    taken.push(...targets.map(({ project_id }) => project_id));
    if (targets.length > 0) {
      await query(db, SHORT_WAIT);
      await (isUndone ? takeBack(db, rollout, taken) : applyTo(db, rollout, targets));
      await goOn(db, rollout);
    } else if (only === undefined && !isUndone && !isLast(rollout)) await finishStage(db, rollout);
    return { id, projects: targets.length, isEnd: targets.length === 0 && (isUndone || isLast(rollout)) };
  });
  if (stepped?.isEnd && only === undefined) await finish(db, { id, board_id });
  return stepped;
}

/** A step has rows of many projects locked: it doesn't keep them while it waits for one. */
const SHORT_WAIT = sql`select set_config('lock_timeout', '2s', true)`;

/** Projects that have the release: also those where there was nothing to change. */
const REACHED = sql`state in ('done', 'unchanged')`;

const isLast = ({ stage, stages }: RolloutRow) => stage >= stages.length;

/** Locks the projects in the order of their ids, as a sync does. Each one is planned again: it may have changed since. */
async function applyTo(db: Db, rollout: RolloutRow, targets: Target[]): Promise<void> {
  await allowNoNestedLoops(db);
  const ids = targets.map(({ project_id }) => project_id);
  const locked = await lockProjects(db, sql`is_active and id = ${anyOf(ids)}`);
  const active = locked.map(({ id }) => id);
  await clearGroups(db, sql`(is_master or project_id = ${anyOf(active)})`);
  const planned = new Map((await query(db, replanStatement(rollout, active))).map((plan) => [plan.project_id, plan]));
  const judged = targets.flatMap((target) => {
    const plan = planned.get(target.project_id);
    if (!plan) return [];
    const isReplanned = target.digest !== null && target.digest !== plan.digest;
    // The plan counts no conflicts for a project that held changes.
    const isInConflict = isReplanned && !target.is_held && plan.fields_in_conflict > target.fields_in_conflict;
    return [{ ...plan, is_replanned: isReplanned, state: isInConflict ? 'conflict' : 'planned' }];
  });
  await record(db, rollout.id, judged);
  // Inactive projects, or all of them if the master board was deleted.
  const left = ids.filter((id) => !planned.has(id));
  await query(
    db,
    sql`
      update rollout_targets set state = 'skipped', attempts = attempts + 1, updated_at = now()
      where rollout_id = ${rollout.id} and project_id = ${anyOf(left)}`,
  );
  const applied = judged.filter(({ state }) => state === 'planned').map(({ project_id }) => project_id);
  if (applied.length > 0) await query(db, applyStatement(BY_THE_SERVICE, rollout, applied));
}

type Judged = Planned & { is_replanned: boolean; state: string };

/** What was found out just now. */
async function record(db: Db, rollout_id: number, judged: Judged[]): Promise<void> {
  await query(
    db,
    sql`
      update rollout_targets r set state = j.state, is_replanned = j.is_replanned, fields_kept = j.fields_kept,
        fields_in_conflict = j.fields_in_conflict, rows_pinned = j.rows_pinned, updated_at = now()
      from jsonb_to_recordset(${JSON.stringify(judged)}::jsonb)
        as j (project_id int, state text, is_replanned boolean, fields_kept int, fields_in_conflict int, rows_pinned int)
      where r.rollout_id = ${rollout_id} and r.project_id = j.project_id`,
  );
}

/** After a step: it pauses if too many projects failed or gained a conflict. */
async function goOn(db: Db, { id, board_id }: Pick<RolloutRow, 'id' | 'board_id'>): Promise<void> {
  const [paused] = await query(
    db,
    sql<{ reason: string | null }>`
      update rollouts o set next_at = now(), progressed_at = now(),
        state = case when limits.reason is null then o.state else 'paused' end, reason = limits.reason
      from (
        select case when o.state <> 'running' then null when count(*) filter (where t.state = 'failed') > o.max_failed then 'failures'
          when count(*) filter (where t.state = 'conflict') > o.max_conflicts then 'conflicts' end as reason
        from rollouts o left join rollout_targets t on t.rollout_id = o.id and t.state in ('failed', 'conflict')
        where o.id = ${id} group by o.id
      ) as limits
      where o.id = ${id} and o.state in ('running', 'rolling_back') returning limits.reason`,
  );
  if (paused?.reason)
    await writeEvents({ ...BY_THE_SERVICE, db }, [
      { type: 'rollout.paused', subject_id: id, data: { board_id, reason: paused.reason } },
    ]);
}

/** The next stage begins after the soak; at once if that has ended. */
async function finishStage(db: Db, { id, board_id, stage, stages, is_soaking }: RolloutRow): Promise<void> {
  const soak = stages[stage - 1]?.soak_minutes;
  if (is_soaking) {
    await query(
      db,
      sql`update rollouts set stage = stage + 1, is_soaking = false, progressed_at = now() where id = ${id}`,
    );
    return;
  }
  await query(
    db,
    sql`
      update rollouts set is_soaking = true, progressed_at = now(), next_at = now() + make_interval(mins => ${soak ?? null}::int)
      where id = ${id}`,
  );
  const data = { board_id, number: stage };
  await writeEvents({ ...BY_THE_SERVICE, db }, [{ type: 'rollout.stage_finished', subject_id: id, data }]);
}

/**
 * Ends a rollout or a rollback with nothing left to do. Alone on the board: no project is created meanwhile with what was there
 * before. Projects that were created or became active since the plan are still to do.
 */
async function finish(db: Db, { id, board_id }: { id: number; board_id: number }): Promise<void> {
  await templateTransaction(db, board_id, async (db) => {
    const [rollout] = await query(
      db,
      sql<RolloutRow>`select * from rollouts where id = ${id} and state in ('running', 'rolling_back') for no key update`,
    );
    if (!rollout || (await isLeft(db, rollout))) return;
    const isUndone = rollout.state === 'rolling_back';
    const isFull = !isUndone && rollout.stages.at(-1)?.percent === 100;
    if (isFull && (await addMissing(db, rollout))) return;

    await query(
      db,
      sql`
        update rollouts set state = ${isUndone ? 'rolled_back' : 'done'}, next_at = null, finished_at = now(), progressed_at = now(),
          is_soaking = false where id = ${id}`,
    );
    if (isFull) await query(db, sql`update boards set rolled_out_id = ${rollout.release_id} where id = ${board_id}`);
    const type = isUndone ? 'rollout.rolled_back' : 'rollout.finished';
    await writeEvents({ ...BY_THE_SERVICE, db }, [{ type, subject_id: id, data: { board_id } }]);
  });
}

/** Another node may have found more to do meanwhile. */
async function isLeft(db: Db, { id, state }: RolloutRow): Promise<boolean> {
  const left = await query(
    db,
    sql`select from rollout_targets where rollout_id = ${id} and ${state === 'rolling_back' ? REACHED : sql`state = 'planned'`} limit 1`,
  );
  return left.length > 0;
}

/** Projects that were created, became active, or got the tool, since their turn or the plan. Returns whether there are any. */
async function addMissing(db: Db, rollout: RolloutRow): Promise<boolean> {
  await allowNoNestedLoops(db);
  const missing = await query(
    db,
    sql<{ id: number }>`
      select p.id from projects p left join release_rows l on l.release_id = ${rollout.release_id} and l.parent_id is null
      left join template_rows r on r.id = l.row_id
      where p.is_active and not exists (select from rollout_targets t where t.rollout_id = ${rollout.id} and t.project_id = p.id)
        and (r.content->>'tool_key' is null or exists (
          select from project_tools o where o.project_id = p.id and o.tool_key = r.content->>'tool_key'))
      order by p.id`,
  );
  const ids = missing.map(({ id }) => id);
  const added = ids.length > 0 ? await query(db, planStatement(rollout, rollout.stages.length, ids)) : [];
  const again = await query(
    db,
    sql`
      update rollout_targets t set state = 'planned', digest = null, updated_at = now()
      from projects p join boards b on b.id = ${rollout.board_id} and ${live('b')}
      where t.rollout_id = ${rollout.id} and t.state = 'skipped' and t.attempts <= ${sql.lit(MOST_SKIPS)} and p.id = t.project_id and p.is_active
        and (b.tool_key is null or exists (select from project_tools o where o.project_id = p.id and o.tool_key = b.tool_key))
      returning t.project_id`,
  );
  return added.length + again.length > 0;
}

/** A project that is skipped more often is left out: by the tool of the release it has no access. */
const MOST_SKIPS = 3;
