import { type RawBuilder, sql } from 'kysely';
import type { z } from 'zod';
import { badRequest, invalid } from '../../../shared/errors.ts';
import type { EventType } from '../../../shared/event.ts';
import {
  LONGEST_HOLD_DAYS,
  type OfBoard,
  type ProjectTemplate,
  type TemplateHold,
  type TemplateReset,
  USUAL_HOLD_DAYS,
} from '../../../shared/projectTemplate.ts';
import { lockProject } from '../../database/projectLock.ts';
import { type Db, live, query, transact } from '../../database/query.ts';
import type { RowChanges } from '../../database/tables.ts';
import { actingProject } from '../access/access.ts';
import type { ProjectContext } from '../access/context.ts';
import { changeRow, findRow } from '../board/row.ts';
import { writeEvents } from '../event/event.ts';
import { FIELDS } from './templateSource.ts';

/** The boards of the project that came from master boards: which release they have, and whether the project holds changes. */
export async function listProjectTemplates({ db, caller }: ProjectContext) {
  const project = actingProject(caller);
  const templates = await query(
    db,
    sql<z.input<typeof ProjectTemplate>>`
      select b.id as board_id, b.master_board_id, b.title, r.number as release_number, r.note as release_note, a.name as release_user_name,
        (select max(number) from releases l where l.board_id = b.master_board_id) as latest_number,
        case when t.hold_until > now() then t.hold_until end as hold_until, case when t.hold_until > now() then h.name end as held_by_name,
        case when t.hold_until > now() then t.hold_note end as hold_note, coalesce(cardinality(t.pinned), 0) as pinned_count
      from boards b left join project_templates t on t.project_id = b.project_id and t.board_id = b.master_board_id
      left join releases r on r.id = t.release_id left join users a on a.id = r.user_id left join users h on h.id = t.held_by
      where b.project_id = ${project.id} and b.master_board_id is not null and ${live('b')} order by b.position, b.id`,
  );
  return { templates };
}

const notFromTemplate = (noun: string, otherwise = '') =>
  badRequest(`This ${noun} is no copy of a template${otherwise}.`, 'not_from_template');

/** Changes what is stored about the template of a board, after a step of a sync or rollout that is under way there. */
async function changeTemplate(
  context: ProjectContext,
  board_id: number,
  type: EventType,
  values: Record<string, RawBuilder<unknown>>,
): Promise<void> {
  await transact(context.db, async (db) => {
    const { row, project } = await findRow({ ...context, db }, 'boards', board_id, ['master_board_id']);
    if (row.master_board_id === null) throw notFromTemplate('board');
    await lockProject(db, project.id);
    // Without a row, nothing is held and nothing is pinned.
    if (type === 'template.held')
      await query(
        db,
        sql`
        insert into project_templates (project_id, board_id) values (${project.id}, ${row.master_board_id})
        on conflict (project_id, board_id) do nothing`,
      );
    const sets = Object.entries(values).map(([column, value]) => sql`${sql.ref(column)} = ${value}`);
    const changed = await query(
      db,
      sql`
        update project_templates set ${sql.join(sets)} where project_id = ${project.id} and board_id = ${row.master_board_id}
          and (${sql.join(Object.keys(values).map((column) => sql.ref(column)))}) is distinct from (${sql.join(Object.values(values))})
        returning project_id`,
    );
    if (changed.length > 0)
      await writeEvents({ ...context, db }, [
        { type, project_id: project.id, subject_id: row.master_board_id, data: { board_id } },
      ]);
  });
}

const DAY_MILLISECONDS = 86_400_000;

/** Holds changes of a board: syncs, pushes and rollouts leave the project out until then. */
export async function holdTemplate(context: ProjectContext, { board_id, until: sent, note }: TemplateHold) {
  const until = sent ?? new Date(Date.now() + USUAL_HOLD_DAYS * DAY_MILLISECONDS);
  const days = (until.getTime() - Date.now()) / DAY_MILLISECONDS;
  if (days <= 0) throw invalid({ until: 'must be in the future' }, 'invalid_input');
  if (days > LONGEST_HOLD_DAYS)
    throw invalid({ until: `must be at most ${LONGEST_HOLD_DAYS} days ahead` }, 'invalid_input');
  await changeTemplate(context, board_id, 'template.held', {
    hold_until: sql`${until}::timestamptz(3)`,
    held_by: sql`${context.caller.id}::int`,
    hold_note: sql`${note ?? null}::text`,
  });
}

export const unholdTemplate = (context: ProjectContext, { board_id }: OfBoard) =>
  changeTemplate(context, board_id, 'template.unheld', {
    hold_until: sql`null::timestamptz`,
    held_by: sql`null::int`,
    hold_note: sql`null::text`,
  });

/** Takes contents again that were rolled back in the project. */
export const unpinTemplate = (context: ProjectContext, { board_id }: OfBoard) =>
  changeTemplate(context, board_id, 'template.unpinned', { pinned: sql`'{}'::int[]` });

type Released = { row_id: number; content: Record<string, unknown> };

/** The template of a copy in the release of its project or, if that is not known or does not have it, in the latest that has. */
async function findReleased(
  db: Db,
  noun: string,
  master_id: number,
  project_id: number,
): Promise<Released | undefined> {
  const [released] = await query(
    db,
    sql<Released>`
      select r.id as row_id, r.content from template_rows r join release_rows p on p.row_id = r.id join releases l on l.id = p.release_id
      left join project_templates t on t.project_id = ${project_id} and t.board_id = l.board_id
      where r.${sql.ref(`${noun}_id`)} = ${master_id} order by (l.id = t.release_id) desc nulls last, l.number desc limit 1`,
  );
  return released;
}

const TABLES = { board: 'boards', group: 'groups', card: 'cards' } as const;

/** Sets the fields of a copy back to its template; what belongs to the project, such as its place and its state, stays. */
export async function resetToTemplate(context: ProjectContext, { noun, id }: TemplateReset) {
  const table = TABLES[noun];
  const master = `master_${noun}_id`;
  return transact(context.db, async (db) => {
    const within = { ...context, db };
    const { row, project } = await findRow(within, table, id, [master as never]);
    const master_id = (row as Record<string, number | null>)[master];
    const released = master_id && (await findReleased(db, noun, master_id, project.id));
    if (!released) throw notFromTemplate(noun, ', or its template was never published');

    const fields = FIELDS[table].filter((field) => field in released.content && field !== 'position');
    const values = Object.fromEntries(fields.map((field) => [field, released.content[field]]));
    const changed = await changeRow(within, table, id, values as RowChanges<typeof table>, ['id', 'project_id']);
    const base =
      table === 'cards'
        ? sql`base_id = ${released.row_id}, base_values = null`
        : sql`brought = coalesce(brought, '{}') || ${JSON.stringify(values)}::jsonb`;
    await query(db, sql`update ${sql.table(table)} set ${base} where id = ${id}`);
    return { noun, id, version: changed.version };
  });
}
