export type Input = Record<string, any>;
export type Caller = { id: number; project_id: number; platform_id: number };
type Statement = { text: string; values: (caller: Caller, input: Input) => unknown[] };
export type Statements = Record<'listBoards' | 'getBoard' | 'createCard' | 'createComment', Statement>;

export const FIND_CALLER = `
    select u.id, u.superadmin, u.superadmin_billing, p.id as project_id, p.platform_id, m.role
    from sessions s
    join users u on u.id = s.user_id and u.is_active
    left join projects p on p.is_active and p.id = coalesce($1::int, coalesce(u.default_project_id, (
      select min(own.id) from members mine join projects own on own.id = mine.project_id and own.is_active where mine.user_id = u.id)))
    left join members m on m.project_id = p.id and m.user_id = u.id
    where s.id = $2::uuid and s.user_id = $3 and s.revoked_at is null and s.expires_at > now()`;

export const FIND_USER = `
    select id, name, email, language, superadmin, superadmin_billing, enable_ai, password_hash
    from users where lower(email) = lower($1) and is_active and totp_secret is null`;

export const OPEN_SESSION = `
    with holder as (
      select id from users where id = $1 and is_active and password_hash = $2 and totp_secret is null for share
    )
    insert into sessions (user_id, expires_at) select id, now() + make_interval(secs => $3) from holder
    returning id, (select count(*)::int from recovery_codes where user_id = $1 and used_at is null) as codes_left`;

const BOARD_COLUMNS = `id, project_id, platform_id, master_board_id, is_master, is_active, title, description, tool_key, position,
  created_by, created_at, updated_at, deleted_at`;

const iso = (column: string) =>
  `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as ${column.split('.')[1]}`;
const moments = (alias: string) =>
  ['created_at', 'updated_at', 'deleted_at'].map((name) => iso(`${alias}.${name}`)).join();

const IS_OVERDUE = `coalesce(c.due_date < now() and c.status <> 'closed' and (c.is_due_at_midnight
  or c.due_date <= now() - interval '24 hours' or c.due_date <> date_trunc('day', c.due_date, 'UTC')), false)`;

const isShown = (user: string) => `(c.tour_key is null or not exists (
  select from tour_dismissals d where d.card_id = c.id and d.user_id = ${user} and coalesce(d.tour_key, c.tour_key) = c.tour_key))`;

/** A date-time, not a date. */
const isMidnight = (due: any) => due?.length > '2026-01-31'.length && Date.parse(due) % 86_400_000 === 0;

/** The part of a statement that writes the event of a created row. */
const withEvent = (type: string, platform: string, user: string, data: string) => `, noted as (
  insert into events (type, platform_id, project_id, subject_id, data, user_id, surface, request_id)
  select '${type}', ${platform}, project_id, id, ${data}, ${user}, 'rest', gen_random_uuid() from created)`;
const CARD_DATA = "jsonb_build_object('group_id', group_id, 'version', version)";
const COMMENT_DATA =
  "jsonb_build_object('card_id', card_id, 'parent_comment_id', parent_comment_id, 'version', version)";

/**
 * The least SQL that gives the documented fields and keeps to the documented rules, whatever the service does: no limit of the
 * answer's size, no project but the caller's, no audit trail. A row is locked only where it must not be deleted meanwhile.
 */
export const STATEMENTS: Statements = {
  listBoards: {
    values: ({ id, project_id }, { tool_key = null }) => [project_id, tool_key, id],
    text: `
      select ${BOARD_COLUMNS},
        (select count(*)::int from groups where board_id = b.id and deleted_at is null) as groups_count,
        (select count(*)::int from groups g join cards c on c.group_id = g.id
          where g.board_id = b.id and g.deleted_at is null and c.deleted_at is null and ${isShown('$3')}) as cards_count
      from boards b where project_id = $1 and deleted_at is null and ($2::text is null or tool_key = $2)
      order by position, id`,
  },
  getBoard: {
    values: (caller, { id }) => [id, caller.id],
    text: `
      select b.project_id, left(to_json(board)::text, -1) || ',"groups":[' || coalesce((
        select string_agg(left(to_json(listed)::text, -1) || ',"cards":[' || coalesce((
          select string_agg(to_json(card)::text, ',' order by position, id) from (
            select id, project_id, platform_id, master_card_id, group_id, owner_id, tag_id, created_by, sort_order, position,
              is_master, is_active, ${IS_OVERDUE} as is_overdue, unique_identifier, evaluation_check, tour_key,
              short_description, title, description, status, priority, ${iso('c.due_date')}, ${iso('c.snoozed_until')}, ${moments('c')}
            from cards c where c.group_id = listed.id and c.deleted_at is null and ${isShown('$2')}) as card), '') || ']}', ','
          order by position, id)
        from (
          select id, project_id, platform_id, master_group_id, board_id, position, created_by, is_master, is_collapsed, is_active,
            title, description, type, color, icon, ${moments('g')}
          from groups g where board_id = b.id and deleted_at is null) as listed), '') || ']}' as board
      from boards b cross join lateral (
        select b.id, b.project_id, b.platform_id, b.master_board_id, b.is_master, b.is_active, b.title, b.description, b.tool_key,
          b.position, b.created_by, ${moments('b')}) as board
      where b.id = $1 and b.project_id is not null and b.deleted_at is null`,
  },
  createCard: {
    values: ({ id, project_id, platform_id }, input) => [
      ...[project_id, platform_id, id, input.group_id, input.tag_id, input.owner_id, input.title, input.description],
      ...[input.status ?? 'open', input.priority ?? 'normal', input.due_date, isMidnight(input.due_date)],
    ],
    text: `
      with created as (
        insert into cards (project_id, platform_id, created_by, group_id, tag_id, owner_id, title, description, status, priority,
          due_date, is_due_at_midnight, position, sort_order)
        select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
          1 + coalesce(case when $4::int is null
            then (select max(position) from cards where project_id = $1 and group_id is null and deleted_at is null)
            else (select max(position) from cards where group_id = $4 and deleted_at is null) end, 0),
          1 + coalesce((select max(sort_order) from cards where project_id = $1 and deleted_at is null), 0)
        where ($4::int is null or exists (
            select from groups where id = $4 and project_id = $1 and not is_master and deleted_at is null for share))
          and ($5::int is null or exists (select from tags where id = $5 and project_id = $1 and deleted_at is null for share))
          and ($6::int is null or exists (
            select from members join users on id = user_id and is_active where user_id = $6 and project_id = $1))
        returning *
      ) ${withEvent('card.created', '$2', '$3', CARD_DATA)}
      select id, project_id, platform_id, master_card_id, group_id, owner_id, tag_id, created_by, sort_order, position, is_master,
        is_active, ${IS_OVERDUE} as is_overdue, unique_identifier, evaluation_check, tour_key, short_description, title,
        description, status, priority, due_date, snoozed_until, created_at, updated_at, deleted_at,
        case when tour_key is null then 'regular' else 'tour' end as card_type
      from created c`,
  },
  createComment: {
    values: ({ id, project_id }, sent) => [sent.card_id, sent.parent_comment_id, id, sent.comment, project_id],
    text: `
      with card as (
        select platform_id from cards where id = $1 and project_id = $5 and deleted_at is null for share
      ), created as (
        insert into comments (project_id, card_id, user_id, parent_comment_id, comment, root_comment_id, depth)
        select $5, $1, $3, $2, $4, coalesce(parent.root_comment_id, parent.id), coalesce(parent.depth + 1, 0)
        from card left join (
          select * from comments where id = $2 and depth < 100 and deleted_at is null for share) as parent on true
        where $2::int is null or parent.card_id = $1
        returning *
      ) ${withEvent('comment.created', '(select platform_id from card)', '$3', COMMENT_DATA)}
      select id, project_id, card_id, user_id, parent_comment_id, comment, is_read, read_at, created_at, updated_at, deleted_at
      from created`,
  },
};
