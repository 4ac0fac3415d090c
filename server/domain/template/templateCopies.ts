import { type RawBuilder, sql } from 'kysely';
import { live } from '../../database/query.ts';
import { amongTargets, isNotPinned, staleCopies } from './templateFields.ts';
import { adoptedCards } from './templateIdentifiers.ts';
import { type Part, type Source, templatesOf } from './templateSource.ts';

/** What is copied to projects: a whole master board (sync), the board with its groups, one group, or one card. */
export type Template = Part & {
  board_id: number;
  /** About how many rows a project gets. */
  rowCount: number;
};

/**
 * The common table expressions that find the missing and the stale copies of master boards, from the board down to its cards.
 * `writeCopies` inserts what is missing as `added_…`, and updates what is stale as `updated_…`.
 *
 *     template        existing copies              to add              gets contents         to update
 *     master_board →  board_copy                 → missing_board   →   live_board            stale_board
 *                                                                          ↓
 *     master_group →  group_copy                 → missing_group   →   live_group            stale_group
 *                                                                          ↓
 *     master_card  →  card_copy → complete_project →   cards of        incomplete_group      stale_card ← adopted_card
 *
 * No `on conflict`, which would use up an id for each existing row. `not in` uses a hash table, whatever the planner expects. `offset 0` forces the right index, since
 * outdated statistics would choose another.
 *
 * - `master_board`, `master_group`, `master_card`: the templates (`templateSource.ts`).
 * - `target`: each project with each board, whether it has the board's tool (`has_access`), holds changes (`is_held`) or neither
 *   (`is_reached`), whether the template is active, and which release it has.
 * - `pinned`: contents that were rolled back in a project. They are neither added nor brought there.
 * - `board_copy`, `group_copy`, `card_copy`: all existing copies, deleted ones too, so that none is added a second time.
 * - `complete_project`: projects with a copy of every card, which need no further look.
 * - `missing_board`, `missing_group`: copies to add; none of an inactive template, and none below a copy that a project deleted.
 * - `live_board`, `live_group`: copies that can get contents; without an id if this statement is about to add them.
 * - `incomplete_group`: live groups of active boards where a card may be missing.
 * - `stale_board`, `stale_group`, `stale_card`: copies to update; a field that the project edited stays.
 * - `adopted_card`: copies of a deleted template that a new one with the same identifier takes over.
 */
export function findCopies(part: Part, source: Source, projects: RawBuilder<unknown>): RawBuilder<unknown> {
  const { kind, group_id, card_id } = part;
  const isSync = kind === 'sync';
  const isActive = sql`g.is_active and c.is_active`;
  const which = {
    groups: group_id ? sql`g.id = ${group_id}` : sql`true`,
    // A push also brings an inactive card's fields to its copies, and a rollout those of all cards.
    cards: card_id ? sql`c.id = ${card_id}` : isSync ? isActive : kind === 'rollout' ? sql`true` : sql`false`,
    isAddable: kind === 'rollout' ? isActive : sql`true`,
  };
  return sql`
    ${templatesOf(source, which)}, target as materialized (
      select *, has_access and not is_held as is_reached from (
        select p.id as project_id, p.platform_id, b.id as master_board_id, pt.release_id,
          b.tool_key is null or exists (
            select from project_tools t where t.project_id = p.id and t.tool_key = b.tool_key) as has_access,
          coalesce(pt.hold_until > now(), false) as is_held,
          b.is_active ${group_id ? sql`and exists (select from master_group where is_active)` : sql``}
            ${card_id ? sql`and exists (select from master_card where is_active)` : sql``} as is_active
        from (${projects}) as p cross join master_board b
        left join project_templates pt on pt.project_id = p.id and pt.board_id = b.id
      ) as t
    ), pinned as materialized (
      select pt.project_id, row_id from project_templates pt cross join lateral unnest(pt.pinned) as row_id
      where pt.board_id = any(array(select id from master_board)) and pt.${amongTargets(part)} and pt.pinned <> '{}'
    ), board_copy as materialized (
      select b.project_id, b.master_board_id, b.id, b.deleted_at from boards b
      where b.master_board_id = any(array(select id from master_board)) and b.${amongTargets(part)}
    ), group_copy as materialized (
      select g.project_id, g.id, g.board_id, g.master_group_id, g.deleted_at from groups g
      where g.master_group_id = any(array(select id from master_group)) and g.${amongTargets(part)}
    ), card_copy as materialized (
      select c.project_id, c.master_card_id from cards c
      where c.master_card_id = any(array(select id from master_card)) and c.${amongTargets(part)}
    ), complete_project as materialized (
      select project_id from card_copy group by project_id having count(*) = (select count(*) from master_card)
    ), missing_board as materialized (
      select t.project_id, t.platform_id, t.master_board_id, m.row_id from target t join master_board m on m.id = t.master_board_id
      where t.is_active and t.is_reached and ${isNotPinned('t')}
        and (t.project_id, t.master_board_id) not in (select project_id, master_board_id from board_copy)
    ), live_board as materialized (
      select t.project_id, t.platform_id, t.master_board_id, t.is_active, b.id
      from target t join board_copy b on b.project_id = t.project_id and b.master_board_id = t.master_board_id
      where t.is_reached and ${live('b')}
      union all
      select project_id, platform_id, master_board_id, true, null from missing_board
    ), missing_group as materialized (
      select b.project_id, b.platform_id, b.id as board_id, m.id as master_group_id, m.row_id
      from live_board b join master_group m on m.board_id = b.master_board_id
      where b.is_active and m.is_active and ${isNotPinned('b')}
        and (b.project_id, m.id) not in (select project_id, master_group_id from group_copy)
    ), live_group as (
      select b.project_id, b.platform_id, b.is_active, g.id, g.master_group_id
      from live_board b join group_copy g on g.project_id = b.project_id and g.board_id = b.id
      where ${live('g')}
      union all
      select project_id, platform_id, true, null, master_group_id from missing_group
    ), incomplete_group as materialized (
      select * from live_group g where g.is_active and exists (select from master_card)
        and g.project_id not in (select project_id from complete_project)
    ), stale_board as materialized (
      ${isSync || kind === 'push_board' || kind === 'rollout' ? staleCopies('boards', part) : NOTHING_STALE}
    ), stale_group as materialized (
      ${kind === 'push' ? NOTHING_STALE : staleCopies('groups', part)}
    ), adopted_card as materialized (
      ${adoptedCards(part)}
    ), stale_card as materialized (
      select * from adopted_card ${card_id || kind === 'rollout' ? sql`union all ${staleCopies('cards', part)}` : sql``}
    )`;
}

const NOTHING_STALE = sql`select null::int as id, null::int as project_id, null::int as template_id, false as is_changed where false`;
