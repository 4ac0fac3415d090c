import { setImmediate } from 'node:timers/promises';
import { type RawBuilder, sql } from 'kysely';
import type { z } from 'zod';
import type { ProjectOutcome, TemplateRun, TemplateRunList, TemplateRunReport } from '../../shared/master.ts';
import type { Page } from '../../shared/paging.ts';
import { type EntityManager, query, transact } from '../database/query.ts';
import { notFound } from '../errors.ts';
import type { SignedInContext } from '../trpc.ts';
import { readCursor, toPage } from './page.ts';

/** What is brought to the projects: a master board with all that is on it, or one card of it. */
export type Template = {
  board_id: number;
  tool_key: string | null;
  cards: number;
  card?: { id: number; group_id: number };
};

export type Applied = { projects_with_access: number; projects_skipped: number; projects_changed: number };

/**
 * Brings a template to every active project that has access, some projects at a time: each time is one transaction, so
 * that a run that is cut off leaves no project half done, and others are served in between. What a project has, or has
 * deleted, is left alone. Returns what it did; the history keeps it.
 */
export async function applyTemplate({ em, caller, isEmbedded }: SignedInContext, template: Template): Promise<Applied> {
  const run = await beginRun(em, caller.id, template);
  let after: number | null = 0;
  while (after !== null) {
    after = await transact(em, (em) => applyToNextProjects(em, template, run, after!, isEmbedded));
    // The embedded database works in this very thread: let it take in what has arrived meanwhile.
    await setImmediate();
  }
  return finishRun(em, run);
}

/** The same within a transaction that is under way, for a template that is made in it. */
export async function applyTemplateWithin(
  em: EntityManager,
  { caller, isEmbedded }: SignedInContext,
  template: Template,
): Promise<Applied> {
  const run = await beginRun(em, caller.id, template);
  let after: number | null = 0;
  while (after !== null) after = await applyToNextProjects(em, template, run, after, isEmbedded);
  return finishRun(em, run);
}

/** What `applyTemplate` would do to each project; nothing changes. */
export async function previewTemplate({ em }: SignedInContext, template: Template, { cursor, limit }: Page) {
  const [after] = readCursor(cursor, 1) ?? [0];
  const found = await query(
    em,
    sql<z.input<typeof ProjectOutcome>>`
      with ${lacking(template, sql`select id, platform_id from projects where is_active and id > ${after} order by id limit ${limit + 1}`)}
      select outcome.*, p.name as project_name from (${outcomes('missing', template)}) as outcome
      join projects p on p.id = outcome.project_id order by outcome.project_id`,
  );
  const { rows: projects, next_cursor } = toPage(found, limit, ({ project_id }) => [project_id]);
  return { projects, next_cursor };
}

/** Who synced or pushed what, newest first. */
export async function listTemplateRuns({ em }: SignedInContext, { board_id, cursor, limit }: TemplateRunList) {
  const [before] = readCursor(cursor, 1) ?? [null];
  const found = await query(
    em,
    sql<z.input<typeof TemplateRun>>`
      select r.*, b.title as board_title, c.title as card_title, u.name as user_name
      from template_runs r join boards b on b.id = r.board_id
      left join cards c on c.id = r.card_id left join users u on u.id = r.user_id
      where (${before}::int is null or r.id < ${before}::int) and (${board_id ?? null}::int is null or r.board_id = ${board_id ?? null}::int)
      order by r.id desc limit ${limit + 1}`,
  );
  const { rows: runs, next_cursor } = toPage(found, limit, ({ id }) => [id]);
  return { runs, next_cursor };
}

/** What a run did to each project. */
export async function reportTemplateRun(
  { em }: SignedInContext,
  { id, outcome = null, cursor, limit }: TemplateRunReport,
) {
  const [run] = await query(em, sql`select id from template_runs where id = ${id}`);
  if (!run) throw notFound('There is no such run.');

  const [after] = readCursor(cursor, 1) ?? [0];
  const found = await query(
    em,
    sql<z.input<typeof ProjectOutcome>>`
      select o.*, p.name as project_name from template_outcomes o join projects p on p.id = o.project_id
      where o.run_id = ${id} and o.project_id > ${after} and (${outcome}::text is null or o.outcome = ${outcome})
      order by o.project_id limit ${limit + 1}`,
  );
  const { rows: projects, next_cursor } = toPage(found, limit, ({ project_id }) => [project_id]);
  return { projects, next_cursor };
}

/** Whoever changes a master board, or brings it to projects, waits here for whoever does already. */
export async function lockTemplate(em: EntityManager, board_id: number): Promise<void> {
  // A queue of long syncs is no fault: wait for longer than a row is waited for elsewhere.
  await query(em, sql`select set_config('lock_timeout', '120s', true)`);
  await query(em, sql`select pg_advisory_xact_lock(${TEMPLATE_LOCKS}, ${board_id})`);
}

/** Tells these locks from others that have a number for a name. */
const TEMPLATE_LOCKS = 1_414_352_972;

async function beginRun(em: EntityManager, userId: number, { board_id, card }: Template): Promise<number> {
  const [run] = await query(
    em,
    sql<{ id: number }>`
      insert into template_runs (kind, board_id, card_id, user_id)
      values (${card ? 'push' : 'sync'}, ${board_id}, ${card?.id ?? null}, ${userId}) returning id`,
  );
  return run!.id;
}

async function finishRun(em: EntityManager, run: number): Promise<Applied> {
  const [finished] = await query(
    em,
    sql<Applied>`
      update template_runs r set finished_at = now(), projects_with_access = o.with_access, projects_skipped = o.skipped,
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

/** How many rows to write in one go: a second's work for a server, a blink for the embedded database. */
const ROWS_AT_ONCE = { server: 30_000, embedded: 2_000 };

/** Returns the last project that it came to, or null if there are no more. */
async function applyToNextProjects(
  em: EntityManager,
  template: Template,
  run: number,
  after: number,
  isEmbedded: boolean,
): Promise<number | null> {
  const rowsAtOnce = isEmbedded ? ROWS_AT_ONCE.embedded : ROWS_AT_ONCE.server;
  const projectsAtOnce = Math.max(1, Math.floor(rowsAtOnce / Math.max(1, template.cards)));

  await lockTemplate(em, template.board_id);
  const projects = await query(
    em,
    sql<{ id: number }>`
      select id from projects where is_active and id > ${after} order by id limit ${projectsAtOnce} for no key update`,
  );
  if (projects.length === 0) return null;

  await query(
    em,
    copyStatement(
      template,
      run,
      projects.map(({ id }) => id),
    ),
  );
  return projects.length < projectsAtOnce ? null : projects.at(-1)!.id;
}

/**
 * The common tables of what projects lack of a template, as SQL. A copy that a project deleted is no longer open: nothing
 * is added to it. `not exists` rather than `on conflict`, which would use up an id for each row that is there already.
 */
function lacking({ board_id, tool_key, card }: Template, projects: RawBuilder<unknown>): RawBuilder<unknown> {
  const onlyGroup = card ? sql`and id = ${card.group_id}` : sql``;
  const onlyCard = card ? sql`and id = ${card.id}` : sql``;
  return sql`
    target as (
      select p.id as project_id, p.platform_id, (${tool_key}::text is null or exists (
        select from project_tools t where t.project_id = p.id and t.tool_key = ${tool_key})) as has_access
      from (${projects}) as p
    ), master_board as (
      select * from boards where id = ${board_id}
    ), master_group as (
      select * from groups where board_id = ${board_id} and deleted_at is null ${onlyGroup}
    ), master_card as (
      select * from cards where group_id in (select id from master_group) and deleted_at is null ${onlyCard}
    ), missing_board as (
      select t.project_id, t.platform_id from target t where t.has_access and not exists (
        select from boards b where b.project_id = t.project_id and b.master_board_id = ${board_id})
    ), open_board as (
      select b.project_id, t.platform_id, b.id from target t
      join boards b on b.project_id = t.project_id and b.master_board_id = ${board_id} and b.deleted_at is null
      where t.has_access
      union all
      select project_id, platform_id, null from missing_board
    ), missing_group as (
      select o.project_id, o.platform_id, o.id as board_id, g.id as master_group_id from open_board o cross join master_group g
      where not exists (select from groups c where c.project_id = o.project_id and c.master_group_id = g.id)
    ), open_group as (
      select o.project_id, o.platform_id, c.id, g.id as master_group_id from open_board o cross join master_group g
      join groups c on c.project_id = o.project_id and c.master_group_id = g.id and c.deleted_at is null
      union all
      select project_id, platform_id, null, master_group_id from missing_group
    ), missing_card as (
      select o.project_id, o.platform_id, o.id as group_id, o.master_group_id, m.id as master_card_id
      from open_group o join master_card m on m.group_id = o.master_group_id
      where not exists (select from cards c where c.project_id = o.project_id and c.master_card_id = m.id)
    ), stale_card as (
      select c.id, c.project_id, m.id as master_card_id from master_card m
      join target t on t.has_access and ${card !== undefined}
      join cards c on c.project_id = t.project_id and c.master_card_id = m.id and c.deleted_at is null
      where (${ownFields('c')}) is distinct from (${ownFields('m')})
    )`;
}

/** What a template says of its copies for good; the rest is the project's once it is copied. */
const OWN_FIELDS = [
  'title',
  'short_description',
  'description',
  'evaluation_check',
  'tour_key',
  'unique_identifier',
  'is_active',
];
const ownFields = (table: string) => sql.join(OWN_FIELDS.map((field) => sql.ref(`${table}.${field}`)));

/** Copies what the projects lack, brings up to date what is stale, and writes down what it did to each: one statement. */
function copyStatement(template: Template, run: number, projects: number[]): RawBuilder<unknown> {
  return sql`
    with ${lacking(template, sql`select id, platform_id from projects where id = any(${projects}::int[])`)}, added_board as (
      insert into boards (project_id, platform_id, master_board_id, title, description, tool_key, is_active, created_by, position)
      select l.project_id, l.platform_id, m.id, m.title, m.description, m.tool_key, m.is_active, m.created_by,
        least(coalesce((select max(position) from boards b where b.project_id = l.project_id and b.deleted_at is null), 0), 2147483646) + 1
      from missing_board l cross join master_board m
      returning id, project_id
    ), added_group as (
      insert into groups (project_id, platform_id, master_group_id, board_id, title, description, type, color, icon, is_active, is_collapsed, created_by, position)
      select l.project_id, l.platform_id, m.id, coalesce(l.board_id, b.id), m.title, m.description, m.type, m.color, m.icon, m.is_active,
        m.is_collapsed, m.created_by, m.position
      from missing_group l join master_group m on m.id = l.master_group_id left join added_board b on b.project_id = l.project_id
      returning id, project_id, master_group_id
    ), last_in_project as (
      select t.project_id, coalesce((select max(sort_order) from cards c where c.project_id = t.project_id and c.deleted_at is null), 0)::bigint as sort_order
      from target t where t.has_access
    ), last_in_group as (
      select o.id, coalesce((select max(position) from cards c where c.group_id = o.id and c.deleted_at is null), 0)::bigint as position
      from open_group o where o.id is not null
    ), added_card as (
      insert into cards (project_id, platform_id, master_card_id, group_id, title, short_description, description, evaluation_check,
        tour_key, unique_identifier, is_active, status, priority, created_by, position, sort_order)
      select l.project_id, l.platform_id, m.id, coalesce(l.group_id, g.id), m.title, m.short_description, m.description, m.evaluation_check,
        m.tour_key, m.unique_identifier, m.is_active, m.status, m.priority, m.created_by,
        least(coalesce(lg.position, 0) + row_number() over (partition by l.project_id, l.master_group_id order by m.position, m.id), 2147483647),
        least(lp.sort_order + row_number() over (partition by l.project_id order by mg.position, mg.id, m.position, m.id), 2147483647)
      from missing_card l join master_card m on m.id = l.master_card_id join master_group mg on mg.id = l.master_group_id
      join last_in_project lp on lp.project_id = l.project_id
      left join last_in_group lg on lg.id = l.group_id
      left join added_group g on g.project_id = l.project_id and g.master_group_id = l.master_group_id
      returning project_id
    ), updated_card as (
      update cards c set ${sql.join(OWN_FIELDS.map((field) => sql`${sql.ref(field)} = ${sql.ref(`m.${field}`)}`))}, updated_at = now()
      from stale_card s join master_card m on m.id = s.master_card_id
      where c.id = s.id
      returning c.project_id
    )
    insert into template_outcomes (run_id, project_id, outcome, reason, boards_added, groups_added, cards_added, cards_updated)
    select ${run}, project_id, outcome, reason, boards_added, groups_added, cards_added, cards_updated from (${outcomes('added', template)}) as outcome`;
}

/** What happens to each project, counted from what it lacks or from what was added. */
function outcomes(counted: 'missing' | 'added', { card }: Template): RawBuilder<unknown> {
  const count = (noun: string) =>
    sql`left join (select project_id, count(*)::int as count from ${sql.table(`${counted}_${noun}`)} group by project_id) as ${sql.ref(noun)} using (project_id)`;
  const updated = sql.table(counted === 'added' ? 'updated_card' : 'stale_card');
  const deletedCard = card
    ? sql`exists (select from cards c where c.project_id = t.project_id and c.master_card_id = ${card.id} and c.deleted_at is not null)`
    : sql`false`;
  return sql`
    select project_id, boards_added, groups_added, cards_added, cards_updated, outcome,
      case when outcome <> 'skipped' then null when has_access then 'deleted_by_project' else 'no_access' end as reason
    from (
      select *, case when not has_access then 'skipped' when boards_added + groups_added + cards_added > 0 then 'added'
        when cards_updated > 0 then 'updated' when is_deleted then 'skipped' else 'unchanged' end as outcome
      from (
      select t.project_id, t.has_access, o.project_id is null or ${deletedCard} as is_deleted,
        coalesce(board.count, 0) as boards_added, coalesce("group".count, 0) as groups_added,
        coalesce(card.count, 0) as cards_added, coalesce(updated.count, 0) as cards_updated
      from target t left join open_board o using (project_id)
      ${count('board')} ${count('group')} ${count('card')}
      left join (select project_id, count(*)::int as count from ${updated} group by project_id) as updated using (project_id)
      ) as counted
    ) as judged`;
}
