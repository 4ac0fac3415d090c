import { type RawBuilder, sql } from 'kysely';
import { notFound } from '../../../shared/errors.ts';
import { type RolloutList, type RolloutPreview, type RolloutReport, RolloutTarget } from '../../../shared/rollout.ts';
import { allowNoNestedLoops, bulkTransaction } from '../../database/bulk.ts';
import { readPage } from '../../database/page.ts';
import { type Db, query, queryOne, withShortTimeout } from '../../database/query.ts';
import type { SignedInContext } from '../access/context.ts';
import { type Line, MOST_LINES, previewRollout, shown } from './rolloutStatement.ts';

/** What rollouts do and did, for people and for the metrics. */

export const noSuchRollout = () => notFound('There is no such rollout.');

const TARGET_COUNTS = ['rows_added', 'fields_changed', 'fields_kept', 'fields_in_conflict', 'rows_pinned'] as const;

const rollouts = (db: Db) =>
  db
    .selectFrom('rollouts as o')
    .innerJoin('releases as r', 'r.id', 'o.release_id')
    .innerJoinLateral(
      sql<{ projects: Record<string, number> } & Record<(typeof TARGET_COUNTS)[number], number>>`(
        select coalesce(jsonb_object_agg(state, projects), '{}') as projects, ${sql.join(
          TARGET_COUNTS.map((name) => sql`coalesce(sum(${sql.ref(name)}), 0)::int as ${sql.ref(name)}`),
        )}
        from (
          select state, count(*)::int as projects, ${sql.join(TARGET_COUNTS.map((name) => sql`sum(${sql.ref(name)}) as ${sql.ref(name)}`))}
          from rollout_targets where rollout_id = o.id group by state
        ) as states)`.as('t'),
      (join) => join.onTrue(),
    )
    .select(['o.id', 'o.board_id', BOARD_TITLE, 'o.release_id', 'r.number as release_number', 'o.state'])
    .select(['o.reason', 'o.stage', 'o.is_soaking', 'o.next_at', 'o.overwrite', 'o.max_failed', 'o.max_conflicts'])
    .select(['o.note', 'o.user_id', USER_NAME, 'o.created_at', 'o.started_at', 'o.finished_at'])
    .select(['t.projects', ...TARGET_COUNTS.map((name) => `t.${name}` as const)])
    .select(
      sql<{ percent: number | null; projects: number[] | null; soak_minutes: number | null }[]>`(
        select jsonb_agg(jsonb_build_object('percent', s->'percent', 'projects', s->'projects', 'soak_minutes', s->'soak_minutes'))
        from jsonb_array_elements(o.stages) as s)`.as('stages'),
    );

/** Found by their keys: without statistics, joins would read all boards and users. */
const BOARD_TITLE = sql<string>`(select title from boards where boards.id = o.board_id)`.as('board_title');
const USER_NAME = sql<string | null>`(select name from users where users.id = o.user_id)`.as('user_name');

/** The rollouts of a board, or of all, newest first. */
export async function listRollouts({ db }: SignedInContext, { board_id, state, ...page }: RolloutList) {
  const found = rollouts(db).where(({ and }) =>
    and({ 'o.board_id': board_id ?? undefined, 'o.state': state ?? undefined }),
  );
  return readPage('rollouts', found, page, ['o.id'], 'desc');
}

export async function getRollout({ db }: Pick<SignedInContext, 'db'>, { id }: { id: number }) {
  return { rollout: await rollouts(db).where('o.id', '=', id).executeTakeFirstOrThrow(noSuchRollout) };
}

const TARGET_COLUMNS = RolloutTarget.omit({ project_name: true }).keyof().options;

/** What a rollout does, or did, to each project. */
export async function reportRollout({ db }: SignedInContext, { id, state, ...page }: RolloutReport) {
  await db.selectFrom('rollouts').select('id').where('id', '=', id).executeTakeFirstOrThrow(noSuchRollout);
  const targets = db
    .selectFrom('rollout_targets as t')
    .innerJoin('projects as p', 'p.id', 't.project_id')
    .select(TARGET_COLUMNS.map((column) => `t.${column}` as const))
    .select('p.name as project_name')
    .where(({ and }) => and({ 't.rollout_id': id, 't.state': state ?? undefined }));
  return readPage('projects', targets, page, ['t.project_id']);
}

/** Row by row and field by field: what a rollout would do to a project now or, after its turn, what it and its rollback did. */
export async function previewOfProject({ db }: SignedInContext, { id, project_id }: RolloutPreview) {
  const rollout = await db
    .selectFrom('rollouts as o')
    .leftJoin('rollout_targets as t', (join) =>
      join.onRef('t.rollout_id', '=', 'o.id').on('t.project_id', '=', project_id),
    )
    .select(['o.id', 'o.board_id', 'o.release_id', 'o.overwrite', 'o.user_id', 't.state'])
    .where('o.id', '=', id)
    .executeTakeFirstOrThrow(noSuchRollout);
  if (rollout.state === null) throw notFound('This rollout does not reach that project.');
  const isOver = rollout.state === 'done' || rollout.state === 'rolled_back';
  return { state: rollout.state, lines: isOver ? await doneLines(db, id, project_id) : await plannedLines() };

  async function plannedLines(): Promise<Line[]> {
    return bulkTransaction(db, async (db) => {
      await allowNoNestedLoops(db);
      return query(db, previewRollout(rollout, project_id));
    });
  }
}

const doneLines = (db: Db, rollout_id: number, project_id: number) =>
  query(
    db,
    sql<Line>`
      select c.noun, coalesce(r.board_id, r.group_id, r.card_id) as master_id, c.copy_id as id, r.content->>'title' as title, f.field,
        case when c.undone is null then case when c.before is null then 'added' else 'changed' end
          when c.before is null then case when c.undone = '{}' then 'left' else 'removed' end
          when f.field = any(c.undone) then 'restored' else 'left' end as what,
        ${shown('before', sql`(c.before->f.field)`)}, ${shown('after', sql`(r.content->f.field)`)}
      from rollout_changes c join template_rows r on r.id = c.row_id
      left join lateral jsonb_object_keys(c.before) as f (field) on true
      where c.rollout_id = ${rollout_id} and c.project_id = ${project_id} order by c.noun, master_id, field limit ${sql.lit(MOST_LINES)}`,
  );

type OpenRollouts = Record<'running' | 'waiting' | 'paused' | 'rolling_back' | 'failed' | 'idleSeconds', number>;

/** How long it waits after the end of a stage. Not by `next_at`, which a failed step puts off. */
const SOAK = sql`make_interval(mins => case when is_soaking then coalesce((stages->(stage - 1)->>'soak_minutes')::int, 0) else 0 end)`;

/** For the metrics: open rollouts by state, how many of their projects failed, and for how long a step was due. */
export async function measureRollouts(db: Db): Promise<OpenRollouts> {
  const count = (condition: RawBuilder<unknown>) => sql`count(*) filter (where ${condition})::int`;
  return queryOne(
    db,
    withShortTimeout(sql<OpenRollouts>`
      select ${count(sql`state = 'running' and not is_soaking`)} as running, ${count(sql`state = 'running' and is_soaking`)} as waiting,
        ${count(sql`state = 'paused'`)} as paused, ${count(sql`state = 'rolling_back'`)} as rolling_back,
        coalesce(sum((select count(*) from rollout_targets t where t.rollout_id = o.id and t.state in ('failed', 'conflict'))), 0)::int as failed,
        coalesce(greatest(extract(epoch from now() - min(progressed_at + ${SOAK}) filter (where state <> 'paused' and next_at is not null)), 0), 0)::float8
          as "idleSeconds"
      from rollouts o where state in ('running', 'paused', 'rolling_back')`),
  );
}
