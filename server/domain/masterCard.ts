import { sql } from 'kysely';
import type { z } from 'zod';
import type { Card } from '../../shared/card.ts';
import type {
  MasterCardCreate,
  MasterCardDelete,
  MasterCardMove,
  MasterCardPush,
  MasterCardUpdate,
  PushPreview,
} from '../../shared/master.ts';
import { behind, type Db, query, transact } from '../database/query.ts';
import { badRequest } from '../errors.ts';
import type { SignedInContext } from '../trpc.ts';
import { DERIVED } from './card.ts';
import { cleanDescription } from './description.ts';
import { changeMaster, findMaster, placeMasters } from './masterRow.ts';
import { unlessNull } from './row.ts';
import { applyTemplate, applyTemplateWithin, lockTemplate, previewTemplate } from './template.ts';
import type { Template } from './templateStatement.ts';

type CardRow = z.input<typeof Card>;
type GroupRow = { id: number; board_id: number };

/** Creates a master card at the end of its group and, if asked to, brings it to the projects: both, or neither. */
export async function createMasterCard(context: SignedInContext, { push_to_projects, ...input }: MasterCardCreate) {
  const description = await cleanDescription(input.description);
  const { board_id } = await findMaster<GroupRow>(context.db, 'groups', input.group_id);

  return transact(context.db, async (db) => {
    await lockTemplate(db, board_id);
    await findMaster(db, 'groups', input.group_id);
    const [created] = await query(
      db,
      sql<{ id: number }>`
        insert into cards (is_master, group_id, title, description, unique_identifier, evaluation_check, tour_key,
          short_description, status, is_active, priority, created_by, position, sort_order)
        select true, ${input.group_id}, ${input.title}, ${description ?? null}, coalesce(${input.unique_identifier ?? null}, gen_random_uuid()::text),
          ${input.evaluation_check ?? null}, ${input.tour_key ?? null}, ${input.short_description ?? null}, ${input.status ?? 'open'},
          ${input.is_active ?? true}, ${input.priority ?? 'normal'}, ${context.caller.id}, last.position, last.position
        from (select ${behind(sql`select max(position) from cards where group_id = ${input.group_id} and deleted_at is null`)} as position) as last
        returning id`,
    );
    const applied = push_to_projects
      ? await applyTemplateWithin(db, context, await cardTemplate(db, created!.id))
      : { projects_changed: 0 };
    return { card: await getMasterCard(db, created!.id), projects_updated: applied.projects_changed };
  });
}

/** Changes what was sent of a master card; a push brings it to the copies. */
export async function updateMasterCard(
  context: SignedInContext,
  { id, title, status, is_active, priority, unique_identifier, ...clearable }: MasterCardUpdate,
) {
  const description = await cleanDescription(clearable.description);
  await changeMaster(context.db, 'cards', id, {
    ...clearable,
    description,
    ...unlessNull({ title, status, is_active, priority, unique_identifier }),
  });
  return { card: await getMasterCard(context.db, id) };
}

/** Puts master cards at places in a group, from that group or from others of its board: all of them, or none. */
export async function reorderMasterCards({ db }: SignedInContext, { group_id, cards }: MasterCardMove) {
  const { board_id } = await findMaster<GroupRow>(db, 'groups', group_id);

  await transact(db, async (db) => {
    await lockTemplate(db, board_id);
    await findMaster(db, 'groups', group_id);
    await placeMasters(db, 'cards', cards);
    const ids = cards.map(({ id }) => id);
    const [elsewhere] = await query(
      db,
      sql`
        select c.id from cards c join groups g on g.id = c.group_id
        where c.id = any(${ids}::int[]) and g.board_id <> ${board_id} limit 1`,
    );
    if (elsewhere) throw badRequest('The cards are of several boards.');
    await query(
      db,
      sql`update cards set group_id = ${group_id} where id = any(${ids}::int[]) and group_id <> ${group_id}`,
    );
  });
}

/** Brings a master card to every active project that has access, and its copies up to date. */
export async function pushMasterCard(context: SignedInContext, { card_id }: MasterCardPush) {
  const { projects_changed } = await applyTemplate(context, await cardTemplate(context.db, card_id));
  return { projects_updated: projects_changed };
}

/** What a push would do to each project. */
export async function previewPush(context: SignedInContext, { card_id, ...page }: PushPreview) {
  return previewTemplate(context, await cardTemplate(context.db, card_id), page);
}

/** Deletes a master card; its copies stay, unless asked to delete them too. */
export async function deleteMasterCard(
  { db }: SignedInContext,
  { id, delete_from_projects = false }: MasterCardDelete,
) {
  const { board_id } = await cardTemplate(db, id);

  await transact(db, async (db) => {
    await lockTemplate(db, board_id);
    await changeMaster(db, 'cards', id, { deleted_at: new Date() });
    if (!delete_from_projects) return;
    // In the order in which everybody locks projects.
    await query(
      db,
      sql`
        select p.id from projects p where exists (select from cards c where c.project_id = p.id and c.master_card_id = ${id})
        order by p.id for no key update`,
    );
    await query(
      db,
      sql`update cards set deleted_at = now(), updated_at = now() where master_card_id = ${id} and deleted_at is null`,
    );
  });
}

async function getMasterCard(db: Db, id: number): Promise<CardRow> {
  const [card] = await query(db, sql<CardRow>`select c.*, ${DERIVED} from cards c where c.id = ${id}`);
  return card!;
}

async function cardTemplate(db: Db, id: number): Promise<Template> {
  const { group_id } = await findMaster<{ group_id: number }>(db, 'cards', id);
  const [board] = await query(
    db,
    sql<{ id: number; tool_key: string | null }>`
      select b.id, b.tool_key from groups g join boards b on b.id = g.board_id where g.id = ${group_id}`,
  );
  return { board_id: board!.id, tool_key: board!.tool_key, cards: 1, card: { id, group_id } };
}
