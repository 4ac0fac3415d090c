export type Input = Record<string, any>;
export type Caller = { id: number; project_id: number; platform_id: number };
export type Statement = { text: string; values: (caller: Caller, input: Input) => unknown[] };
export type Statements = Record<'listBoards' | 'getBoard' | 'createCard' | 'createComment', Statement>;

/**
 * The statements of the service, with their columns in the order of the answer, but only for rows of the user's default project
 * or of the selected one.
 */

const LARGEST_RESPONSE_BYTES = 8 * 1024 * 1024;

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

export const BOARD_COLUMNS = `id, project_id, platform_id, master_board_id, is_master, is_active, title, description, tool_key, position,
  created_by, created_at, updated_at, deleted_at`;

const listBoards: Statement = {
  values: ({ id, project_id }, { tool_key = null }) => [project_id, tool_key, id],
  text: `
    select ${BOARD_COLUMNS}, groups_count, cards_count, is_too_large from (
      select list.*, sum(bytes) over () > ${LARGEST_RESPONSE_BYTES} as is_too_large, row_number() over (order by position, id) as place
      from (
        select b.*,
          (select count(*)::int from groups g where g.board_id = b.id and g.deleted_at is null) as groups_count,
          (select count(*)::int from groups g join cards c on c.group_id = g.id and c.deleted_at is null
              and (c.tour_key is null or not exists (select from tour_dismissals d where d.card_id = c.id and d.user_id = $3 and coalesce(d.tour_key, c.tour_key) = c.tour_key))
            where g.board_id = b.id and g.deleted_at is null) as cards_count,
          (400 + coalesce(octet_length(b.title), 0) + coalesce(octet_length(b.description), 0))::bigint as bytes
        from boards b
        where b.project_id = $1 and b.deleted_at is null and ($2::text is null or b.tool_key = $2)
      ) as list
    ) as list
    where not is_too_large or place = 1 order by position, id`,
};

export const iso = (column: string) =>
  `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as ${column.split('.')[1]}`;
export const moments = (alias: string) =>
  ['created_at', 'updated_at', 'deleted_at'].map((name) => iso(`${alias}.${name}`)).join();

export const IS_OVERDUE = `coalesce(c.due_date < now() and c.status <> 'closed' and (c.is_due_at_midnight
  or c.due_date <= now() - interval '24 hours' or c.due_date <> date_trunc('day', c.due_date, 'UTC')), false)`;

/** PostgreSQL writes the whole board as JSON, which is passed on without parsing. */
const getBoard: Statement = {
  values: (caller, { id }) => [id, caller.project_id, caller.id],
  text: `
    select b.project_id, size.is_too_large, case when b.project_id = $2 and not size.is_too_large then (
      select left(row_to_json(board)::text, -1) || ',"groups":[' || coalesce((
        select string_agg(left(row_to_json(listed)::text, -1) || ',"cards":[' || coalesce((
          select string_agg(row_to_json(card)::text, ',' order by card.position, card.id) from (
            select c.id, c.project_id, c.platform_id, c.master_card_id, c.group_id, c.owner_id, c.tag_id, c.created_by,
              c.sort_order, c.position, c.is_master, c.is_active,
              ${IS_OVERDUE} as is_overdue, c.unique_identifier,
              c.evaluation_check, c.tour_key, c.short_description, c.title, c.description, c.status, c.priority,
              ${iso('c.due_date')}, ${iso('c.snoozed_until')}, ${moments('c')}
            from cards c
            where c.group_id = listed.id and c.deleted_at is null and (c.tour_key is null or not exists (
              select from tour_dismissals d where d.card_id = c.id and d.user_id = $3 and coalesce(d.tour_key, c.tour_key) = c.tour_key))
          ) as card), '') || ']}', ',' order by listed.position, listed.id)
        from (
          select g.id, g.project_id, g.platform_id, g.master_group_id, g.board_id, g.position, g.created_by, g.is_master,
            g.is_collapsed, g.is_active, g.title, g.description, g.type, g.color, g.icon, ${moments('g')}
          from groups g where g.board_id = b.id and g.deleted_at is null
        ) as listed), '') || ']}'
      from (
        select b.id, b.project_id, b.platform_id, b.master_board_id, b.is_master, b.is_active, b.title, b.description,
          b.tool_key, b.position, b.created_by, ${moments('b')}
      ) as board) end as board
    from boards b cross join lateral (
      select coalesce(sum((400 + coalesce(octet_length(g.title), 0) + coalesce(octet_length(g.description), 0))::bigint + (
        select coalesce(sum((700 + coalesce(octet_length(c.title), 0) + coalesce(octet_length(c.short_description), 0)
          + coalesce(octet_length(c.description), 0))::bigint), 0)
        from cards c where c.group_id = g.id and c.deleted_at is null)), 0) > ${LARGEST_RESPONSE_BYTES} as is_too_large
      from groups g where g.board_id = b.id and g.deleted_at is null
    ) as size
    where b.id = $1 and b.project_id is not null and b.deleted_at is null`,
};

/** A date-time, not a date. */
export const isMidnight = (due: any) => due?.length > '2026-01-31'.length && Date.parse(due) % 86_400_000 === 0;

/** The part of a statement that writes the event of a created row. */
export const withEvent = (type: string, platform: string, user: string, data: string) => `, noted as (
  insert into events (type, platform_id, project_id, subject_id, data, user_id, surface, request_id)
  select '${type}', ${platform}, project_id, id, ${data}, ${user}, 'rest', gen_random_uuid() from created)`;
export const CARD_DATA = "jsonb_build_object('group_id', group_id, 'version', version)";
export const COMMENT_DATA =
  "jsonb_build_object('card_id', card_id, 'parent_comment_id', parent_comment_id, 'version', version)";

const nextPosition = (last: string) => `least(coalesce((${last}), 0), 2147483646) + 1`;

const createCard: Statement = {
  values: ({ id, project_id, platform_id }, input) => [
    JSON.stringify({ ...input, is_due_at_midnight: isMidnight(input.due_date) }),
    project_id,
    platform_id,
    id,
  ],
  text: `
    with sent as (
      select * from jsonb_to_record($1::jsonb) as sent (title text, description text,
        group_id int, status text, owner_id int, tag_id int, due_date timestamptz, is_due_at_midnight boolean, priority text)
    ), group_found as (
      select g.project_id from groups g, sent
      where g.id = sent.group_id and not g.is_master and g.deleted_at is null
      for share of g
    ), tag_found as (
      select t.project_id from tags t, sent where t.id = sent.tag_id and t.deleted_at is null
      for share of t
    ), owner_found as (
      select coalesce(m.project_id, 0) as project_id
      from sent join users u on u.id = sent.owner_id and u.is_active
      left join members m on m.user_id = u.id and m.project_id = $2
    ), created as (
      insert into cards (project_id, platform_id, group_id, owner_id, tag_id, title, description, status, priority,
        due_date, is_due_at_midnight, created_by, position, sort_order)
      select $2, $3, sent.group_id, sent.owner_id, sent.tag_id, sent.title,
        sent.description, coalesce(sent.status, 'open'), coalesce(sent.priority, 'normal'), sent.due_date,
        sent.is_due_at_midnight, $4,
        ${nextPosition(`coalesce(
          (select max(position) from cards where group_id = sent.group_id and deleted_at is null),
          (select max(position) from cards where project_id = $2 and group_id is null
            and sent.group_id is null and deleted_at is null))`)},
        ${nextPosition('select max(sort_order) from cards where project_id = $2 and deleted_at is null')}
      from sent
      where (sent.group_id is null or exists (select from group_found where project_id = $2))
        and (sent.tag_id is null or exists (select from tag_found where project_id = $2))
        and (sent.owner_id is null or exists (select from owner_found where project_id = $2))
      returning *
    ) ${withEvent('card.created', '$3', '$4', CARD_DATA)}
    select c.id, c.project_id, c.platform_id, c.master_card_id, c.group_id, c.owner_id, c.tag_id, c.created_by,
      c.sort_order, c.position, c.is_master, c.is_active,
      ${IS_OVERDUE} as is_overdue, c.unique_identifier,
      c.evaluation_check, c.tour_key, c.short_description, c.title, c.description, c.status, c.priority,
      c.due_date, c.snoozed_until, c.created_at, c.updated_at, c.deleted_at,
      case when c.tour_key is null then 'regular' else 'tour' end as card_type
    from sent left join created c on true`,
};

const createComment: Statement = {
  values: ({ id, project_id }, { card_id, comment, parent_comment_id = null }) => [
    card_id,
    parent_comment_id,
    id,
    comment,
    project_id,
  ],
  text: `
    with card as (
      select id, project_id, platform_id from cards where id = $1 and project_id is not null and deleted_at is null for share
    ), parent as (
      select id from comments where id = $2::int and card_id = $1 and deleted_at is null for share
    ), created as (
      insert into comments (project_id, card_id, user_id, parent_comment_id, comment)
      select card.project_id, card.id, $3, $2::int, $4 from card
      where card.project_id = $5 and ($2::int is null or exists (select from parent))
      returning *
    ) ${withEvent('comment.created', '(select platform_id from card)', '$3', COMMENT_DATA)}
    select created.id, created.project_id, created.card_id, created.user_id, created.parent_comment_id, created.comment,
      created.is_read, created.read_at, created.created_at, created.updated_at, created.deleted_at
    from card left join created on true`,
};

export const STATEMENTS: Statements = { listBoards, getBoard, createCard, createComment };
