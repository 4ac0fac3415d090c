-- The longest statements, as they reach the embedded database, each with the operations that run it. Their plans are held by
-- tests/operation/plans.test.ts and tests/operation/staleStatistics.test.ts. A test compares this listing with what runs. After a change:
-- npx vitest run --project embedded tests/operation/statementListing.test.ts --update

-- cards.create
with 
  group_found as (
    select project_id from groups where $1::int is not null and id = $1::int and not is_master and deleted_at is null and true for share
  ), tag_found as (
    select project_id from tags where $2::int is not null and id = $2::int and deleted_at is null and true for share
  ),
    named as materialized (
      select g.project_id as group_project_id, t.project_id as tag_project_id,
        
  case when $3::boolean then $4::int
    else coalesce(g.project_id, t.project_id, $4::int) end as id
      from (select) as one left join group_found g on true left join tag_found t on true
    ), acting as (
      select named.*, 
  case when "named"."id" = $4::int then $5::text
    when not $3::boolean then (
      select case when $6::boolean then 'owner' else their.role end from projects theirs
      left join members their on their.project_id = theirs.id and their.user_id = $7::int
      where theirs.id = "named"."id" and theirs.is_active) end as role,
        case when named.id = $4::int then $8::int
          else (select platform_id from projects where id = named.id) end as platform_id
      from named
    ), 
  owner_found as (
    select m.user_id from members m join users u on u.id = m.user_id and u.is_active
    where $9::int is not null and m.user_id = $9::int and m.project_id = (select id from acting where true) for key share of m
  ),
    created as (
      insert into cards (project_id, platform_id, "title", "description", "status", "priority", "group_id", "owner_id", "tag_id", "due_date", "is_due_at_midnight", created_by, position, sort_order)
      select acting.id, acting.platform_id, $10::text, $11::text, coalesce($12::text, 'open'), coalesce($13::text, 'normal'), $1::int, $9::int, $2::int, $14::timestamptz, coalesce($15::boolean, false), $7::int,
        least(coalesce((coalesce(
  (select max(position) from cards where group_id = $1::int and deleted_at is null),
  (select max(position) from cards where project_id = acting.id and group_id is null and $1::int is null and deleted_at is null))), 0), 2147483647 - 1) + 1, least(coalesce((select max(sort_order) from cards where project_id = acting.id and deleted_at is null), 0), 2147483647 - 1) + 1
      from acting
      where true and coalesce(acting.role = any($16::text[]), false)
        and ($1::int is null or acting.id = group_project_id)
        and ($2::int is null or acting.id = tag_project_id)
        and ($9::int is null or exists (select from owner_found))
      returning concat('{"id":', "cards"."id", ',"project_id":', coalesce("cards"."project_id"::text, 'null'), ',"platform_id":', coalesce("cards"."platform_id"::text, 'null'), ',"master_card_id":', coalesce("cards"."master_card_id"::text, 'null'), ',"group_id":', coalesce("cards"."group_id"::text, 'null'), ',"owner_id":', coalesce("cards"."owner_id"::text, 'null'), ',"tag_id":', coalesce("cards"."tag_id"::text, 'null'), ',"created_by":', coalesce("cards"."created_by"::text, 'null'), ',"sort_order":', "cards"."sort_order", ',"position":', "cards"."position", ',"is_master":', ("cards"."is_master")::text, ',"is_active":', ("cards"."is_active")::text, ',"is_overdue":', (coalesce(due_date < now() and status <> 'closed' and (is_due_at_midnight
  or due_date <= now() - interval '24 hours' or due_date <> date_trunc('day', due_date, 'UTC')), false))::text, ',"unique_identifier":', to_json("cards"."unique_identifier"), ',"evaluation_check":', coalesce(to_json("cards"."evaluation_check")::text, 'null'), ',"tour_key":', coalesce(to_json("cards"."tour_key")::text, 'null'), ',"short_description":', coalesce(to_json("cards"."short_description")::text, 'null'), ',"title":', to_json("cards"."title"), ',"description":', coalesce(to_json("cards"."description")::text, 'null'), ',"status":', to_json("cards"."status"), ',"priority":', to_json("cards"."priority"), ',"due_date":', coalesce(('"' || to_char("cards"."due_date" at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"')::text, 'null'), ',"snoozed_until":', coalesce(('"' || to_char("cards"."snoozed_until" at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"')::text, 'null'), ',"created_at":', ('"' || to_char("cards"."created_at" at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"'), ',"updated_at":', ('"' || to_char("cards"."updated_at" at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"'), ',"deleted_at":', coalesce(('"' || to_char("cards"."deleted_at" at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"')::text, 'null'), ',"card_type":', to_json(case when tour_key is null then 'regular' else 'tour' end), '}') as card, ("version"::text || '-' || (extract(epoch from "updated_at") * 1000)::bigint) as "version", id, project_id, platform_id, group_id
    ), 
  noted as (
    insert into events (type, platform_id, project_id, subject_id, data, user_id, key_id, surface, request_id)
    select type, platform_id, project_id, subject_id, data, coalesce(by_user_id, $17::int), $18::int, $19, $20
    from (
  select 'card.created' as type, platform_id, project_id, id as subject_id, null::int as by_user_id,
    jsonb_build_object('group_id', group_id, 'version', 1) as data
  from created) as happened
    returning type, platform_id, project_id, subject_id, data, user_id, key_id, surface, request_id
  ), audited as (
    insert into audit_entries (type, platform_id, project_id, subject_id, data, user_id, key_id, surface, request_id, address)
    select type, platform_id, project_id, subject_id, data, user_id, key_id, surface, request_id, $21 from noted
    where type in ('template.started', 'release.published', 'rollout.planned', 'rollout.started', 'rollout.paused', 'rollout.resumed', 'rollout.advanced', 'rollout.stage_finished', 'rollout.retried', 'rollout.aborted', 'rollout.finished', 'rollout.rollback_started', 'rollout.rolled_back', 'template.held', 'template.unheld', 'template.unpinned', 'platform.created', 'platform.updated', 'project.created', 'project.updated', 'member.added', 'member.updated', 'member.removed', 'invitation.created', 'invitation.withdrawn', 'invitation.declined', 'subscription.trial_set', 'subscription.upgrade_started', 'subscription.paid', 'subscription.changed', 'plan.set', 'user.created', 'user.updated', 'user.password_changed', 'user.erased', 'export.started', 'second_factor.started', 'second_factor.enabled', 'second_factor.dropped', 'recovery_codes.renewed', 'identity.linked', 'identity.unlinked', 'session.started', 'session.proven', 'session.ended', 'sessions.ended', 'key.created', 'key.exchanged', 'key.rotated', 'key.revoked', 'mail.retried', 'identity_issuer.created', 'identity_issuer.deleted', 'identity_rule.created', 'identity_rule.updated', 'identity_rule.deleted', 'webhook.created', 'webhook.updated', 'webhook.deleted', 'webhook.rotated', 'webhook.redelivered', 'webhook.skipped', 'webhook.tested', 'webhook.disabled') or ($22::boolean and project_id is not null and (
      select true from members m where m.project_id = noted.project_id and m.user_id = noted.user_id) is null))
    select created.card, created.version, acting.id as acting_id, acting.role as acting_role, group_project_id, tag_project_id,
      exists (select from owner_found) as is_owner_member, true as is_confirmed
    from acting left join created on true;

-- cards.createMany, cards.updateMany
with sent as materialized (
        select * from jsonb_to_recordset($1::jsonb)
          as sent (row int, project_id int, group_id int, tag_id int, owner_id int)
      ), group_found as (
        select found.* from (select distinct group_id as id from sent order by group_id) as wanted cross join lateral (
          select id, project_id from groups where id = wanted.id and not is_master and deleted_at is null for share) as found
      ), tag_found as (
        select found.* from (select distinct tag_id as id from sent order by tag_id) as wanted cross join lateral (
          select id, project_id from tags where id = wanted.id and deleted_at is null for share) as found
      ), named as materialized (
        select sent.row, sent.owner_id, group_found.project_id as group_project_id, tag_found.project_id as tag_project_id,
          coalesce(sent.project_id, 
  case when $2::boolean then $3::int
    else coalesce(group_found.project_id, tag_found.project_id, $4::int) end) as acting_id
        from sent left join group_found on group_found.id = sent.group_id left join tag_found on tag_found.id = sent.tag_id
      ), acting as materialized (
        select place.id, 
  case when "place"."id" = $5::int then $6::text
    when not $7::boolean then (
      select case when $8::boolean then 'owner' else their.role end from projects theirs
      left join members their on their.project_id = theirs.id and their.user_id = $9::int
      where theirs.id = "place"."id" and theirs.is_active) end as role, (select platform_id from projects where projects.id = place.id) as platform_id
        from (select distinct acting_id as id from named) as place
      ), owner_found as (
        select owner.* from (
          select distinct owner_id, acting_id from named where owner_id is not null order by owner_id, acting_id
        ) as wanted cross join lateral (
          select m.user_id, m.project_id from members m join users u on u.id = m.user_id and u.is_active
          where m.user_id = wanted.owner_id and m.project_id = wanted.acting_id for key share of m
        ) as owner
      )
      select named.row, acting.id as acting_id, acting.role as acting_role, acting.platform_id, group_project_id, tag_project_id,
        owner_found.user_id is not null as is_owner_member
      from named left join acting on acting.id = named.acting_id
        left join owner_found on owner_found.user_id = named.owner_id and owner_found.project_id = named.acting_id;

-- cards.createMany
with sent as materialized (
        select *, coalesce(group_id, 0) as place from jsonb_to_recordset($1::jsonb) as sent (row int,
          project_id int, platform_id int, "title" text, "description" text, "status" text, "priority" text, "group_id" int, "owner_id" int, "tag_id" int, "due_date" timestamptz, "is_due_at_midnight" boolean)
      ), last_in_group as materialized (
        select project_id, place, coalesce(
  (select max(position) from cards where group_id = p.group_id and deleted_at is null),
  (select max(position) from cards where project_id = p.project_id and group_id is null and p.group_id is null and deleted_at is null)) as position
        from (select distinct project_id, group_id, place from sent) as p
      ), last_in_project as materialized (
        select project_id, (select max(sort_order) from cards where project_id = p.project_id and deleted_at is null) as sort_order from (select distinct project_id from sent) as p
      ), created as (
        insert into cards (project_id, platform_id, "title", "description", "status", "priority", "group_id", "owner_id", "tag_id", "due_date", "is_due_at_midnight", created_by, position, sort_order)
        select project_id, platform_id, "title"::text, "description"::text, coalesce("status"::text, 'open'), coalesce("priority"::text, 'normal'), "group_id"::int, "owner_id"::int, "tag_id"::int, "due_date"::timestamptz, coalesce("is_due_at_midnight"::boolean, false), $2::int,
          least(coalesce((last_in_group.position), 0), 2147483647 - row_number() over (partition by project_id, place order by row)) + row_number() over (partition by project_id, place order by row),
          least(coalesce((last_in_project.sort_order), 0), 2147483647 - row_number() over (partition by project_id order by row)) + row_number() over (partition by project_id order by row)
        from sent join last_in_group using (project_id, place) join last_in_project using (project_id) order by row
        returning id, project_id, platform_id, group_id, position, sort_order
      ), 
  noted as (
    insert into events (type, platform_id, project_id, subject_id, data, user_id, key_id, surface, request_id)
    select type, platform_id, project_id, subject_id, data, coalesce(by_user_id, $3::int), $4::int, $5, $6
    from (
  select 'card.created' as type, platform_id, project_id, id as subject_id, null::int as by_user_id,
    jsonb_build_object('group_id', group_id, 'version', 1) as data
  from created) as happened
    returning type, platform_id, project_id, subject_id, data, user_id, key_id, surface, request_id
  ), audited as (
    insert into audit_entries (type, platform_id, project_id, subject_id, data, user_id, key_id, surface, request_id, address)
    select type, platform_id, project_id, subject_id, data, user_id, key_id, surface, request_id, $7 from noted
    where type in ('template.started', 'release.published', 'rollout.planned', 'rollout.started', 'rollout.paused', 'rollout.resumed', 'rollout.advanced', 'rollout.stage_finished', 'rollout.retried', 'rollout.aborted', 'rollout.finished', 'rollout.rollback_started', 'rollout.rolled_back', 'template.held', 'template.unheld', 'template.unpinned', 'platform.created', 'platform.updated', 'project.created', 'project.updated', 'member.added', 'member.updated', 'member.removed', 'invitation.created', 'invitation.withdrawn', 'invitation.declined', 'subscription.trial_set', 'subscription.upgrade_started', 'subscription.paid', 'subscription.changed', 'plan.set', 'user.created', 'user.updated', 'user.password_changed', 'user.erased', 'export.started', 'second_factor.started', 'second_factor.enabled', 'second_factor.dropped', 'recovery_codes.renewed', 'identity.linked', 'identity.unlinked', 'session.started', 'session.proven', 'session.ended', 'sessions.ended', 'key.created', 'key.exchanged', 'key.rotated', 'key.revoked', 'mail.retried', 'identity_issuer.created', 'identity_issuer.deleted', 'identity_rule.created', 'identity_rule.updated', 'identity_rule.deleted', 'webhook.created', 'webhook.updated', 'webhook.deleted', 'webhook.rotated', 'webhook.redelivered', 'webhook.skipped', 'webhook.tested', 'webhook.disabled') or ($8::boolean and project_id is not null and (
      select true from members m where m.project_id = noted.project_id and m.user_id = noted.user_id) is null))
      select id, project_id, group_id, position, sort_order from created order by id;

-- cards.updateMany
with sent as materialized (
        select * from jsonb_to_recordset($1::jsonb) as sent (id int, if_version text, changes jsonb)
      ), locked as materialized (
        select t as card, array[("t"."version"::text || '-' || (extract(epoch from "t"."updated_at") * 1000)::bigint), ("t"."xmin"::text || '-' || (extract(epoch from "t"."updated_at") * 1000)::bigint)] as fitting from cards t
        where t.id = any(array(select id from sent)) and t.deleted_at is null and ((select id from groups where is_clearing order by id limit 1) is null
    or ("t"."group_id" = any(array(select id from groups where is_clearing))) is not true) and t.project_id is not null order by t.id for update of t
      ), found as (
        select updated.*, array_remove(array[case when (locked.card)."title" is distinct from updated."title" then 'title' end, case when (locked.card)."short_description" is distinct from updated."short_description" then 'short_description' end, case when (locked.card)."description" is distinct from updated."description" then 'description' end, case when (locked.card)."is_active" is distinct from updated."is_active" then 'is_active' end, case when (locked.card)."status" is distinct from updated."status" then 'status' end, case when (locked.card)."priority" is distinct from updated."priority" then 'priority' end, case when (locked.card)."owner_id" is distinct from updated."owner_id" then 'owner_id' end, case when (locked.card)."tag_id" is distinct from updated."tag_id" then 'tag_id' end, case when (locked.card)."due_date" is distinct from updated."due_date" then 'due_date' end, case when (locked.card)."is_due_at_midnight" is distinct from updated."is_due_at_midnight" then 'due_date' end, case when (locked.card)."sort_order" is distinct from updated."sort_order" then 'sort_order' end]::text[], null) as changed_fields,
          sent.if_version is null or locked.fitting && string_to_array(sent.if_version, ',') as is_required
        from locked join sent on sent.id = (locked.card).id
          cross join lateral jsonb_populate_record(locked.card, sent.changes) as updated
      ), changed as (
        update cards set "title" = found."title", "short_description" = found."short_description", "description" = found."description", "is_active" = found."is_active", "status" = found."status", "priority" = found."priority", "owner_id" = found."owner_id", "tag_id" = found."tag_id", "due_date" = found."due_date", "is_due_at_midnight" = found."is_due_at_midnight", "sort_order" = found."sort_order", updated_at = now() from found where cards.id = found.id and found.is_required
        returning cards.id, cards.project_id, cards.group_id, cards.position, cards.sort_order, cards.version as version_number
      ), 
  noted as (
    insert into events (type, platform_id, project_id, subject_id, data, user_id, key_id, surface, request_id)
    select type, platform_id, project_id, subject_id, data, coalesce(by_user_id, $2::int), $3::int, $4, $5
    from (
    select $6 as type, (select platform_id from projects where projects.id = found.project_id) as platform_id, found.project_id, found.id as subject_id,
      null::int as by_user_id, $7::jsonb || jsonb_build_object('version', version_number) || jsonb_build_object('fields', (select jsonb_agg(distinct field order by field) from unnest(changed_fields) as field)) as data
    from found join changed using (id) where cardinality(changed_fields) > 0) as happened
    returning type, platform_id, project_id, subject_id, data, user_id, key_id, surface, request_id
  ), audited as (
    insert into audit_entries (type, platform_id, project_id, subject_id, data, user_id, key_id, surface, request_id, address)
    select type, platform_id, project_id, subject_id, data, user_id, key_id, surface, request_id, $8 from noted
    where type in ('template.started', 'release.published', 'rollout.planned', 'rollout.started', 'rollout.paused', 'rollout.resumed', 'rollout.advanced', 'rollout.stage_finished', 'rollout.retried', 'rollout.aborted', 'rollout.finished', 'rollout.rollback_started', 'rollout.rolled_back', 'template.held', 'template.unheld', 'template.unpinned', 'platform.created', 'platform.updated', 'project.created', 'project.updated', 'member.added', 'member.updated', 'member.removed', 'invitation.created', 'invitation.withdrawn', 'invitation.declined', 'subscription.trial_set', 'subscription.upgrade_started', 'subscription.paid', 'subscription.changed', 'plan.set', 'user.created', 'user.updated', 'user.password_changed', 'user.erased', 'export.started', 'second_factor.started', 'second_factor.enabled', 'second_factor.dropped', 'recovery_codes.renewed', 'identity.linked', 'identity.unlinked', 'session.started', 'session.proven', 'session.ended', 'sessions.ended', 'key.created', 'key.exchanged', 'key.rotated', 'key.revoked', 'mail.retried', 'identity_issuer.created', 'identity_issuer.deleted', 'identity_rule.created', 'identity_rule.updated', 'identity_rule.deleted', 'webhook.created', 'webhook.updated', 'webhook.deleted', 'webhook.rotated', 'webhook.redelivered', 'webhook.skipped', 'webhook.tested', 'webhook.disabled') or ($9::boolean and project_id is not null and (
      select true from members m where m.project_id = noted.project_id and m.user_id = noted.user_id) is null))
      select * from (select id, is_required from found) as found left join changed using (id);

-- masterBoards.sync, masterBoards.push, masterGroups.push, masterCards.push, releases.publish
with 
  
    
    master_board as materialized (
      select b.*, b.id as board_id, jsonb_build_object('title', "b"."title", 'description', "b"."description", 'tool_key', "b"."tool_key", 'is_active', "b"."is_active") as content from (
  select b.*, (
  select r.id from template_rows r
  where r."board_id" = "b"."id" and r.digest = md5((jsonb_build_object('title', "b"."title", 'description', "b"."description", 'tool_key', "b"."tool_key", 'is_active', "b"."is_active"))::text)) as row_id from boards b where b.id = any($1::int[]) and b.is_master and b.deleted_at is null) as b
    ), master_group as materialized (
      select g.*, jsonb_build_object('title', "g"."title", 'description', "g"."description", 'type', "g"."type", 'color', "g"."color", 'icon', "g"."icon", 'is_active', "g"."is_active", 'position', "g"."position") as content from (
  select g.*, (
  select r.id from template_rows r
  where r."group_id" = "g"."id" and r.digest = md5((jsonb_build_object('title', "g"."title", 'description', "g"."description", 'type', "g"."type", 'color', "g"."color", 'icon', "g"."icon", 'is_active', "g"."is_active", 'is_collapsed', "g"."is_collapsed", 'position', "g"."position"))::text)) as row_id from (
  select id, board_id, board_position, "title", "description", "type", "color", "icon", "is_active", "is_collapsed",
    least(place + max(position - place) over (partition by board_id order by place), 2147483647)::int as position
  from (
    select g.*, b.position as board_position, row_number() over (partition by b.id order by g.position, g.id) as place
    from master_board b cross join lateral (select * from groups g where g.board_id = b.id and g.deleted_at is null offset 0) as g
  ) as g) as g) as g where true
    ), master_card as materialized (
      select c.*, g.board_id, jsonb_build_object('title', "c"."title", 'short_description', "c"."short_description", 'description', "c"."description", 'evaluation_check', "c"."evaluation_check", 'tour_key', "c"."tour_key", 'is_active', "c"."is_active") as content, true as is_addable,
        row_number() over (partition by g.id order by c.position, c.id) as place_in_group,
        row_number() over (order by g.board_position, g.board_id, g.position, g.id, c.position, c.id) as place_on_boards
      from master_group g 
  cross join lateral (
    select c.*, (
  select r.id from template_rows r
  where r."card_id" = "c"."id" and r.digest = md5((jsonb_build_object('title', "c"."title", 'short_description', "c"."short_description", 'description', "c"."description", 'evaluation_check', "c"."evaluation_check", 'tour_key', "c"."tour_key", 'is_active', "c"."is_active", 'status', "c"."status", 'priority', "c"."priority"))::text)) as row_id from cards c where c.group_id = g.id and c.deleted_at is null offset 0) as c where true
    ), draft as materialized (
    select id as board_id, null::int as group_id, null::int as card_id, row_id, null::int as parent_id, position, jsonb_build_object('title', "m"."title", 'description', "m"."description", 'tool_key', "m"."tool_key", 'is_active', "m"."is_active") as released from master_board m
    union all
    select null, id, null, row_id, board_id, position, jsonb_build_object('title', "m"."title", 'description', "m"."description", 'type', "m"."type", 'color', "m"."color", 'icon', "m"."icon", 'is_active', "m"."is_active", 'is_collapsed', "m"."is_collapsed", 'position', "m"."position") from master_group m
    union all
    select null, null, id, row_id, group_id, position, jsonb_build_object('title', "m"."title", 'short_description', "m"."short_description", 'description', "m"."description", 'evaluation_check', "m"."evaluation_check", 'tour_key', "m"."tour_key", 'is_active', "m"."is_active", 'status', "m"."status", 'priority', "m"."priority") from master_card m
  ), created as (
        insert into template_rows (board_id, group_id, card_id, digest, content)
        select board_id, group_id, card_id, md5(released::text), released from draft where row_id is null
        returning id, concat_ws('-', board_id, 'g' || group_id, 'c' || card_id) as key
      ), stored as materialized (
        select d.board_id, d.group_id, d.card_id, d.parent_id, d.position, coalesce(d.row_id, c.id) as row_id
        from (select *, concat_ws('-', board_id, 'g' || group_id, 'c' || card_id) as key from draft) as d left join created c using (key)
      ), last as (
        select id, number from releases where board_id = $2 order by number desc limit 1
      ), before as materialized (
        select r.board_id, r.group_id, r.card_id, p.row_id, p.parent_id, p.position
        from last join release_rows p on p.release_id = last.id join template_rows r on r.id = p.row_id
      ), wanted as materialized (
        select d.row_id, d.parent_id, d.position from stored d
        where true or not exists (select from last) or (d.card_id is null and not exists (
          select from before b where (b.board_id, b.group_id) is not distinct from (d.board_id, d.group_id)))
        union all
        select d.row_id, d.parent_id, d.position from before d
        where (true) is not true
      ), published as (
        insert into releases (board_id, number, note, user_id)
        select $3, coalesce((select number from last), 0) + 1, $4, $5::int
        where exists (select row_id, parent_id, position from wanted except select row_id, parent_id, position from before)
          or exists (select row_id, parent_id, position from before except select row_id, parent_id, position from wanted)
        returning id, number
      ), filled as (
        insert into release_rows (release_id, row_id, parent_id, position)
        select p.id, w.row_id, w.parent_id, w.position from wanted w cross join published p
      )
      select coalesce(p.id, last.id) as id, coalesce(p.number, last.number) as number, p.id is not null as is_new,
        last.id as previous_id
      from (select) as one left join last on true left join published p on true;

-- masterBoards.sync, masterBoards.push, masterGroups.push, masterCards.push
/* planned each time */ 
    with 
    
    
    
    master_board as materialized (
      select b.*, b.id as board_id, jsonb_build_object('title', "b"."title", 'description', "b"."description", 'tool_key', "b"."tool_key", 'is_active', "b"."is_active") as content from (
  select b.*, (
  select r.id from template_rows r
  where r."board_id" = "b"."id" and r.digest = md5((jsonb_build_object('title', "b"."title", 'description', "b"."description", 'tool_key', "b"."tool_key", 'is_active', "b"."is_active"))::text)) as row_id from boards b where b.id = any($1::int[]) and b.is_master and b.deleted_at is null) as b
    ), master_group as materialized (
      select g.*, jsonb_build_object('title', "g"."title", 'description', "g"."description", 'type', "g"."type", 'color', "g"."color", 'icon', "g"."icon", 'is_active', "g"."is_active", 'position', "g"."position") as content from (
  select g.*, (
  select r.id from template_rows r
  where r."group_id" = "g"."id" and r.digest = md5((jsonb_build_object('title', "g"."title", 'description', "g"."description", 'type', "g"."type", 'color', "g"."color", 'icon', "g"."icon", 'is_active', "g"."is_active", 'is_collapsed', "g"."is_collapsed", 'position', "g"."position"))::text)) as row_id from (
  select id, board_id, board_position, "title", "description", "type", "color", "icon", "is_active", "is_collapsed",
    least(place + max(position - place) over (partition by board_id order by place), 2147483647)::int as position
  from (
    select g.*, b.position as board_position, row_number() over (partition by b.id order by g.position, g.id) as place
    from master_board b cross join lateral (select * from groups g where g.board_id = b.id and g.deleted_at is null offset 0) as g
  ) as g) as g) as g where true
    ), master_card as materialized (
      select c.*, g.board_id, jsonb_build_object('title', "c"."title", 'short_description', "c"."short_description", 'description', "c"."description", 'evaluation_check', "c"."evaluation_check", 'tour_key', "c"."tour_key", 'is_active', "c"."is_active") as content, true as is_addable,
        row_number() over (partition by g.id order by c.position, c.id) as place_in_group,
        row_number() over (order by g.board_position, g.board_id, g.position, g.id, c.position, c.id) as place_on_boards
      from master_group g 
  cross join lateral (
    select c.*, (
  select r.id from template_rows r
  where r."card_id" = "c"."id" and r.digest = md5((jsonb_build_object('title', "c"."title", 'short_description', "c"."short_description", 'description', "c"."description", 'evaluation_check', "c"."evaluation_check", 'tour_key', "c"."tour_key", 'is_active', "c"."is_active", 'status', "c"."status", 'priority', "c"."priority"))::text)) as row_id from cards c where c.group_id = g.id and c.deleted_at is null offset 0) as c where g.is_active and c.is_active
    ), target as materialized (
      select *, has_access and not is_held as is_reached from (
        select p.id as project_id, p.platform_id, b.id as master_board_id, pt.release_id,
          b.tool_key is null or exists (
            select from project_tools t where t.project_id = p.id and t.tool_key = b.tool_key) as has_access,
          coalesce(pt.hold_until > now(), false) as is_held,
          b.is_active 
             as is_active
        from (select id, platform_id from projects where id = any($2::int[])) as p cross join master_board b
        left join project_templates pt on pt.project_id = p.id and pt.board_id = b.id
      ) as t
    ), pinned as materialized (
      select pt.project_id, row_id from project_templates pt cross join lateral unnest(pt.pinned) as row_id
      where pt.board_id = any(array(select id from master_board)) and pt.project_id between (select min(project_id) from target) and (select max(project_id) from target) and pt.pinned <> '{}'
    ), board_copy as materialized (
      select b.project_id, b.master_board_id, b.id, b.deleted_at from boards b
      where b.master_board_id = any(array(select id from master_board)) and b.project_id between (select min(project_id) from target) and (select max(project_id) from target)
    ), group_copy as materialized (
      select g.project_id, g.id, g.board_id, g.master_group_id, g.deleted_at from groups g
      where g.master_group_id = any(array(select id from master_group)) and g.project_id between (select min(project_id) from target) and (select max(project_id) from target)
    ), card_copy as materialized (
      select c.project_id, c.master_card_id from cards c
      where c.master_card_id = any(array(select id from master_card)) and c.project_id between (select min(project_id) from target) and (select max(project_id) from target)
    ), complete_project as materialized (
      select project_id from card_copy group by project_id having count(*) = (select count(*) from master_card)
    ), missing_board as materialized (
      select t.project_id, t.platform_id, t.master_board_id, m.row_id from target t join master_board m on m.id = t.master_board_id
      where t.is_active and t.is_reached and ("t"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned)
        and (t.project_id, t.master_board_id) not in (select project_id, master_board_id from board_copy)
    ), live_board as materialized (
      select t.project_id, t.platform_id, t.master_board_id, t.is_active, b.id
      from target t join board_copy b on b.project_id = t.project_id and b.master_board_id = t.master_board_id
      where t.is_reached and b.deleted_at is null
      union all
      select project_id, platform_id, master_board_id, true, null from missing_board
    ), missing_group as materialized (
      select b.project_id, b.platform_id, b.id as board_id, m.id as master_group_id, m.row_id
      from live_board b join master_group m on m.board_id = b.master_board_id
      where b.is_active and m.is_active and ("b"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned)
        and (b.project_id, m.id) not in (select project_id, master_group_id from group_copy)
    ), live_group as (
      select b.project_id, b.platform_id, b.is_active, g.id, g.master_group_id
      from live_board b join group_copy g on g.project_id = b.project_id and g.board_id = b.id
      where g.deleted_at is null
      union all
      select project_id, platform_id, true, null, master_group_id from missing_group
    ), incomplete_group as materialized (
      select * from live_group g where g.is_active and exists (select from master_card)
        and g.project_id not in (select project_id from complete_project)
    ), stale_board as materialized (
      
    select c.id, c.project_id, m.id as template_id, (case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then "m"."tool_key" else "c"."tool_key" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end) is distinct from ("c"."title", "c"."description", "c"."tool_key", "c"."is_active") as is_changed
    from 
  (select * from "boards" c where "c"."master_board_id" = any(array(select id from "master_board")) and c.project_id between (select min(project_id) from target) and (select max(project_id) from target) offset 0) as c
  join "master_board" m on m.id = "c"."master_board_id" join target t on t.project_id = c.project_id and t.master_board_id = m.board_id
  cross join lateral (
  select coalesce(c.brought,
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'description', "c"."description", 'tool_key', "c"."tool_key", 'is_active', "c"."is_active") else m.content end) as base offset 0) as b
  where t.is_reached and c.deleted_at is null and ("c"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned) and ("c"."title", "c"."description", "c"."tool_key", "c"."is_active", c.brought) is distinct from ("m"."title", "m"."description", "m"."tool_key", "m"."is_active", m.content)
      and ((case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then "m"."tool_key" else "c"."tool_key" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end) is distinct from ("c"."title", "c"."description", "c"."tool_key", "c"."is_active") or jsonb_build_object('title', case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then m.content else b.base end->'title', 'description', case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then m.content else b.base end->'description', 'tool_key', case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then m.content else b.base end->'tool_key', 'is_active', case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then m.content else b.base end->'is_active') is distinct from c.brought)
    ), stale_group as materialized (
      
    select c.id, c.project_id, m.id as template_id, (case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then "m"."type" else "c"."type" end, case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then "m"."color" else "c"."color" end, case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then "m"."icon" else "c"."icon" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end, case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then "m"."position" else "c"."position" end) is distinct from ("c"."title", "c"."description", "c"."type", "c"."color", "c"."icon", "c"."is_active", "c"."position") as is_changed
    from 
  (select * from "groups" c where "c"."master_group_id" = any(array(select id from "master_group")) and c.project_id between (select min(project_id) from target) and (select max(project_id) from target) offset 0) as c
  join "master_group" m on m.id = "c"."master_group_id" join target t on t.project_id = c.project_id and t.master_board_id = m.board_id
  cross join lateral (
  select coalesce(c.brought,
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'description', "c"."description", 'type', "c"."type", 'color', "c"."color", 'icon', "c"."icon", 'is_active', "c"."is_active", 'position', "c"."position") else m.content end) as base offset 0) as b
  where t.is_reached and c.deleted_at is null and ("c"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned) and ("c"."title", "c"."description", "c"."type", "c"."color", "c"."icon", "c"."is_active", "c"."position", c.brought) is distinct from ("m"."title", "m"."description", "m"."type", "m"."color", "m"."icon", "m"."is_active", "m"."position", m.content)
      and ((case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then "m"."type" else "c"."type" end, case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then "m"."color" else "c"."color" end, case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then "m"."icon" else "c"."icon" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end, case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then "m"."position" else "c"."position" end) is distinct from ("c"."title", "c"."description", "c"."type", "c"."color", "c"."icon", "c"."is_active", "c"."position") or jsonb_build_object('title', case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then m.content else b.base end->'title', 'description', case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then m.content else b.base end->'description', 'type', case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then m.content else b.base end->'type', 'color', case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then m.content else b.base end->'color', 'icon', case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then m.content else b.base end->'icon', 'is_active', case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then m.content else b.base end->'is_active', 'position', case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then m.content else b.base end->'position') is distinct from c.brought)
    ), adopted_card as materialized (
      
  select c.id, c.project_id, m.id as template_id, true as is_changed
  from (
    select * from cards c where c.project_id between (select min(project_id) from target) and (select max(project_id) from target) and c.master_card_id = any(array(
      select id from cards where is_master and deleted_at is not null
        and unique_identifier = any(array(select unique_identifier from master_card)))) offset 0
  ) as c join master_card m on m.unique_identifier = c.unique_identifier
  join incomplete_group g on g.project_id = c.project_id and m.group_id = g.master_group_id and m.is_addable and ("g"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned)
  and not exists (select from card_copy c where c.project_id = g.project_id and c.master_card_id = m.id)
  where c.deleted_at is null
    ), stale_card as materialized (
      select * from adopted_card 
    ), added_board as (
      insert into boards (project_id, platform_id, master_board_id, "title", "description", "tool_key", "is_active", brought, position)
      select l.project_id, l.platform_id, m.id, "m"."title", "m"."description", "m"."tool_key", "m"."is_active", m.content,
        least(row_number() over (partition by l.project_id order by m.position, m.id) + (
          select coalesce(max(position), 0) from boards b where b.project_id = l.project_id and b.deleted_at is null), 2147483647)
      from missing_board l join master_board m on m.id = l.master_board_id
      order by l.project_id, m.position, m.id
      returning id, project_id, master_board_id as template_id, master_board_id
    ), added_group as (
      insert into groups (project_id, platform_id, master_group_id, board_id, "title", "description", "type", "color", "icon", "is_active", "is_collapsed", brought, position)
      select l.project_id, l.platform_id, m.id, coalesce(l.board_id, b.id), "m"."title", "m"."description", "m"."type", "m"."color", "m"."icon", "m"."is_active", "m"."is_collapsed", m.content, m.position
      from missing_group l join master_group m on m.id = l.master_group_id
      left join added_board b on b.project_id = l.project_id and b.master_board_id = m.board_id
      order by l.project_id, m.board_position, m.board_id, m.position
      returning id, project_id, master_group_id as template_id, master_group_id
    ), last_in_project as (
      select project_id, (
        select coalesce(max(c.sort_order), 0)::bigint from cards c where c.project_id = g.project_id and c.deleted_at is null) as sort_order
      from incomplete_group g group by project_id
    ), filled_group as materialized (
      select g.project_id, g.platform_id, g.master_group_id, coalesce(g.id, a.id) as id, l.sort_order as last_sort_order, (
        select coalesce(max(c.position), 0)::bigint from cards c where c.group_id = g.id and c.deleted_at is null) as last_position
      from incomplete_group g join last_in_project l on l.project_id = g.project_id
      left join added_group a on a.project_id = g.project_id and a.master_group_id = g.master_group_id
    ), added_card as (
      insert into cards (project_id, platform_id, master_card_id, base_id, group_id, "title", "short_description", "description", "evaluation_check", "tour_key", "unique_identifier", "is_active", "status", "priority", position, sort_order)
      select g.project_id, g.platform_id, m.id, m.row_id, g.id, "m"."title", "m"."short_description", "m"."description", "m"."evaluation_check", "m"."tour_key", "m"."unique_identifier", "m"."is_active", "m"."status", "m"."priority",
        least(g.last_position + m.place_in_group, 2147483647), least(g.last_sort_order + m.place_on_boards, 2147483647)
      from filled_group g join master_card m on m.group_id = g.master_group_id and m.is_addable and ("g"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned)
  and not exists (select from card_copy c where c.project_id = g.project_id and c.master_card_id = m.id) and (g.project_id, m.id) not in (select project_id, template_id from adopted_card)
      order by g.project_id, m.place_on_boards
      returning id, project_id, master_card_id as template_id
    ), 
    "locked_board" as materialized (
      select c.id, m.id as template_id, m.row_id, case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end as "new_title", case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end as "new_description", case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then "m"."tool_key" else "c"."tool_key" end as "new_tool_key", case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end as "new_is_active", jsonb_build_object('title', case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then m.content else b.base end->'title', 'description', case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then m.content else b.base end->'description', 'tool_key', case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then m.content else b.base end->'tool_key', 'is_active', case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then m.content else b.base end->'is_active') as new_base,
        case when case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end is distinct from "c"."title"
          then jsonb_build_object('title', b.base->'title') else '{}' end || case when case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end is distinct from "c"."description"
          then jsonb_build_object('description', b.base->'description') else '{}' end || case when case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then "m"."tool_key" else "c"."tool_key" end is distinct from "c"."tool_key"
          then jsonb_build_object('tool_key', b.base->'tool_key') else '{}' end || case when case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end is distinct from "c"."is_active"
          then jsonb_build_object('is_active', b.base->'is_active') else '{}' end as base, case when case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end is distinct from "c"."title"
          then jsonb_build_object('title', "c"."title") else '{}' end || case when case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end is distinct from "c"."description"
          then jsonb_build_object('description', "c"."description") else '{}' end || case when case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then "m"."tool_key" else "c"."tool_key" end is distinct from "c"."tool_key"
          then jsonb_build_object('tool_key', "c"."tool_key") else '{}' end || case when case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end is distinct from "c"."is_active"
          then jsonb_build_object('is_active', "c"."is_active") else '{}' end as before
      from "stale_board" s join "boards" c on c.id = s.id and c.id = any(array(select id from "stale_board"))
      join "master_board" m on m.id = s.template_id cross join lateral (
  select coalesce(c.brought,
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'description', "c"."description", 'tool_key', "c"."tool_key", 'is_active', "c"."is_active") else m.content end) as base offset 0) as b
      for no key update of c
    ), "updated_board" as (
      update "boards" c set "title" = "l"."new_title", "description" = "l"."new_description", "tool_key" = "l"."new_tool_key", "is_active" = "l"."new_is_active",
        brought = l.new_base,
        updated_at = case when (l.before <> '{}') then now() else c.updated_at end
      from "locked_board" l where c.id = l.id
      returning c.id, c.project_id, l.template_id, l.row_id, l.before, l.base, (l.before <> '{}') as is_changed
    ), 
    "locked_group" as materialized (
      select c.id, m.id as template_id, m.row_id, case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end as "new_title", case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end as "new_description", case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then "m"."type" else "c"."type" end as "new_type", case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then "m"."color" else "c"."color" end as "new_color", case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then "m"."icon" else "c"."icon" end as "new_icon", case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end as "new_is_active", case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then "m"."position" else "c"."position" end as "new_position", jsonb_build_object('title', case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then m.content else b.base end->'title', 'description', case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then m.content else b.base end->'description', 'type', case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then m.content else b.base end->'type', 'color', case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then m.content else b.base end->'color', 'icon', case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then m.content else b.base end->'icon', 'is_active', case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then m.content else b.base end->'is_active', 'position', case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then m.content else b.base end->'position') as new_base,
        case when case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end is distinct from "c"."title"
          then jsonb_build_object('title', b.base->'title') else '{}' end || case when case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end is distinct from "c"."description"
          then jsonb_build_object('description', b.base->'description') else '{}' end || case when case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then "m"."type" else "c"."type" end is distinct from "c"."type"
          then jsonb_build_object('type', b.base->'type') else '{}' end || case when case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then "m"."color" else "c"."color" end is distinct from "c"."color"
          then jsonb_build_object('color', b.base->'color') else '{}' end || case when case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then "m"."icon" else "c"."icon" end is distinct from "c"."icon"
          then jsonb_build_object('icon', b.base->'icon') else '{}' end || case when case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end is distinct from "c"."is_active"
          then jsonb_build_object('is_active', b.base->'is_active') else '{}' end || case when case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then "m"."position" else "c"."position" end is distinct from "c"."position"
          then jsonb_build_object('position', b.base->'position') else '{}' end as base, case when case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end is distinct from "c"."title"
          then jsonb_build_object('title', "c"."title") else '{}' end || case when case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end is distinct from "c"."description"
          then jsonb_build_object('description', "c"."description") else '{}' end || case when case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then "m"."type" else "c"."type" end is distinct from "c"."type"
          then jsonb_build_object('type', "c"."type") else '{}' end || case when case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then "m"."color" else "c"."color" end is distinct from "c"."color"
          then jsonb_build_object('color', "c"."color") else '{}' end || case when case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then "m"."icon" else "c"."icon" end is distinct from "c"."icon"
          then jsonb_build_object('icon', "c"."icon") else '{}' end || case when case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end is distinct from "c"."is_active"
          then jsonb_build_object('is_active', "c"."is_active") else '{}' end || case when case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then "m"."position" else "c"."position" end is distinct from "c"."position"
          then jsonb_build_object('position', "c"."position") else '{}' end as before
      from "stale_group" s join "groups" c on c.id = s.id and c.id = any(array(select id from "stale_group"))
      join "master_group" m on m.id = s.template_id cross join lateral (
  select coalesce(c.brought,
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'description', "c"."description", 'type', "c"."type", 'color', "c"."color", 'icon', "c"."icon", 'is_active', "c"."is_active", 'position', "c"."position") else m.content end) as base offset 0) as b
      for no key update of c
    ), "updated_group" as (
      update "groups" c set "title" = "l"."new_title", "description" = "l"."new_description", "type" = "l"."new_type", "color" = "l"."new_color", "icon" = "l"."new_icon", "is_active" = "l"."new_is_active", "position" = "l"."new_position",
        brought = l.new_base,
        updated_at = case when (l.before <> '{}') then now() else c.updated_at end
      from "locked_group" l where c.id = l.id
      returning c.id, c.project_id, l.template_id, l.row_id, l.before, l.base, (l.before <> '{}') as is_changed
    ), "updated_card" as (
  update cards c set master_card_id = s.template_id, updated_at = now() from stale_card s
  where c.id = any(array(select id from stale_card)) and c.id = s.id
  returning c.project_id, true as is_changed), 
  placed as (
    insert into project_templates (project_id, board_id, release_id)
    select project_id, master_board_id, new_id from (
      select t.*, $3::int as new_id from target t
      where t.is_reached and true and (not (t.project_id in (select project_id from pinned where row_id in (select row_id from (
  select board_id, row_id from master_board union all select board_id, row_id from master_group
  union all select board_id, row_id from master_card) as m where row_id is not null))) or t.project_id in (select project_id from "added_board"  union all select project_id from "added_group"  union all select project_id from "added_card"  union all select project_id from "updated_board" where is_changed union all select project_id from "updated_group" where is_changed union all select project_id from "updated_card" where is_changed)) offset 0
    ) as t where new_id is distinct from release_id and new_id is not null
      and (project_id, master_board_id) in (select project_id, master_board_id from live_board)
    on conflict (project_id, board_id) do update set release_id = excluded.release_id
  ), recorded as (
      insert into template_outcomes (run_id, project_id, outcome, reason, "boards_added", "groups_added", "cards_added", "boards_updated", "groups_updated", "cards_updated")
      select $4, project_id, outcome, reason, "boards_added", "groups_added", "cards_added", "boards_updated", "groups_updated", "cards_updated" from (
    select project_id, "boards_added", "groups_added", "cards_added", "boards_updated", "groups_updated", "cards_updated", outcome,
      case when outcome <> 'skipped' then null when not has_access then 'no_access'
        when is_held then 'held' when is_deleted then 'deleted_by_project' when is_pinned then 'pinned' else 'inactive' end as reason
    from (
      select *, case when not is_reached then 'skipped' when boards_added + groups_added + cards_added > 0 then 'added'
        when boards_updated + groups_updated + cards_updated > 0 then 'updated'
        when is_deleted or is_pinned or not is_active then 'skipped' else 'unchanged' end as outcome
      from (
        select t.project_id, t.has_access, t.is_held, t.is_reached, t.is_active, t.project_id in (select project_id from pinned where row_id in (select row_id from (
  select board_id, row_id from master_board union all select board_id, row_id from master_group
  union all select board_id, row_id from master_card) as m where row_id is not null)) as is_pinned,
          b.deleted_at is not null or false or false as is_deleted, coalesce("boards_added"."count", 0) as "boards_added", coalesce("groups_added"."count", 0) as "groups_added", coalesce("cards_added"."count", 0) as "cards_added", coalesce("boards_updated"."count", 0) as "boards_updated", coalesce("groups_updated"."count", 0) as "groups_updated", coalesce("cards_updated"."count", 0) as "cards_updated"
        from target t left join board_copy b using (project_id, master_board_id) left join (select project_id, count(*)::int as count from "added_board"  group by project_id) as "boards_added" using (project_id) left join (select project_id, count(*)::int as count from "added_group"  group by project_id) as "groups_added" using (project_id) left join (select project_id, count(*)::int as count from "added_card"  group by project_id) as "cards_added" using (project_id) left join (select project_id, count(*)::int as count from "updated_board" where is_changed group by project_id) as "boards_updated" using (project_id) left join (select project_id, count(*)::int as count from "updated_group" where is_changed group by project_id) as "groups_updated" using (project_id) left join (select project_id, count(*)::int as count from "updated_card" where is_changed group by project_id) as "cards_updated" using (project_id)
      ) as counted
    ) as judged) as outcome
      returning project_id, outcome, "boards_added", "groups_added", "cards_added", "boards_updated", "groups_updated", "cards_updated"
    ), 
  noted as (
    insert into events (type, platform_id, project_id, subject_id, data, user_id, key_id, surface, request_id)
    select type, platform_id, project_id, subject_id, data, coalesce(by_user_id, $5::int), $6::int, $7, $8
    from (
    select $9 as type, platform_id, project_id, $10::int as subject_id,
      $11::jsonb || jsonb_build_object('count', count) as data, $12::int as by_user_id
    from (
      select project_id, platform_id, sum(count)::int as count from (
    select project_id, target.platform_id, "boards_added" + "groups_added" + "cards_added" + "boards_updated" + "groups_updated" + "cards_updated" as count from recorded join target using (project_id)
    where outcome in ('added', 'updated')) as changed group by project_id, platform_id
      order by project_id
    ) as projects) as happened
    
  )
    select;

-- masterBoards.previewSync, masterBoards.previewPush, masterGroups.previewPush, masterCards.previewPush
/* planned each time */ 
    with 
    
    
    master_board as materialized (
      select b.*, b.id as board_id, jsonb_build_object('title', "b"."title", 'description', "b"."description", 'tool_key', "b"."tool_key", 'is_active', "b"."is_active") as content from (
  select b.*, (
  select r.id from template_rows r
  where r."board_id" = "b"."id" and r.digest = md5((jsonb_build_object('title', "b"."title", 'description', "b"."description", 'tool_key', "b"."tool_key", 'is_active', "b"."is_active"))::text)) as row_id from boards b where b.id = any($1::int[]) and b.is_master and b.deleted_at is null) as b
    ), master_group as materialized (
      select g.*, jsonb_build_object('title', "g"."title", 'description', "g"."description", 'type', "g"."type", 'color', "g"."color", 'icon', "g"."icon", 'is_active', "g"."is_active", 'position', "g"."position") as content from (
  select g.*, (
  select r.id from template_rows r
  where r."group_id" = "g"."id" and r.digest = md5((jsonb_build_object('title', "g"."title", 'description', "g"."description", 'type', "g"."type", 'color', "g"."color", 'icon', "g"."icon", 'is_active', "g"."is_active", 'is_collapsed', "g"."is_collapsed", 'position', "g"."position"))::text)) as row_id from (
  select id, board_id, board_position, "title", "description", "type", "color", "icon", "is_active", "is_collapsed",
    least(place + max(position - place) over (partition by board_id order by place), 2147483647)::int as position
  from (
    select g.*, b.position as board_position, row_number() over (partition by b.id order by g.position, g.id) as place
    from master_board b cross join lateral (select * from groups g where g.board_id = b.id and g.deleted_at is null offset 0) as g
  ) as g) as g) as g where true
    ), master_card as materialized (
      select c.*, g.board_id, jsonb_build_object('title', "c"."title", 'short_description', "c"."short_description", 'description', "c"."description", 'evaluation_check', "c"."evaluation_check", 'tour_key', "c"."tour_key", 'is_active', "c"."is_active") as content, true as is_addable,
        row_number() over (partition by g.id order by c.position, c.id) as place_in_group,
        row_number() over (order by g.board_position, g.board_id, g.position, g.id, c.position, c.id) as place_on_boards
      from master_group g 
  cross join lateral (
    select c.*, (
  select r.id from template_rows r
  where r."card_id" = "c"."id" and r.digest = md5((jsonb_build_object('title', "c"."title", 'short_description', "c"."short_description", 'description', "c"."description", 'evaluation_check', "c"."evaluation_check", 'tour_key', "c"."tour_key", 'is_active', "c"."is_active", 'status', "c"."status", 'priority', "c"."priority"))::text)) as row_id from cards c where c.group_id = g.id and c.deleted_at is null offset 0) as c where g.is_active and c.is_active
    ), target as materialized (
      select *, has_access and not is_held as is_reached from (
        select p.id as project_id, p.platform_id, b.id as master_board_id, pt.release_id,
          b.tool_key is null or exists (
            select from project_tools t where t.project_id = p.id and t.tool_key = b.tool_key) as has_access,
          coalesce(pt.hold_until > now(), false) as is_held,
          b.is_active 
             as is_active
        from (select id, platform_id from projects where is_active and id > $2 order by id limit $3) as p cross join master_board b
        left join project_templates pt on pt.project_id = p.id and pt.board_id = b.id
      ) as t
    ), pinned as materialized (
      select pt.project_id, row_id from project_templates pt cross join lateral unnest(pt.pinned) as row_id
      where pt.board_id = any(array(select id from master_board)) and pt.project_id between (select min(project_id) from target) and (select max(project_id) from target) and pt.pinned <> '{}'
    ), board_copy as materialized (
      select b.project_id, b.master_board_id, b.id, b.deleted_at from boards b
      where b.master_board_id = any(array(select id from master_board)) and b.project_id between (select min(project_id) from target) and (select max(project_id) from target)
    ), group_copy as materialized (
      select g.project_id, g.id, g.board_id, g.master_group_id, g.deleted_at from groups g
      where g.master_group_id = any(array(select id from master_group)) and g.project_id between (select min(project_id) from target) and (select max(project_id) from target)
    ), card_copy as materialized (
      select c.project_id, c.master_card_id from cards c
      where c.master_card_id = any(array(select id from master_card)) and c.project_id between (select min(project_id) from target) and (select max(project_id) from target)
    ), complete_project as materialized (
      select project_id from card_copy group by project_id having count(*) = (select count(*) from master_card)
    ), missing_board as materialized (
      select t.project_id, t.platform_id, t.master_board_id, m.row_id from target t join master_board m on m.id = t.master_board_id
      where t.is_active and t.is_reached and ("t"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned)
        and (t.project_id, t.master_board_id) not in (select project_id, master_board_id from board_copy)
    ), live_board as materialized (
      select t.project_id, t.platform_id, t.master_board_id, t.is_active, b.id
      from target t join board_copy b on b.project_id = t.project_id and b.master_board_id = t.master_board_id
      where t.is_reached and b.deleted_at is null
      union all
      select project_id, platform_id, master_board_id, true, null from missing_board
    ), missing_group as materialized (
      select b.project_id, b.platform_id, b.id as board_id, m.id as master_group_id, m.row_id
      from live_board b join master_group m on m.board_id = b.master_board_id
      where b.is_active and m.is_active and ("b"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned)
        and (b.project_id, m.id) not in (select project_id, master_group_id from group_copy)
    ), live_group as (
      select b.project_id, b.platform_id, b.is_active, g.id, g.master_group_id
      from live_board b join group_copy g on g.project_id = b.project_id and g.board_id = b.id
      where g.deleted_at is null
      union all
      select project_id, platform_id, true, null, master_group_id from missing_group
    ), incomplete_group as materialized (
      select * from live_group g where g.is_active and exists (select from master_card)
        and g.project_id not in (select project_id from complete_project)
    ), stale_board as materialized (
      
    select c.id, c.project_id, m.id as template_id, (case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then "m"."tool_key" else "c"."tool_key" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end) is distinct from ("c"."title", "c"."description", "c"."tool_key", "c"."is_active") as is_changed
    from 
  (select * from "boards" c where "c"."master_board_id" = any(array(select id from "master_board")) and c.project_id between (select min(project_id) from target) and (select max(project_id) from target) offset 0) as c
  join "master_board" m on m.id = "c"."master_board_id" join target t on t.project_id = c.project_id and t.master_board_id = m.board_id
  cross join lateral (
  select coalesce(c.brought,
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'description', "c"."description", 'tool_key', "c"."tool_key", 'is_active', "c"."is_active") else m.content end) as base offset 0) as b
  where t.is_reached and c.deleted_at is null and ("c"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned) and ("c"."title", "c"."description", "c"."tool_key", "c"."is_active", c.brought) is distinct from ("m"."title", "m"."description", "m"."tool_key", "m"."is_active", m.content)
      and ((case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then "m"."tool_key" else "c"."tool_key" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end) is distinct from ("c"."title", "c"."description", "c"."tool_key", "c"."is_active") or jsonb_build_object('title', case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then m.content else b.base end->'title', 'description', case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then m.content else b.base end->'description', 'tool_key', case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then m.content else b.base end->'tool_key', 'is_active', case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then m.content else b.base end->'is_active') is distinct from c.brought)
    ), stale_group as materialized (
      
    select c.id, c.project_id, m.id as template_id, (case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then "m"."type" else "c"."type" end, case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then "m"."color" else "c"."color" end, case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then "m"."icon" else "c"."icon" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end, case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then "m"."position" else "c"."position" end) is distinct from ("c"."title", "c"."description", "c"."type", "c"."color", "c"."icon", "c"."is_active", "c"."position") as is_changed
    from 
  (select * from "groups" c where "c"."master_group_id" = any(array(select id from "master_group")) and c.project_id between (select min(project_id) from target) and (select max(project_id) from target) offset 0) as c
  join "master_group" m on m.id = "c"."master_group_id" join target t on t.project_id = c.project_id and t.master_board_id = m.board_id
  cross join lateral (
  select coalesce(c.brought,
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'description', "c"."description", 'type', "c"."type", 'color', "c"."color", 'icon', "c"."icon", 'is_active', "c"."is_active", 'position', "c"."position") else m.content end) as base offset 0) as b
  where t.is_reached and c.deleted_at is null and ("c"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned) and ("c"."title", "c"."description", "c"."type", "c"."color", "c"."icon", "c"."is_active", "c"."position", c.brought) is distinct from ("m"."title", "m"."description", "m"."type", "m"."color", "m"."icon", "m"."is_active", "m"."position", m.content)
      and ((case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then "m"."type" else "c"."type" end, case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then "m"."color" else "c"."color" end, case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then "m"."icon" else "c"."icon" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end, case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then "m"."position" else "c"."position" end) is distinct from ("c"."title", "c"."description", "c"."type", "c"."color", "c"."icon", "c"."is_active", "c"."position") or jsonb_build_object('title', case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then m.content else b.base end->'title', 'description', case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then m.content else b.base end->'description', 'type', case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then m.content else b.base end->'type', 'color', case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then m.content else b.base end->'color', 'icon', case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then m.content else b.base end->'icon', 'is_active', case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then m.content else b.base end->'is_active', 'position', case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then m.content else b.base end->'position') is distinct from c.brought)
    ), adopted_card as materialized (
      
  select c.id, c.project_id, m.id as template_id, true as is_changed
  from (
    select * from cards c where c.project_id between (select min(project_id) from target) and (select max(project_id) from target) and c.master_card_id = any(array(
      select id from cards where is_master and deleted_at is not null
        and unique_identifier = any(array(select unique_identifier from master_card)))) offset 0
  ) as c join master_card m on m.unique_identifier = c.unique_identifier
  join incomplete_group g on g.project_id = c.project_id and m.group_id = g.master_group_id and m.is_addable and ("g"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned)
  and not exists (select from card_copy c where c.project_id = g.project_id and c.master_card_id = m.id)
  where c.deleted_at is null
    ), stale_card as materialized (
      select * from adopted_card 
    ),
    missing_card as (
      select g.project_id from incomplete_group g join master_card m on m.group_id = g.master_group_id and m.is_addable and ("g"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned)
  and not exists (select from card_copy c where c.project_id = g.project_id and c.master_card_id = m.id) and (g.project_id, m.id) not in (select project_id, template_id from adopted_card)
    )
    select outcome.*, p.name as project_name from (
    select project_id, "boards_added", "groups_added", "cards_added", "boards_updated", "groups_updated", "cards_updated", outcome,
      case when outcome <> 'skipped' then null when not has_access then 'no_access'
        when is_held then 'held' when is_deleted then 'deleted_by_project' when is_pinned then 'pinned' else 'inactive' end as reason
    from (
      select *, case when not is_reached then 'skipped' when boards_added + groups_added + cards_added > 0 then 'added'
        when boards_updated + groups_updated + cards_updated > 0 then 'updated'
        when is_deleted or is_pinned or not is_active then 'skipped' else 'unchanged' end as outcome
      from (
        select t.project_id, t.has_access, t.is_held, t.is_reached, t.is_active, t.project_id in (select project_id from pinned where row_id in (select row_id from (
  select board_id, row_id from master_board union all select board_id, row_id from master_group
  union all select board_id, row_id from master_card) as m where row_id is not null)) as is_pinned,
          b.deleted_at is not null or false or false as is_deleted, coalesce("boards_added"."count", 0) as "boards_added", coalesce("groups_added"."count", 0) as "groups_added", coalesce("cards_added"."count", 0) as "cards_added", coalesce("boards_updated"."count", 0) as "boards_updated", coalesce("groups_updated"."count", 0) as "groups_updated", coalesce("cards_updated"."count", 0) as "cards_updated"
        from target t left join board_copy b using (project_id, master_board_id) left join (select project_id, count(*)::int as count from "missing_board"  group by project_id) as "boards_added" using (project_id) left join (select project_id, count(*)::int as count from "missing_group"  group by project_id) as "groups_added" using (project_id) left join (select project_id, count(*)::int as count from "missing_card"  group by project_id) as "cards_added" using (project_id) left join (select project_id, count(*)::int as count from "stale_board" where is_changed group by project_id) as "boards_updated" using (project_id) left join (select project_id, count(*)::int as count from "stale_group" where is_changed group by project_id) as "groups_updated" using (project_id) left join (select project_id, count(*)::int as count from "stale_card" where is_changed group by project_id) as "cards_updated" using (project_id)
      ) as counted
    ) as judged) as outcome
    join projects p on p.id = outcome.project_id order by outcome.project_id;

-- rollouts.plan
/* planned each time */ 
    with 
  
    
    
  released as materialized (
    select r.*, p.parent_id, p.position from release_rows p join template_rows r on r.id = p.row_id
    where p.release_id = any($1::int[])
  ),
    master_board as materialized (
      select b.*, b.id as board_id, jsonb_build_object('title', "b"."title", 'description', "b"."description", 'tool_key', "b"."tool_key", 'is_active', "b"."is_active") as content from (
  select b.*, r.id as row_id from released r 
  cross join lateral (select m from "boards" m where m.id = r."board_id" and m.deleted_at is null offset 0) as found cross join lateral jsonb_populate_record(found.m, r.content) as b) as b
    ), master_group as materialized (
      select g.*, jsonb_build_object('title', "g"."title", 'description', "g"."description", 'type', "g"."type", 'color', "g"."color", 'icon', "g"."icon", 'is_active', "g"."is_active", 'position', "g"."position") as content from (
  select g.id, g.board_id, b.position as board_position, "g"."title", "g"."description", "g"."type", "g"."color", "g"."icon", "g"."is_active", "g"."is_collapsed", "g"."position", r.id as row_id
  from released r 
  cross join lateral (select m from "groups" m where m.id = r."group_id" and m.deleted_at is null offset 0) as found
  cross join lateral jsonb_populate_record(found.m, r.content) as g
  join master_board b on b.id = g.board_id) as g where true
    ), master_card as materialized (
      select c.*, g.board_id, jsonb_build_object('title', "c"."title", 'short_description', "c"."short_description", 'description', "c"."description", 'evaluation_check', "c"."evaluation_check", 'tour_key', "c"."tour_key", 'is_active', "c"."is_active") as content, g.is_active and c.is_active as is_addable,
        row_number() over (partition by g.id order by c.position, c.id) as place_in_group,
        row_number() over (order by g.board_position, g.board_id, g.position, g.id, c.position, c.id) as place_on_boards
      from master_group g 
  join released r on r.parent_id = g.id and r.card_id is not null 
  cross join lateral (select m from "cards" m where m.id = r."card_id" and m.deleted_at is null offset 0) as found
  cross join lateral (
    select c.*, r.id as row_id
    from jsonb_populate_record(found.m, r.content || jsonb_build_object('position', r.position, 'group_id', r.parent_id)) as c) as c where true
    ), target as materialized (
      select *, has_access and not is_held as is_reached from (
        select p.id as project_id, p.platform_id, b.id as master_board_id, pt.release_id,
          b.tool_key is null or exists (
            select from project_tools t where t.project_id = p.id and t.tool_key = b.tool_key) as has_access,
          coalesce(pt.hold_until > now(), false) as is_held,
          b.is_active 
             as is_active
        from (select id, platform_id from projects where is_active and id = any($2::int[])) as p cross join master_board b
        left join project_templates pt on pt.project_id = p.id and pt.board_id = b.id
      ) as t
    ), pinned as materialized (
      select pt.project_id, row_id from project_templates pt cross join lateral unnest(pt.pinned) as row_id
      where pt.board_id = any(array(select id from master_board)) and pt.project_id = any(array(select project_id from target)) and pt.pinned <> '{}'
    ), board_copy as materialized (
      select b.project_id, b.master_board_id, b.id, b.deleted_at from boards b
      where b.master_board_id = any(array(select id from master_board)) and b.project_id = any(array(select project_id from target))
    ), group_copy as materialized (
      select g.project_id, g.id, g.board_id, g.master_group_id, g.deleted_at from groups g
      where g.master_group_id = any(array(select id from master_group)) and g.project_id = any(array(select project_id from target))
    ), card_copy as materialized (
      select c.project_id, c.master_card_id from cards c
      where c.master_card_id = any(array(select id from master_card)) and c.project_id = any(array(select project_id from target))
    ), complete_project as materialized (
      select project_id from card_copy group by project_id having count(*) = (select count(*) from master_card)
    ), missing_board as materialized (
      select t.project_id, t.platform_id, t.master_board_id, m.row_id from target t join master_board m on m.id = t.master_board_id
      where t.is_active and t.is_reached and ("t"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned)
        and (t.project_id, t.master_board_id) not in (select project_id, master_board_id from board_copy)
    ), live_board as materialized (
      select t.project_id, t.platform_id, t.master_board_id, t.is_active, b.id
      from target t join board_copy b on b.project_id = t.project_id and b.master_board_id = t.master_board_id
      where t.is_reached and b.deleted_at is null
      union all
      select project_id, platform_id, master_board_id, true, null from missing_board
    ), missing_group as materialized (
      select b.project_id, b.platform_id, b.id as board_id, m.id as master_group_id, m.row_id
      from live_board b join master_group m on m.board_id = b.master_board_id
      where b.is_active and m.is_active and ("b"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned)
        and (b.project_id, m.id) not in (select project_id, master_group_id from group_copy)
    ), live_group as (
      select b.project_id, b.platform_id, b.is_active, g.id, g.master_group_id
      from live_board b join group_copy g on g.project_id = b.project_id and g.board_id = b.id
      where g.deleted_at is null
      union all
      select project_id, platform_id, true, null, master_group_id from missing_group
    ), incomplete_group as materialized (
      select * from live_group g where g.is_active and exists (select from master_card)
        and g.project_id not in (select project_id from complete_project)
    ), stale_board as materialized (
      
    select c.id, c.project_id, m.id as template_id, (case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then "m"."tool_key" else "c"."tool_key" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end) is distinct from ("c"."title", "c"."description", "c"."tool_key", "c"."is_active") as is_changed
    from 
  (select * from "boards" c where "c"."master_board_id" = any(array(select id from "master_board")) and c.project_id = any(array(select project_id from target)) offset 0) as c
  join "master_board" m on m.id = "c"."master_board_id" join target t on t.project_id = c.project_id and t.master_board_id = m.board_id
  cross join lateral (
  select coalesce(c.brought,
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'description', "c"."description", 'tool_key', "c"."tool_key", 'is_active', "c"."is_active") else m.content end) as base offset 0) as b
  where t.is_reached and c.deleted_at is null and ("c"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned) and ("c"."title", "c"."description", "c"."tool_key", "c"."is_active", c.brought) is distinct from ("m"."title", "m"."description", "m"."tool_key", "m"."is_active", m.content)
      and ((case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then "m"."tool_key" else "c"."tool_key" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end) is distinct from ("c"."title", "c"."description", "c"."tool_key", "c"."is_active") or jsonb_build_object('title', case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then m.content else b.base end->'title', 'description', case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then m.content else b.base end->'description', 'tool_key', case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then m.content else b.base end->'tool_key', 'is_active', case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then m.content else b.base end->'is_active') is distinct from c.brought)
    ), stale_group as materialized (
      
    select c.id, c.project_id, m.id as template_id, (case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then "m"."type" else "c"."type" end, case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then "m"."color" else "c"."color" end, case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then "m"."icon" else "c"."icon" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end, case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then "m"."position" else "c"."position" end) is distinct from ("c"."title", "c"."description", "c"."type", "c"."color", "c"."icon", "c"."is_active", "c"."position") as is_changed
    from 
  (select * from "groups" c where "c"."master_group_id" = any(array(select id from "master_group")) and c.project_id = any(array(select project_id from target)) offset 0) as c
  join "master_group" m on m.id = "c"."master_group_id" join target t on t.project_id = c.project_id and t.master_board_id = m.board_id
  cross join lateral (
  select coalesce(c.brought,
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'description', "c"."description", 'type', "c"."type", 'color', "c"."color", 'icon', "c"."icon", 'is_active', "c"."is_active", 'position', "c"."position") else m.content end) as base offset 0) as b
  where t.is_reached and c.deleted_at is null and ("c"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned) and ("c"."title", "c"."description", "c"."type", "c"."color", "c"."icon", "c"."is_active", "c"."position", c.brought) is distinct from ("m"."title", "m"."description", "m"."type", "m"."color", "m"."icon", "m"."is_active", "m"."position", m.content)
      and ((case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then "m"."type" else "c"."type" end, case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then "m"."color" else "c"."color" end, case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then "m"."icon" else "c"."icon" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end, case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then "m"."position" else "c"."position" end) is distinct from ("c"."title", "c"."description", "c"."type", "c"."color", "c"."icon", "c"."is_active", "c"."position") or jsonb_build_object('title', case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then m.content else b.base end->'title', 'description', case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then m.content else b.base end->'description', 'type', case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then m.content else b.base end->'type', 'color', case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then m.content else b.base end->'color', 'icon', case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then m.content else b.base end->'icon', 'is_active', case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then m.content else b.base end->'is_active', 'position', case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then m.content else b.base end->'position') is distinct from c.brought)
    ), adopted_card as materialized (
      
  select c.id, c.project_id, m.id as template_id, true as is_changed
  from (
    select * from cards c where c.project_id = any(array(select project_id from target)) and c.master_card_id = any(array(
      select id from cards where is_master and deleted_at is not null
        and unique_identifier = any(array(select unique_identifier from master_card)))) offset 0
  ) as c join master_card m on m.unique_identifier = c.unique_identifier
  join incomplete_group g on g.project_id = c.project_id and m.group_id = g.master_group_id and m.is_addable and ("g"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned)
  and not exists (select from card_copy c where c.project_id = g.project_id and c.master_card_id = m.id)
  where c.deleted_at is null
    ), stale_card as materialized (
      select * from adopted_card union all 
    select c.id, c.project_id, m.id as template_id, (case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."short_description"::text is not distinct from b.base->>'short_description' or "c"."short_description" is not distinct from "m"."short_description") then "m"."short_description" else "c"."short_description" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."evaluation_check"::text is not distinct from b.base->>'evaluation_check' or "c"."evaluation_check" is not distinct from "m"."evaluation_check") then "m"."evaluation_check" else "c"."evaluation_check" end, case when ("c"."tour_key"::text is not distinct from b.base->>'tour_key' or "c"."tour_key" is not distinct from "m"."tour_key") then "m"."tour_key" else "c"."tour_key" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end) is distinct from ("c"."title", "c"."short_description", "c"."description", "c"."evaluation_check", "c"."tour_key", "c"."is_active") as is_changed
    from 
  (select * from "cards" c where "c"."master_card_id" = any(array(select id from "master_card")) and c.project_id = any(array(select project_id from target)) offset 0) as c
  join "master_card" m on m.id = "c"."master_card_id" join target t on t.project_id = c.project_id and t.master_board_id = m.board_id
  cross join lateral (
  select coalesce((select r.content || coalesce(c.base_values, '{}') from template_rows r where r.id = c.base_id),
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'short_description', "c"."short_description", 'description', "c"."description", 'evaluation_check', "c"."evaluation_check", 'tour_key', "c"."tour_key", 'is_active', "c"."is_active") else m.content end) as base offset 0) as b
  where t.is_reached and c.deleted_at is null and ("c"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned) and (("c"."title", "c"."short_description", "c"."description", "c"."evaluation_check", "c"."tour_key", "c"."is_active") is distinct from ("m"."title", "m"."short_description", "m"."description", "m"."evaluation_check", "m"."tour_key", "m"."is_active") or c.base_id is distinct from m.row_id or c.base_values is not null)
      and ((case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."short_description"::text is not distinct from b.base->>'short_description' or "c"."short_description" is not distinct from "m"."short_description") then "m"."short_description" else "c"."short_description" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."evaluation_check"::text is not distinct from b.base->>'evaluation_check' or "c"."evaluation_check" is not distinct from "m"."evaluation_check") then "m"."evaluation_check" else "c"."evaluation_check" end, case when ("c"."tour_key"::text is not distinct from b.base->>'tour_key' or "c"."tour_key" is not distinct from "m"."tour_key") then "m"."tour_key" else "c"."tour_key" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end) is distinct from ("c"."title", "c"."short_description", "c"."description", "c"."evaluation_check", "c"."tour_key", "c"."is_active") or (m.row_id, nullif(case when not ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") and b.base->'title' <> m.content->'title'
      then jsonb_build_object('title', b.base->'title') else '{}' end || case when not ("c"."short_description"::text is not distinct from b.base->>'short_description' or "c"."short_description" is not distinct from "m"."short_description") and b.base->'short_description' <> m.content->'short_description'
      then jsonb_build_object('short_description', b.base->'short_description') else '{}' end || case when not ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") and b.base->'description' <> m.content->'description'
      then jsonb_build_object('description', b.base->'description') else '{}' end || case when not ("c"."evaluation_check"::text is not distinct from b.base->>'evaluation_check' or "c"."evaluation_check" is not distinct from "m"."evaluation_check") and b.base->'evaluation_check' <> m.content->'evaluation_check'
      then jsonb_build_object('evaluation_check', b.base->'evaluation_check') else '{}' end || case when not ("c"."tour_key"::text is not distinct from b.base->>'tour_key' or "c"."tour_key" is not distinct from "m"."tour_key") and b.base->'tour_key' <> m.content->'tour_key'
      then jsonb_build_object('tour_key', b.base->'tour_key') else '{}' end || case when not ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") and b.base->'is_active' <> m.content->'is_active'
      then jsonb_build_object('is_active', b.base->'is_active') else '{}' end, '{}')) is distinct from (c.base_id, c.base_values))
    ), added as materialized (
    select l.project_id, 'board' as noun, m.id as master_id, m.row_id, m.title from missing_board l join master_board m on m.id = l.master_board_id
    union all
    select l.project_id, 'group', m.id, m.row_id, m.title from missing_group l join master_group m on m.id = l.master_group_id
    union all
    select g.project_id, 'card', m.id, m.row_id, m.title from incomplete_group g join master_card m on m.group_id = g.master_group_id and m.is_addable and ("g"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned)
  and not exists (select from card_copy c where c.project_id = g.project_id and c.master_card_id = m.id) and (g.project_id, m.id) not in (select project_id, template_id from adopted_card)
  ), compared as materialized (
    
    select c.project_id, 'board' as noun, c.id, m.id as master_id, m.row_id, m.title,
      array_remove(array[case when "c"."title" is distinct from "m"."title" and ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then 'title' end, case when "c"."description" is distinct from "m"."description" and ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then 'description' end, case when "c"."tool_key" is distinct from "m"."tool_key" and ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then 'tool_key' end, case when "c"."is_active" is distinct from "m"."is_active" and ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then 'is_active' end]::text[], null) as changed, array_remove(array[case when "c"."title" is distinct from "m"."title" and not ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then 'title' end, case when "c"."description" is distinct from "m"."description" and not ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then 'description' end, case when "c"."tool_key" is distinct from "m"."tool_key" and not ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then 'tool_key' end, case when "c"."is_active" is distinct from "m"."is_active" and not ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then 'is_active' end]::text[], null) as kept, array_remove(array[case when "c"."title" is distinct from "m"."title" and not ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") and b.base->>'title' is distinct from m.content->>'title' then 'title' end, case when "c"."description" is distinct from "m"."description" and not ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") and b.base->>'description' is distinct from m.content->>'description' then 'description' end, case when "c"."tool_key" is distinct from "m"."tool_key" and not ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") and b.base->>'tool_key' is distinct from m.content->>'tool_key' then 'tool_key' end, case when "c"."is_active" is distinct from "m"."is_active" and not ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") and b.base->>'is_active' is distinct from m.content->>'is_active' then 'is_active' end]::text[], null) as conflicts,
      jsonb_build_object('title', "c"."title", 'description', "c"."description", 'tool_key', "c"."tool_key", 'is_active', "c"."is_active") as own, m.content
    from 
  (select * from "boards" c where "c"."master_board_id" = any(array(select id from "master_board")) and c.project_id = any(array(select project_id from target)) offset 0) as c
  join "master_board" m on m.id = "c"."master_board_id" join target t on t.project_id = c.project_id and t.master_board_id = m.board_id
  cross join lateral (
  select coalesce(c.brought,
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'description', "c"."description", 'tool_key', "c"."tool_key", 'is_active', "c"."is_active") else m.content end) as base offset 0) as b
  where t.is_reached and c.deleted_at is null and ("c"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned) and ("c"."title", "c"."description", "c"."tool_key", "c"."is_active") is distinct from ("m"."title", "m"."description", "m"."tool_key", "m"."is_active") union all 
    select c.project_id, 'group' as noun, c.id, m.id as master_id, m.row_id, m.title,
      array_remove(array[case when "c"."title" is distinct from "m"."title" and ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then 'title' end, case when "c"."description" is distinct from "m"."description" and ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then 'description' end, case when "c"."type" is distinct from "m"."type" and ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then 'type' end, case when "c"."color" is distinct from "m"."color" and ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then 'color' end, case when "c"."icon" is distinct from "m"."icon" and ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then 'icon' end, case when "c"."is_active" is distinct from "m"."is_active" and ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then 'is_active' end, case when "c"."position" is distinct from "m"."position" and ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then 'position' end]::text[], null) as changed, array_remove(array[case when "c"."title" is distinct from "m"."title" and not ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then 'title' end, case when "c"."description" is distinct from "m"."description" and not ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then 'description' end, case when "c"."type" is distinct from "m"."type" and not ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then 'type' end, case when "c"."color" is distinct from "m"."color" and not ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then 'color' end, case when "c"."icon" is distinct from "m"."icon" and not ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then 'icon' end, case when "c"."is_active" is distinct from "m"."is_active" and not ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then 'is_active' end, case when "c"."position" is distinct from "m"."position" and not ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then 'position' end]::text[], null) as kept, array_remove(array[case when "c"."title" is distinct from "m"."title" and not ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") and b.base->>'title' is distinct from m.content->>'title' then 'title' end, case when "c"."description" is distinct from "m"."description" and not ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") and b.base->>'description' is distinct from m.content->>'description' then 'description' end, case when "c"."type" is distinct from "m"."type" and not ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") and b.base->>'type' is distinct from m.content->>'type' then 'type' end, case when "c"."color" is distinct from "m"."color" and not ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") and b.base->>'color' is distinct from m.content->>'color' then 'color' end, case when "c"."icon" is distinct from "m"."icon" and not ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") and b.base->>'icon' is distinct from m.content->>'icon' then 'icon' end, case when "c"."is_active" is distinct from "m"."is_active" and not ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") and b.base->>'is_active' is distinct from m.content->>'is_active' then 'is_active' end, case when "c"."position" is distinct from "m"."position" and not ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") and b.base->>'position' is distinct from m.content->>'position' then 'position' end]::text[], null) as conflicts,
      jsonb_build_object('title', "c"."title", 'description', "c"."description", 'type', "c"."type", 'color', "c"."color", 'icon', "c"."icon", 'is_active', "c"."is_active", 'position', "c"."position") as own, m.content
    from 
  (select * from "groups" c where "c"."master_group_id" = any(array(select id from "master_group")) and c.project_id = any(array(select project_id from target)) offset 0) as c
  join "master_group" m on m.id = "c"."master_group_id" join target t on t.project_id = c.project_id and t.master_board_id = m.board_id
  cross join lateral (
  select coalesce(c.brought,
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'description', "c"."description", 'type', "c"."type", 'color', "c"."color", 'icon', "c"."icon", 'is_active', "c"."is_active", 'position', "c"."position") else m.content end) as base offset 0) as b
  where t.is_reached and c.deleted_at is null and ("c"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned) and ("c"."title", "c"."description", "c"."type", "c"."color", "c"."icon", "c"."is_active", "c"."position") is distinct from ("m"."title", "m"."description", "m"."type", "m"."color", "m"."icon", "m"."is_active", "m"."position") union all 
    select c.project_id, 'card' as noun, c.id, m.id as master_id, m.row_id, m.title,
      array_remove(array[case when "c"."title" is distinct from "m"."title" and ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then 'title' end, case when "c"."short_description" is distinct from "m"."short_description" and ("c"."short_description"::text is not distinct from b.base->>'short_description' or "c"."short_description" is not distinct from "m"."short_description") then 'short_description' end, case when "c"."description" is distinct from "m"."description" and ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then 'description' end, case when "c"."evaluation_check" is distinct from "m"."evaluation_check" and ("c"."evaluation_check"::text is not distinct from b.base->>'evaluation_check' or "c"."evaluation_check" is not distinct from "m"."evaluation_check") then 'evaluation_check' end, case when "c"."tour_key" is distinct from "m"."tour_key" and ("c"."tour_key"::text is not distinct from b.base->>'tour_key' or "c"."tour_key" is not distinct from "m"."tour_key") then 'tour_key' end, case when "c"."is_active" is distinct from "m"."is_active" and ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then 'is_active' end]::text[], null) as changed, array_remove(array[case when "c"."title" is distinct from "m"."title" and not ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then 'title' end, case when "c"."short_description" is distinct from "m"."short_description" and not ("c"."short_description"::text is not distinct from b.base->>'short_description' or "c"."short_description" is not distinct from "m"."short_description") then 'short_description' end, case when "c"."description" is distinct from "m"."description" and not ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then 'description' end, case when "c"."evaluation_check" is distinct from "m"."evaluation_check" and not ("c"."evaluation_check"::text is not distinct from b.base->>'evaluation_check' or "c"."evaluation_check" is not distinct from "m"."evaluation_check") then 'evaluation_check' end, case when "c"."tour_key" is distinct from "m"."tour_key" and not ("c"."tour_key"::text is not distinct from b.base->>'tour_key' or "c"."tour_key" is not distinct from "m"."tour_key") then 'tour_key' end, case when "c"."is_active" is distinct from "m"."is_active" and not ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then 'is_active' end]::text[], null) as kept, array_remove(array[case when "c"."title" is distinct from "m"."title" and not ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") and b.base->>'title' is distinct from m.content->>'title' then 'title' end, case when "c"."short_description" is distinct from "m"."short_description" and not ("c"."short_description"::text is not distinct from b.base->>'short_description' or "c"."short_description" is not distinct from "m"."short_description") and b.base->>'short_description' is distinct from m.content->>'short_description' then 'short_description' end, case when "c"."description" is distinct from "m"."description" and not ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") and b.base->>'description' is distinct from m.content->>'description' then 'description' end, case when "c"."evaluation_check" is distinct from "m"."evaluation_check" and not ("c"."evaluation_check"::text is not distinct from b.base->>'evaluation_check' or "c"."evaluation_check" is not distinct from "m"."evaluation_check") and b.base->>'evaluation_check' is distinct from m.content->>'evaluation_check' then 'evaluation_check' end, case when "c"."tour_key" is distinct from "m"."tour_key" and not ("c"."tour_key"::text is not distinct from b.base->>'tour_key' or "c"."tour_key" is not distinct from "m"."tour_key") and b.base->>'tour_key' is distinct from m.content->>'tour_key' then 'tour_key' end, case when "c"."is_active" is distinct from "m"."is_active" and not ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") and b.base->>'is_active' is distinct from m.content->>'is_active' then 'is_active' end]::text[], null) as conflicts,
      jsonb_build_object('title', "c"."title", 'short_description', "c"."short_description", 'description', "c"."description", 'evaluation_check', "c"."evaluation_check", 'tour_key', "c"."tour_key", 'is_active', "c"."is_active") as own, m.content
    from 
  (select * from "cards" c where "c"."master_card_id" = any(array(select id from "master_card")) and c.project_id = any(array(select project_id from target)) offset 0) as c
  join "master_card" m on m.id = "c"."master_card_id" join target t on t.project_id = c.project_id and t.master_board_id = m.board_id
  cross join lateral (
  select coalesce((select r.content || coalesce(c.base_values, '{}') from template_rows r where r.id = c.base_id),
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'short_description', "c"."short_description", 'description', "c"."description", 'evaluation_check', "c"."evaluation_check", 'tour_key', "c"."tour_key", 'is_active', "c"."is_active") else m.content end) as base offset 0) as b
  where t.is_reached and c.deleted_at is null and ("c"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned) and ("c"."title", "c"."short_description", "c"."description", "c"."evaluation_check", "c"."tour_key", "c"."is_active") is distinct from ("m"."title", "m"."short_description", "m"."description", "m"."evaluation_check", "m"."tour_key", "m"."is_active")
  ), left_out as materialized (
    select p.project_id, m.* from pinned p join (
      select 'board' as noun, id as master_id, row_id, title from master_board union all
      select 'group', id, row_id, title from master_group union all select 'card', id, row_id, title from master_card
    ) as m on m.row_id = p.row_id
  )
    insert into rollout_targets (rollout_id, project_id, stage, state, is_held, digest, rows_added, fields_changed, fields_kept, fields_in_conflict, rows_pinned)
    select $3, project_id, $4::int, 'planned', is_held, digest, rows_added, fields_changed, fields_kept,
      fields_in_conflict, rows_pinned
    from (
  select t.project_id, t.has_access, t.is_held, coalesce(a.count, 0)::int as rows_added, coalesce(c.changed, 0)::int as fields_changed,
    coalesce(c.kept, 0)::int as fields_kept, coalesce(c.conflicts, 0)::int as fields_in_conflict, coalesce(l.count, 0)::int as rows_pinned,
    md5(concat_ws('|', a.lines, c.lines, l.count)) as digest
  from target t
  left join (
    select project_id, count(*) as count, string_agg(noun || master_id || ':' || row_id, ',' order by noun, master_id) as lines
    from added group by project_id
  ) as a using (project_id)
  left join (
    select project_id, sum(cardinality(changed)) as changed, sum(cardinality(kept)) as kept, sum(cardinality(conflicts)) as conflicts,
      string_agg(concat_ws(':', noun, id, row_id, changed, kept, conflicts, md5(own::text)), ',' order by noun, id) as lines
    from compared group by project_id
  ) as c using (project_id)
  left join (select project_id, count(*) as count from left_out group by project_id) as l using (project_id)) as summary where has_access
    on conflict do nothing returning project_id;

-- rollouts.preview
/* planned each time */ 
    with 
  
    
    
  released as materialized (
    select r.*, p.parent_id, p.position from release_rows p join template_rows r on r.id = p.row_id
    where p.release_id = any($1::int[])
  ),
    master_board as materialized (
      select b.*, b.id as board_id, jsonb_build_object('title', "b"."title", 'description', "b"."description", 'tool_key', "b"."tool_key", 'is_active', "b"."is_active") as content from (
  select b.*, r.id as row_id from released r 
  cross join lateral (select m from "boards" m where m.id = r."board_id" and m.deleted_at is null offset 0) as found cross join lateral jsonb_populate_record(found.m, r.content) as b) as b
    ), master_group as materialized (
      select g.*, jsonb_build_object('title', "g"."title", 'description', "g"."description", 'type', "g"."type", 'color', "g"."color", 'icon', "g"."icon", 'is_active', "g"."is_active", 'position', "g"."position") as content from (
  select g.id, g.board_id, b.position as board_position, "g"."title", "g"."description", "g"."type", "g"."color", "g"."icon", "g"."is_active", "g"."is_collapsed", "g"."position", r.id as row_id
  from released r 
  cross join lateral (select m from "groups" m where m.id = r."group_id" and m.deleted_at is null offset 0) as found
  cross join lateral jsonb_populate_record(found.m, r.content) as g
  join master_board b on b.id = g.board_id) as g where true
    ), master_card as materialized (
      select c.*, g.board_id, jsonb_build_object('title', "c"."title", 'short_description', "c"."short_description", 'description', "c"."description", 'evaluation_check', "c"."evaluation_check", 'tour_key', "c"."tour_key", 'is_active', "c"."is_active") as content, g.is_active and c.is_active as is_addable,
        row_number() over (partition by g.id order by c.position, c.id) as place_in_group,
        row_number() over (order by g.board_position, g.board_id, g.position, g.id, c.position, c.id) as place_on_boards
      from master_group g 
  join released r on r.parent_id = g.id and r.card_id is not null 
  cross join lateral (select m from "cards" m where m.id = r."card_id" and m.deleted_at is null offset 0) as found
  cross join lateral (
    select c.*, r.id as row_id
    from jsonb_populate_record(found.m, r.content || jsonb_build_object('position', r.position, 'group_id', r.parent_id)) as c) as c where true
    ), target as materialized (
      select *, has_access and not is_held as is_reached from (
        select p.id as project_id, p.platform_id, b.id as master_board_id, pt.release_id,
          b.tool_key is null or exists (
            select from project_tools t where t.project_id = p.id and t.tool_key = b.tool_key) as has_access,
          coalesce(pt.hold_until > now(), false) as is_held,
          b.is_active 
             as is_active
        from (select id, platform_id from projects where is_active and id = any($2::int[])) as p cross join master_board b
        left join project_templates pt on pt.project_id = p.id and pt.board_id = b.id
      ) as t
    ), pinned as materialized (
      select pt.project_id, row_id from project_templates pt cross join lateral unnest(pt.pinned) as row_id
      where pt.board_id = any(array(select id from master_board)) and pt.project_id = any(array(select project_id from target)) and pt.pinned <> '{}'
    ), board_copy as materialized (
      select b.project_id, b.master_board_id, b.id, b.deleted_at from boards b
      where b.master_board_id = any(array(select id from master_board)) and b.project_id = any(array(select project_id from target))
    ), group_copy as materialized (
      select g.project_id, g.id, g.board_id, g.master_group_id, g.deleted_at from groups g
      where g.master_group_id = any(array(select id from master_group)) and g.project_id = any(array(select project_id from target))
    ), card_copy as materialized (
      select c.project_id, c.master_card_id from cards c
      where c.master_card_id = any(array(select id from master_card)) and c.project_id = any(array(select project_id from target))
    ), complete_project as materialized (
      select project_id from card_copy group by project_id having count(*) = (select count(*) from master_card)
    ), missing_board as materialized (
      select t.project_id, t.platform_id, t.master_board_id, m.row_id from target t join master_board m on m.id = t.master_board_id
      where t.is_active and t.is_reached and ("t"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned)
        and (t.project_id, t.master_board_id) not in (select project_id, master_board_id from board_copy)
    ), live_board as materialized (
      select t.project_id, t.platform_id, t.master_board_id, t.is_active, b.id
      from target t join board_copy b on b.project_id = t.project_id and b.master_board_id = t.master_board_id
      where t.is_reached and b.deleted_at is null
      union all
      select project_id, platform_id, master_board_id, true, null from missing_board
    ), missing_group as materialized (
      select b.project_id, b.platform_id, b.id as board_id, m.id as master_group_id, m.row_id
      from live_board b join master_group m on m.board_id = b.master_board_id
      where b.is_active and m.is_active and ("b"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned)
        and (b.project_id, m.id) not in (select project_id, master_group_id from group_copy)
    ), live_group as (
      select b.project_id, b.platform_id, b.is_active, g.id, g.master_group_id
      from live_board b join group_copy g on g.project_id = b.project_id and g.board_id = b.id
      where g.deleted_at is null
      union all
      select project_id, platform_id, true, null, master_group_id from missing_group
    ), incomplete_group as materialized (
      select * from live_group g where g.is_active and exists (select from master_card)
        and g.project_id not in (select project_id from complete_project)
    ), stale_board as materialized (
      
    select c.id, c.project_id, m.id as template_id, (case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then "m"."tool_key" else "c"."tool_key" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end) is distinct from ("c"."title", "c"."description", "c"."tool_key", "c"."is_active") as is_changed
    from 
  (select * from "boards" c where "c"."master_board_id" = any(array(select id from "master_board")) and c.project_id = any(array(select project_id from target)) offset 0) as c
  join "master_board" m on m.id = "c"."master_board_id" join target t on t.project_id = c.project_id and t.master_board_id = m.board_id
  cross join lateral (
  select coalesce(c.brought,
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'description', "c"."description", 'tool_key', "c"."tool_key", 'is_active', "c"."is_active") else m.content end) as base offset 0) as b
  where t.is_reached and c.deleted_at is null and ("c"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned) and ("c"."title", "c"."description", "c"."tool_key", "c"."is_active", c.brought) is distinct from ("m"."title", "m"."description", "m"."tool_key", "m"."is_active", m.content)
      and ((case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then "m"."tool_key" else "c"."tool_key" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end) is distinct from ("c"."title", "c"."description", "c"."tool_key", "c"."is_active") or jsonb_build_object('title', case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then m.content else b.base end->'title', 'description', case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then m.content else b.base end->'description', 'tool_key', case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then m.content else b.base end->'tool_key', 'is_active', case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then m.content else b.base end->'is_active') is distinct from c.brought)
    ), stale_group as materialized (
      
    select c.id, c.project_id, m.id as template_id, (case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then "m"."type" else "c"."type" end, case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then "m"."color" else "c"."color" end, case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then "m"."icon" else "c"."icon" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end, case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then "m"."position" else "c"."position" end) is distinct from ("c"."title", "c"."description", "c"."type", "c"."color", "c"."icon", "c"."is_active", "c"."position") as is_changed
    from 
  (select * from "groups" c where "c"."master_group_id" = any(array(select id from "master_group")) and c.project_id = any(array(select project_id from target)) offset 0) as c
  join "master_group" m on m.id = "c"."master_group_id" join target t on t.project_id = c.project_id and t.master_board_id = m.board_id
  cross join lateral (
  select coalesce(c.brought,
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'description', "c"."description", 'type', "c"."type", 'color', "c"."color", 'icon', "c"."icon", 'is_active', "c"."is_active", 'position', "c"."position") else m.content end) as base offset 0) as b
  where t.is_reached and c.deleted_at is null and ("c"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned) and ("c"."title", "c"."description", "c"."type", "c"."color", "c"."icon", "c"."is_active", "c"."position", c.brought) is distinct from ("m"."title", "m"."description", "m"."type", "m"."color", "m"."icon", "m"."is_active", "m"."position", m.content)
      and ((case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then "m"."type" else "c"."type" end, case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then "m"."color" else "c"."color" end, case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then "m"."icon" else "c"."icon" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end, case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then "m"."position" else "c"."position" end) is distinct from ("c"."title", "c"."description", "c"."type", "c"."color", "c"."icon", "c"."is_active", "c"."position") or jsonb_build_object('title', case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then m.content else b.base end->'title', 'description', case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then m.content else b.base end->'description', 'type', case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then m.content else b.base end->'type', 'color', case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then m.content else b.base end->'color', 'icon', case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then m.content else b.base end->'icon', 'is_active', case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then m.content else b.base end->'is_active', 'position', case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then m.content else b.base end->'position') is distinct from c.brought)
    ), adopted_card as materialized (
      
  select c.id, c.project_id, m.id as template_id, true as is_changed
  from (
    select * from cards c where c.project_id = any(array(select project_id from target)) and c.master_card_id = any(array(
      select id from cards where is_master and deleted_at is not null
        and unique_identifier = any(array(select unique_identifier from master_card)))) offset 0
  ) as c join master_card m on m.unique_identifier = c.unique_identifier
  join incomplete_group g on g.project_id = c.project_id and m.group_id = g.master_group_id and m.is_addable and ("g"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned)
  and not exists (select from card_copy c where c.project_id = g.project_id and c.master_card_id = m.id)
  where c.deleted_at is null
    ), stale_card as materialized (
      select * from adopted_card union all 
    select c.id, c.project_id, m.id as template_id, (case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."short_description"::text is not distinct from b.base->>'short_description' or "c"."short_description" is not distinct from "m"."short_description") then "m"."short_description" else "c"."short_description" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."evaluation_check"::text is not distinct from b.base->>'evaluation_check' or "c"."evaluation_check" is not distinct from "m"."evaluation_check") then "m"."evaluation_check" else "c"."evaluation_check" end, case when ("c"."tour_key"::text is not distinct from b.base->>'tour_key' or "c"."tour_key" is not distinct from "m"."tour_key") then "m"."tour_key" else "c"."tour_key" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end) is distinct from ("c"."title", "c"."short_description", "c"."description", "c"."evaluation_check", "c"."tour_key", "c"."is_active") as is_changed
    from 
  (select * from "cards" c where "c"."master_card_id" = any(array(select id from "master_card")) and c.project_id = any(array(select project_id from target)) offset 0) as c
  join "master_card" m on m.id = "c"."master_card_id" join target t on t.project_id = c.project_id and t.master_board_id = m.board_id
  cross join lateral (
  select coalesce((select r.content || coalesce(c.base_values, '{}') from template_rows r where r.id = c.base_id),
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'short_description', "c"."short_description", 'description', "c"."description", 'evaluation_check', "c"."evaluation_check", 'tour_key', "c"."tour_key", 'is_active', "c"."is_active") else m.content end) as base offset 0) as b
  where t.is_reached and c.deleted_at is null and ("c"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned) and (("c"."title", "c"."short_description", "c"."description", "c"."evaluation_check", "c"."tour_key", "c"."is_active") is distinct from ("m"."title", "m"."short_description", "m"."description", "m"."evaluation_check", "m"."tour_key", "m"."is_active") or c.base_id is distinct from m.row_id or c.base_values is not null)
      and ((case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."short_description"::text is not distinct from b.base->>'short_description' or "c"."short_description" is not distinct from "m"."short_description") then "m"."short_description" else "c"."short_description" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."evaluation_check"::text is not distinct from b.base->>'evaluation_check' or "c"."evaluation_check" is not distinct from "m"."evaluation_check") then "m"."evaluation_check" else "c"."evaluation_check" end, case when ("c"."tour_key"::text is not distinct from b.base->>'tour_key' or "c"."tour_key" is not distinct from "m"."tour_key") then "m"."tour_key" else "c"."tour_key" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end) is distinct from ("c"."title", "c"."short_description", "c"."description", "c"."evaluation_check", "c"."tour_key", "c"."is_active") or (m.row_id, nullif(case when not ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") and b.base->'title' <> m.content->'title'
      then jsonb_build_object('title', b.base->'title') else '{}' end || case when not ("c"."short_description"::text is not distinct from b.base->>'short_description' or "c"."short_description" is not distinct from "m"."short_description") and b.base->'short_description' <> m.content->'short_description'
      then jsonb_build_object('short_description', b.base->'short_description') else '{}' end || case when not ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") and b.base->'description' <> m.content->'description'
      then jsonb_build_object('description', b.base->'description') else '{}' end || case when not ("c"."evaluation_check"::text is not distinct from b.base->>'evaluation_check' or "c"."evaluation_check" is not distinct from "m"."evaluation_check") and b.base->'evaluation_check' <> m.content->'evaluation_check'
      then jsonb_build_object('evaluation_check', b.base->'evaluation_check') else '{}' end || case when not ("c"."tour_key"::text is not distinct from b.base->>'tour_key' or "c"."tour_key" is not distinct from "m"."tour_key") and b.base->'tour_key' <> m.content->'tour_key'
      then jsonb_build_object('tour_key', b.base->'tour_key') else '{}' end || case when not ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") and b.base->'is_active' <> m.content->'is_active'
      then jsonb_build_object('is_active', b.base->'is_active') else '{}' end, '{}')) is distinct from (c.base_id, c.base_values))
    ), added as materialized (
    select l.project_id, 'board' as noun, m.id as master_id, m.row_id, m.title from missing_board l join master_board m on m.id = l.master_board_id
    union all
    select l.project_id, 'group', m.id, m.row_id, m.title from missing_group l join master_group m on m.id = l.master_group_id
    union all
    select g.project_id, 'card', m.id, m.row_id, m.title from incomplete_group g join master_card m on m.group_id = g.master_group_id and m.is_addable and ("g"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned)
  and not exists (select from card_copy c where c.project_id = g.project_id and c.master_card_id = m.id) and (g.project_id, m.id) not in (select project_id, template_id from adopted_card)
  ), compared as materialized (
    
    select c.project_id, 'board' as noun, c.id, m.id as master_id, m.row_id, m.title,
      array_remove(array[case when "c"."title" is distinct from "m"."title" and ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then 'title' end, case when "c"."description" is distinct from "m"."description" and ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then 'description' end, case when "c"."tool_key" is distinct from "m"."tool_key" and ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then 'tool_key' end, case when "c"."is_active" is distinct from "m"."is_active" and ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then 'is_active' end]::text[], null) as changed, array_remove(array[case when "c"."title" is distinct from "m"."title" and not ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then 'title' end, case when "c"."description" is distinct from "m"."description" and not ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then 'description' end, case when "c"."tool_key" is distinct from "m"."tool_key" and not ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then 'tool_key' end, case when "c"."is_active" is distinct from "m"."is_active" and not ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then 'is_active' end]::text[], null) as kept, array_remove(array[case when "c"."title" is distinct from "m"."title" and not ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") and b.base->>'title' is distinct from m.content->>'title' then 'title' end, case when "c"."description" is distinct from "m"."description" and not ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") and b.base->>'description' is distinct from m.content->>'description' then 'description' end, case when "c"."tool_key" is distinct from "m"."tool_key" and not ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") and b.base->>'tool_key' is distinct from m.content->>'tool_key' then 'tool_key' end, case when "c"."is_active" is distinct from "m"."is_active" and not ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") and b.base->>'is_active' is distinct from m.content->>'is_active' then 'is_active' end]::text[], null) as conflicts,
      jsonb_build_object('title', "c"."title", 'description', "c"."description", 'tool_key', "c"."tool_key", 'is_active', "c"."is_active") as own, m.content
    from 
  (select * from "boards" c where "c"."master_board_id" = any(array(select id from "master_board")) and c.project_id = any(array(select project_id from target)) offset 0) as c
  join "master_board" m on m.id = "c"."master_board_id" join target t on t.project_id = c.project_id and t.master_board_id = m.board_id
  cross join lateral (
  select coalesce(c.brought,
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'description', "c"."description", 'tool_key', "c"."tool_key", 'is_active', "c"."is_active") else m.content end) as base offset 0) as b
  where t.is_reached and c.deleted_at is null and ("c"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned) and ("c"."title", "c"."description", "c"."tool_key", "c"."is_active") is distinct from ("m"."title", "m"."description", "m"."tool_key", "m"."is_active") union all 
    select c.project_id, 'group' as noun, c.id, m.id as master_id, m.row_id, m.title,
      array_remove(array[case when "c"."title" is distinct from "m"."title" and ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then 'title' end, case when "c"."description" is distinct from "m"."description" and ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then 'description' end, case when "c"."type" is distinct from "m"."type" and ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then 'type' end, case when "c"."color" is distinct from "m"."color" and ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then 'color' end, case when "c"."icon" is distinct from "m"."icon" and ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then 'icon' end, case when "c"."is_active" is distinct from "m"."is_active" and ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then 'is_active' end, case when "c"."position" is distinct from "m"."position" and ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then 'position' end]::text[], null) as changed, array_remove(array[case when "c"."title" is distinct from "m"."title" and not ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then 'title' end, case when "c"."description" is distinct from "m"."description" and not ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then 'description' end, case when "c"."type" is distinct from "m"."type" and not ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then 'type' end, case when "c"."color" is distinct from "m"."color" and not ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then 'color' end, case when "c"."icon" is distinct from "m"."icon" and not ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then 'icon' end, case when "c"."is_active" is distinct from "m"."is_active" and not ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then 'is_active' end, case when "c"."position" is distinct from "m"."position" and not ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then 'position' end]::text[], null) as kept, array_remove(array[case when "c"."title" is distinct from "m"."title" and not ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") and b.base->>'title' is distinct from m.content->>'title' then 'title' end, case when "c"."description" is distinct from "m"."description" and not ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") and b.base->>'description' is distinct from m.content->>'description' then 'description' end, case when "c"."type" is distinct from "m"."type" and not ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") and b.base->>'type' is distinct from m.content->>'type' then 'type' end, case when "c"."color" is distinct from "m"."color" and not ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") and b.base->>'color' is distinct from m.content->>'color' then 'color' end, case when "c"."icon" is distinct from "m"."icon" and not ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") and b.base->>'icon' is distinct from m.content->>'icon' then 'icon' end, case when "c"."is_active" is distinct from "m"."is_active" and not ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") and b.base->>'is_active' is distinct from m.content->>'is_active' then 'is_active' end, case when "c"."position" is distinct from "m"."position" and not ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") and b.base->>'position' is distinct from m.content->>'position' then 'position' end]::text[], null) as conflicts,
      jsonb_build_object('title', "c"."title", 'description', "c"."description", 'type', "c"."type", 'color', "c"."color", 'icon', "c"."icon", 'is_active', "c"."is_active", 'position', "c"."position") as own, m.content
    from 
  (select * from "groups" c where "c"."master_group_id" = any(array(select id from "master_group")) and c.project_id = any(array(select project_id from target)) offset 0) as c
  join "master_group" m on m.id = "c"."master_group_id" join target t on t.project_id = c.project_id and t.master_board_id = m.board_id
  cross join lateral (
  select coalesce(c.brought,
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'description', "c"."description", 'type', "c"."type", 'color', "c"."color", 'icon', "c"."icon", 'is_active', "c"."is_active", 'position', "c"."position") else m.content end) as base offset 0) as b
  where t.is_reached and c.deleted_at is null and ("c"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned) and ("c"."title", "c"."description", "c"."type", "c"."color", "c"."icon", "c"."is_active", "c"."position") is distinct from ("m"."title", "m"."description", "m"."type", "m"."color", "m"."icon", "m"."is_active", "m"."position") union all 
    select c.project_id, 'card' as noun, c.id, m.id as master_id, m.row_id, m.title,
      array_remove(array[case when "c"."title" is distinct from "m"."title" and ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then 'title' end, case when "c"."short_description" is distinct from "m"."short_description" and ("c"."short_description"::text is not distinct from b.base->>'short_description' or "c"."short_description" is not distinct from "m"."short_description") then 'short_description' end, case when "c"."description" is distinct from "m"."description" and ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then 'description' end, case when "c"."evaluation_check" is distinct from "m"."evaluation_check" and ("c"."evaluation_check"::text is not distinct from b.base->>'evaluation_check' or "c"."evaluation_check" is not distinct from "m"."evaluation_check") then 'evaluation_check' end, case when "c"."tour_key" is distinct from "m"."tour_key" and ("c"."tour_key"::text is not distinct from b.base->>'tour_key' or "c"."tour_key" is not distinct from "m"."tour_key") then 'tour_key' end, case when "c"."is_active" is distinct from "m"."is_active" and ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then 'is_active' end]::text[], null) as changed, array_remove(array[case when "c"."title" is distinct from "m"."title" and not ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then 'title' end, case when "c"."short_description" is distinct from "m"."short_description" and not ("c"."short_description"::text is not distinct from b.base->>'short_description' or "c"."short_description" is not distinct from "m"."short_description") then 'short_description' end, case when "c"."description" is distinct from "m"."description" and not ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then 'description' end, case when "c"."evaluation_check" is distinct from "m"."evaluation_check" and not ("c"."evaluation_check"::text is not distinct from b.base->>'evaluation_check' or "c"."evaluation_check" is not distinct from "m"."evaluation_check") then 'evaluation_check' end, case when "c"."tour_key" is distinct from "m"."tour_key" and not ("c"."tour_key"::text is not distinct from b.base->>'tour_key' or "c"."tour_key" is not distinct from "m"."tour_key") then 'tour_key' end, case when "c"."is_active" is distinct from "m"."is_active" and not ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then 'is_active' end]::text[], null) as kept, array_remove(array[case when "c"."title" is distinct from "m"."title" and not ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") and b.base->>'title' is distinct from m.content->>'title' then 'title' end, case when "c"."short_description" is distinct from "m"."short_description" and not ("c"."short_description"::text is not distinct from b.base->>'short_description' or "c"."short_description" is not distinct from "m"."short_description") and b.base->>'short_description' is distinct from m.content->>'short_description' then 'short_description' end, case when "c"."description" is distinct from "m"."description" and not ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") and b.base->>'description' is distinct from m.content->>'description' then 'description' end, case when "c"."evaluation_check" is distinct from "m"."evaluation_check" and not ("c"."evaluation_check"::text is not distinct from b.base->>'evaluation_check' or "c"."evaluation_check" is not distinct from "m"."evaluation_check") and b.base->>'evaluation_check' is distinct from m.content->>'evaluation_check' then 'evaluation_check' end, case when "c"."tour_key" is distinct from "m"."tour_key" and not ("c"."tour_key"::text is not distinct from b.base->>'tour_key' or "c"."tour_key" is not distinct from "m"."tour_key") and b.base->>'tour_key' is distinct from m.content->>'tour_key' then 'tour_key' end, case when "c"."is_active" is distinct from "m"."is_active" and not ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") and b.base->>'is_active' is distinct from m.content->>'is_active' then 'is_active' end]::text[], null) as conflicts,
      jsonb_build_object('title', "c"."title", 'short_description', "c"."short_description", 'description', "c"."description", 'evaluation_check', "c"."evaluation_check", 'tour_key', "c"."tour_key", 'is_active', "c"."is_active") as own, m.content
    from 
  (select * from "cards" c where "c"."master_card_id" = any(array(select id from "master_card")) and c.project_id = any(array(select project_id from target)) offset 0) as c
  join "master_card" m on m.id = "c"."master_card_id" join target t on t.project_id = c.project_id and t.master_board_id = m.board_id
  cross join lateral (
  select coalesce((select r.content || coalesce(c.base_values, '{}') from template_rows r where r.id = c.base_id),
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'short_description', "c"."short_description", 'description', "c"."description", 'evaluation_check', "c"."evaluation_check", 'tour_key', "c"."tour_key", 'is_active', "c"."is_active") else m.content end) as base offset 0) as b
  where t.is_reached and c.deleted_at is null and ("c"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned) and ("c"."title", "c"."short_description", "c"."description", "c"."evaluation_check", "c"."tour_key", "c"."is_active") is distinct from ("m"."title", "m"."short_description", "m"."description", "m"."evaluation_check", "m"."tour_key", "m"."is_active")
  ), left_out as materialized (
    select p.project_id, m.* from pinned p join (
      select 'board' as noun, id as master_id, row_id, title from master_board union all
      select 'group', id, row_id, title from master_group union all select 'card', id, row_id, title from master_card
    ) as m on m.row_id = p.row_id
  ), lines as (
      select noun, master_id, null::int as id, title, 'added' as what, null as field, null::jsonb as before, null::jsonb as after from added
      union all
      select noun, master_id, id, title,
        case when field = any(conflicts) then 'conflict' when field = any(kept) then 'kept' else 'changed' end, field, own->field, content->field
      from compared cross join lateral unnest(changed || kept) as field
      union all
      select noun, master_id, null, title, 'pinned', null, null, null from left_out
      union all
      select 'board', m.id, null, m.title, 'held', null, null, null from target t join master_board m on m.id = t.master_board_id where t.is_held
    )
    select noun, master_id, id, title, what, field, case when length("before" #>> '{}') > 1000 then to_jsonb(left("before" #>> '{}', 1000) || '…') else "before" end as "before", case when length("after" #>> '{}') > 1000 then to_jsonb(left("after" #>> '{}', 1000) || '…') else "after" end as "after" from lines
    order by noun, master_id, field nulls first limit 1000;

-- projects.create, projects.update
/* planned each time */ 
      with 
    
    
    
    master_board as materialized (
      select b.*, b.id as board_id, jsonb_build_object('title', "b"."title", 'description', "b"."description", 'tool_key', "b"."tool_key", 'is_active', "b"."is_active") as content from (
  select b.*, (
  select r.id from template_rows r
  where r."board_id" = "b"."id" and r.digest = md5((jsonb_build_object('title', "b"."title", 'description', "b"."description", 'tool_key', "b"."tool_key", 'is_active', "b"."is_active"))::text)) as row_id from boards b where b.id = any($1::int[]) and b.is_master and b.deleted_at is null) as b
    ), master_group as materialized (
      select g.*, jsonb_build_object('title', "g"."title", 'description', "g"."description", 'type', "g"."type", 'color', "g"."color", 'icon', "g"."icon", 'is_active', "g"."is_active", 'position', "g"."position") as content from (
  select g.*, (
  select r.id from template_rows r
  where r."group_id" = "g"."id" and r.digest = md5((jsonb_build_object('title', "g"."title", 'description', "g"."description", 'type', "g"."type", 'color', "g"."color", 'icon', "g"."icon", 'is_active', "g"."is_active", 'is_collapsed', "g"."is_collapsed", 'position', "g"."position"))::text)) as row_id from (
  select id, board_id, board_position, "title", "description", "type", "color", "icon", "is_active", "is_collapsed",
    least(place + max(position - place) over (partition by board_id order by place), 2147483647)::int as position
  from (
    select g.*, b.position as board_position, row_number() over (partition by b.id order by g.position, g.id) as place
    from master_board b cross join lateral (select * from groups g where g.board_id = b.id and g.deleted_at is null offset 0) as g
  ) as g) as g) as g where true
    ), master_card as materialized (
      select c.*, g.board_id, jsonb_build_object('title', "c"."title", 'short_description', "c"."short_description", 'description', "c"."description", 'evaluation_check', "c"."evaluation_check", 'tour_key', "c"."tour_key", 'is_active', "c"."is_active") as content, true as is_addable,
        row_number() over (partition by g.id order by c.position, c.id) as place_in_group,
        row_number() over (order by g.board_position, g.board_id, g.position, g.id, c.position, c.id) as place_on_boards
      from master_group g 
  cross join lateral (
    select c.*, (
  select r.id from template_rows r
  where r."card_id" = "c"."id" and r.digest = md5((jsonb_build_object('title', "c"."title", 'short_description', "c"."short_description", 'description', "c"."description", 'evaluation_check', "c"."evaluation_check", 'tour_key', "c"."tour_key", 'is_active', "c"."is_active", 'status', "c"."status", 'priority', "c"."priority"))::text)) as row_id from cards c where c.group_id = g.id and c.deleted_at is null offset 0) as c where g.is_active and c.is_active
    ), target as materialized (
      select *, has_access and not is_held as is_reached from (
        select p.id as project_id, p.platform_id, b.id as master_board_id, pt.release_id,
          b.tool_key is null or exists (
            select from project_tools t where t.project_id = p.id and t.tool_key = b.tool_key) as has_access,
          coalesce(pt.hold_until > now(), false) as is_held,
          b.is_active 
             as is_active
        from (select id, platform_id from projects where id = any($2::int[])) as p cross join master_board b
        left join project_templates pt on pt.project_id = p.id and pt.board_id = b.id
      ) as t
    ), pinned as materialized (
      select pt.project_id, row_id from project_templates pt cross join lateral unnest(pt.pinned) as row_id
      where pt.board_id = any(array(select id from master_board)) and pt.project_id between (select min(project_id) from target) and (select max(project_id) from target) and pt.pinned <> '{}'
    ), board_copy as materialized (
      select b.project_id, b.master_board_id, b.id, b.deleted_at from boards b
      where b.master_board_id = any(array(select id from master_board)) and b.project_id between (select min(project_id) from target) and (select max(project_id) from target)
    ), group_copy as materialized (
      select g.project_id, g.id, g.board_id, g.master_group_id, g.deleted_at from groups g
      where g.master_group_id = any(array(select id from master_group)) and g.project_id between (select min(project_id) from target) and (select max(project_id) from target)
    ), card_copy as materialized (
      select c.project_id, c.master_card_id from cards c
      where c.master_card_id = any(array(select id from master_card)) and c.project_id between (select min(project_id) from target) and (select max(project_id) from target)
    ), complete_project as materialized (
      select project_id from card_copy group by project_id having count(*) = (select count(*) from master_card)
    ), missing_board as materialized (
      select t.project_id, t.platform_id, t.master_board_id, m.row_id from target t join master_board m on m.id = t.master_board_id
      where t.is_active and t.is_reached and ("t"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned)
        and (t.project_id, t.master_board_id) not in (select project_id, master_board_id from board_copy)
    ), live_board as materialized (
      select t.project_id, t.platform_id, t.master_board_id, t.is_active, b.id
      from target t join board_copy b on b.project_id = t.project_id and b.master_board_id = t.master_board_id
      where t.is_reached and b.deleted_at is null
      union all
      select project_id, platform_id, master_board_id, true, null from missing_board
    ), missing_group as materialized (
      select b.project_id, b.platform_id, b.id as board_id, m.id as master_group_id, m.row_id
      from live_board b join master_group m on m.board_id = b.master_board_id
      where b.is_active and m.is_active and ("b"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned)
        and (b.project_id, m.id) not in (select project_id, master_group_id from group_copy)
    ), live_group as (
      select b.project_id, b.platform_id, b.is_active, g.id, g.master_group_id
      from live_board b join group_copy g on g.project_id = b.project_id and g.board_id = b.id
      where g.deleted_at is null
      union all
      select project_id, platform_id, true, null, master_group_id from missing_group
    ), incomplete_group as materialized (
      select * from live_group g where g.is_active and exists (select from master_card)
        and g.project_id not in (select project_id from complete_project)
    ), stale_board as materialized (
      
    select c.id, c.project_id, m.id as template_id, (case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then "m"."tool_key" else "c"."tool_key" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end) is distinct from ("c"."title", "c"."description", "c"."tool_key", "c"."is_active") as is_changed
    from 
  (select * from "boards" c where "c"."master_board_id" = any(array(select id from "master_board")) and c.project_id between (select min(project_id) from target) and (select max(project_id) from target) offset 0) as c
  join "master_board" m on m.id = "c"."master_board_id" join target t on t.project_id = c.project_id and t.master_board_id = m.board_id
  cross join lateral (
  select coalesce(c.brought,
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'description', "c"."description", 'tool_key', "c"."tool_key", 'is_active', "c"."is_active") else m.content end) as base offset 0) as b
  where t.is_reached and c.deleted_at is null and ("c"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned) and ("c"."title", "c"."description", "c"."tool_key", "c"."is_active", c.brought) is distinct from ("m"."title", "m"."description", "m"."tool_key", "m"."is_active", m.content)
      and ((case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then "m"."tool_key" else "c"."tool_key" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end) is distinct from ("c"."title", "c"."description", "c"."tool_key", "c"."is_active") or jsonb_build_object('title', case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then m.content else b.base end->'title', 'description', case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then m.content else b.base end->'description', 'tool_key', case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then m.content else b.base end->'tool_key', 'is_active', case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then m.content else b.base end->'is_active') is distinct from c.brought)
    ), stale_group as materialized (
      
    select c.id, c.project_id, m.id as template_id, (case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then "m"."type" else "c"."type" end, case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then "m"."color" else "c"."color" end, case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then "m"."icon" else "c"."icon" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end, case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then "m"."position" else "c"."position" end) is distinct from ("c"."title", "c"."description", "c"."type", "c"."color", "c"."icon", "c"."is_active", "c"."position") as is_changed
    from 
  (select * from "groups" c where "c"."master_group_id" = any(array(select id from "master_group")) and c.project_id between (select min(project_id) from target) and (select max(project_id) from target) offset 0) as c
  join "master_group" m on m.id = "c"."master_group_id" join target t on t.project_id = c.project_id and t.master_board_id = m.board_id
  cross join lateral (
  select coalesce(c.brought,
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'description', "c"."description", 'type', "c"."type", 'color', "c"."color", 'icon', "c"."icon", 'is_active', "c"."is_active", 'position', "c"."position") else m.content end) as base offset 0) as b
  where t.is_reached and c.deleted_at is null and ("c"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned) and ("c"."title", "c"."description", "c"."type", "c"."color", "c"."icon", "c"."is_active", "c"."position", c.brought) is distinct from ("m"."title", "m"."description", "m"."type", "m"."color", "m"."icon", "m"."is_active", "m"."position", m.content)
      and ((case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end, case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end, case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then "m"."type" else "c"."type" end, case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then "m"."color" else "c"."color" end, case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then "m"."icon" else "c"."icon" end, case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end, case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then "m"."position" else "c"."position" end) is distinct from ("c"."title", "c"."description", "c"."type", "c"."color", "c"."icon", "c"."is_active", "c"."position") or jsonb_build_object('title', case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then m.content else b.base end->'title', 'description', case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then m.content else b.base end->'description', 'type', case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then m.content else b.base end->'type', 'color', case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then m.content else b.base end->'color', 'icon', case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then m.content else b.base end->'icon', 'is_active', case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then m.content else b.base end->'is_active', 'position', case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then m.content else b.base end->'position') is distinct from c.brought)
    ), adopted_card as materialized (
      
  select c.id, c.project_id, m.id as template_id, true as is_changed
  from (
    select * from cards c where c.project_id between (select min(project_id) from target) and (select max(project_id) from target) and c.master_card_id = any(array(
      select id from cards where is_master and deleted_at is not null
        and unique_identifier = any(array(select unique_identifier from master_card)))) offset 0
  ) as c join master_card m on m.unique_identifier = c.unique_identifier
  join incomplete_group g on g.project_id = c.project_id and m.group_id = g.master_group_id and m.is_addable and ("g"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned)
  and not exists (select from card_copy c where c.project_id = g.project_id and c.master_card_id = m.id)
  where c.deleted_at is null
    ), stale_card as materialized (
      select * from adopted_card 
    ), added_board as (
      insert into boards (project_id, platform_id, master_board_id, "title", "description", "tool_key", "is_active", brought, position)
      select l.project_id, l.platform_id, m.id, "m"."title", "m"."description", "m"."tool_key", "m"."is_active", m.content,
        least(row_number() over (partition by l.project_id order by m.position, m.id) + (
          select coalesce(max(position), 0) from boards b where b.project_id = l.project_id and b.deleted_at is null), 2147483647)
      from missing_board l join master_board m on m.id = l.master_board_id
      order by l.project_id, m.position, m.id
      returning id, project_id, master_board_id as template_id, master_board_id
    ), added_group as (
      insert into groups (project_id, platform_id, master_group_id, board_id, "title", "description", "type", "color", "icon", "is_active", "is_collapsed", brought, position)
      select l.project_id, l.platform_id, m.id, coalesce(l.board_id, b.id), "m"."title", "m"."description", "m"."type", "m"."color", "m"."icon", "m"."is_active", "m"."is_collapsed", m.content, m.position
      from missing_group l join master_group m on m.id = l.master_group_id
      left join added_board b on b.project_id = l.project_id and b.master_board_id = m.board_id
      order by l.project_id, m.board_position, m.board_id, m.position
      returning id, project_id, master_group_id as template_id, master_group_id
    ), last_in_project as (
      select project_id, (
        select coalesce(max(c.sort_order), 0)::bigint from cards c where c.project_id = g.project_id and c.deleted_at is null) as sort_order
      from incomplete_group g group by project_id
    ), filled_group as materialized (
      select g.project_id, g.platform_id, g.master_group_id, coalesce(g.id, a.id) as id, l.sort_order as last_sort_order, (
        select coalesce(max(c.position), 0)::bigint from cards c where c.group_id = g.id and c.deleted_at is null) as last_position
      from incomplete_group g join last_in_project l on l.project_id = g.project_id
      left join added_group a on a.project_id = g.project_id and a.master_group_id = g.master_group_id
    ), added_card as (
      insert into cards (project_id, platform_id, master_card_id, base_id, group_id, "title", "short_description", "description", "evaluation_check", "tour_key", "unique_identifier", "is_active", "status", "priority", position, sort_order)
      select g.project_id, g.platform_id, m.id, m.row_id, g.id, "m"."title", "m"."short_description", "m"."description", "m"."evaluation_check", "m"."tour_key", "m"."unique_identifier", "m"."is_active", "m"."status", "m"."priority",
        least(g.last_position + m.place_in_group, 2147483647), least(g.last_sort_order + m.place_on_boards, 2147483647)
      from filled_group g join master_card m on m.group_id = g.master_group_id and m.is_addable and ("g"."project_id", coalesce(m.row_id, 0)) not in (select project_id, row_id from pinned)
  and not exists (select from card_copy c where c.project_id = g.project_id and c.master_card_id = m.id) and (g.project_id, m.id) not in (select project_id, template_id from adopted_card)
      order by g.project_id, m.place_on_boards
      returning id, project_id, master_card_id as template_id
    ), 
    "locked_board" as materialized (
      select c.id, m.id as template_id, m.row_id, case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end as "new_title", case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end as "new_description", case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then "m"."tool_key" else "c"."tool_key" end as "new_tool_key", case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end as "new_is_active", jsonb_build_object('title', case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then m.content else b.base end->'title', 'description', case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then m.content else b.base end->'description', 'tool_key', case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then m.content else b.base end->'tool_key', 'is_active', case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then m.content else b.base end->'is_active') as new_base,
        case when case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end is distinct from "c"."title"
          then jsonb_build_object('title', b.base->'title') else '{}' end || case when case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end is distinct from "c"."description"
          then jsonb_build_object('description', b.base->'description') else '{}' end || case when case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then "m"."tool_key" else "c"."tool_key" end is distinct from "c"."tool_key"
          then jsonb_build_object('tool_key', b.base->'tool_key') else '{}' end || case when case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end is distinct from "c"."is_active"
          then jsonb_build_object('is_active', b.base->'is_active') else '{}' end as base, case when case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end is distinct from "c"."title"
          then jsonb_build_object('title', "c"."title") else '{}' end || case when case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end is distinct from "c"."description"
          then jsonb_build_object('description', "c"."description") else '{}' end || case when case when ("c"."tool_key"::text is not distinct from b.base->>'tool_key' or "c"."tool_key" is not distinct from "m"."tool_key") then "m"."tool_key" else "c"."tool_key" end is distinct from "c"."tool_key"
          then jsonb_build_object('tool_key', "c"."tool_key") else '{}' end || case when case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end is distinct from "c"."is_active"
          then jsonb_build_object('is_active', "c"."is_active") else '{}' end as before
      from "stale_board" s join "boards" c on c.id = s.id and c.id = any(array(select id from "stale_board"))
      join "master_board" m on m.id = s.template_id cross join lateral (
  select coalesce(c.brought,
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'description', "c"."description", 'tool_key', "c"."tool_key", 'is_active', "c"."is_active") else m.content end) as base offset 0) as b
      for no key update of c
    ), "updated_board" as (
      update "boards" c set "title" = "l"."new_title", "description" = "l"."new_description", "tool_key" = "l"."new_tool_key", "is_active" = "l"."new_is_active",
        brought = l.new_base,
        updated_at = case when (l.before <> '{}') then now() else c.updated_at end
      from "locked_board" l where c.id = l.id
      returning c.id, c.project_id, l.template_id, l.row_id, l.before, l.base, (l.before <> '{}') as is_changed
    ), 
    "locked_group" as materialized (
      select c.id, m.id as template_id, m.row_id, case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end as "new_title", case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end as "new_description", case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then "m"."type" else "c"."type" end as "new_type", case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then "m"."color" else "c"."color" end as "new_color", case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then "m"."icon" else "c"."icon" end as "new_icon", case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end as "new_is_active", case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then "m"."position" else "c"."position" end as "new_position", jsonb_build_object('title', case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then m.content else b.base end->'title', 'description', case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then m.content else b.base end->'description', 'type', case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then m.content else b.base end->'type', 'color', case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then m.content else b.base end->'color', 'icon', case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then m.content else b.base end->'icon', 'is_active', case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then m.content else b.base end->'is_active', 'position', case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then m.content else b.base end->'position') as new_base,
        case when case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end is distinct from "c"."title"
          then jsonb_build_object('title', b.base->'title') else '{}' end || case when case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end is distinct from "c"."description"
          then jsonb_build_object('description', b.base->'description') else '{}' end || case when case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then "m"."type" else "c"."type" end is distinct from "c"."type"
          then jsonb_build_object('type', b.base->'type') else '{}' end || case when case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then "m"."color" else "c"."color" end is distinct from "c"."color"
          then jsonb_build_object('color', b.base->'color') else '{}' end || case when case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then "m"."icon" else "c"."icon" end is distinct from "c"."icon"
          then jsonb_build_object('icon', b.base->'icon') else '{}' end || case when case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end is distinct from "c"."is_active"
          then jsonb_build_object('is_active', b.base->'is_active') else '{}' end || case when case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then "m"."position" else "c"."position" end is distinct from "c"."position"
          then jsonb_build_object('position', b.base->'position') else '{}' end as base, case when case when ("c"."title"::text is not distinct from b.base->>'title' or "c"."title" is not distinct from "m"."title") then "m"."title" else "c"."title" end is distinct from "c"."title"
          then jsonb_build_object('title', "c"."title") else '{}' end || case when case when ("c"."description"::text is not distinct from b.base->>'description' or "c"."description" is not distinct from "m"."description") then "m"."description" else "c"."description" end is distinct from "c"."description"
          then jsonb_build_object('description', "c"."description") else '{}' end || case when case when ("c"."type"::text is not distinct from b.base->>'type' or "c"."type" is not distinct from "m"."type") then "m"."type" else "c"."type" end is distinct from "c"."type"
          then jsonb_build_object('type', "c"."type") else '{}' end || case when case when ("c"."color"::text is not distinct from b.base->>'color' or "c"."color" is not distinct from "m"."color") then "m"."color" else "c"."color" end is distinct from "c"."color"
          then jsonb_build_object('color', "c"."color") else '{}' end || case when case when ("c"."icon"::text is not distinct from b.base->>'icon' or "c"."icon" is not distinct from "m"."icon") then "m"."icon" else "c"."icon" end is distinct from "c"."icon"
          then jsonb_build_object('icon', "c"."icon") else '{}' end || case when case when ("c"."is_active"::text is not distinct from b.base->>'is_active' or "c"."is_active" is not distinct from "m"."is_active") then "m"."is_active" else "c"."is_active" end is distinct from "c"."is_active"
          then jsonb_build_object('is_active', "c"."is_active") else '{}' end || case when case when ("c"."position"::text is not distinct from b.base->>'position' or "c"."position" is not distinct from "m"."position") then "m"."position" else "c"."position" end is distinct from "c"."position"
          then jsonb_build_object('position', "c"."position") else '{}' end as before
      from "stale_group" s join "groups" c on c.id = s.id and c.id = any(array(select id from "stale_group"))
      join "master_group" m on m.id = s.template_id cross join lateral (
  select coalesce(c.brought,
    case when c.updated_at = c.created_at then jsonb_build_object('title', "c"."title", 'description', "c"."description", 'type', "c"."type", 'color', "c"."color", 'icon', "c"."icon", 'is_active', "c"."is_active", 'position', "c"."position") else m.content end) as base offset 0) as b
      for no key update of c
    ), "updated_group" as (
      update "groups" c set "title" = "l"."new_title", "description" = "l"."new_description", "type" = "l"."new_type", "color" = "l"."new_color", "icon" = "l"."new_icon", "is_active" = "l"."new_is_active", "position" = "l"."new_position",
        brought = l.new_base,
        updated_at = case when (l.before <> '{}') then now() else c.updated_at end
      from "locked_group" l where c.id = l.id
      returning c.id, c.project_id, l.template_id, l.row_id, l.before, l.base, (l.before <> '{}') as is_changed
    ), "updated_card" as (
  update cards c set master_card_id = s.template_id, updated_at = now() from stale_card s
  where c.id = any(array(select id from stale_card)) and c.id = s.id
  returning c.project_id, true as is_changed), 
  placed as (
    insert into project_templates (project_id, board_id, release_id)
    select project_id, master_board_id, new_id from (
      select t.*, (
  select r.id from releases r
  where r.board_id = t.master_board_id and r.number = (select max(number) from releases l where l.board_id = t.master_board_id)
    and not exists (
      select from (
  select board_id, row_id from master_board union all select board_id, row_id from master_group
  union all select board_id, row_id from master_card) as m where m.board_id = t.master_board_id
        and not exists (select from release_rows p where p.release_id = r.id and p.row_id = m.row_id))) as new_id from target t
      where t.is_reached and true and (not (t.project_id in (select project_id from pinned where row_id in (select row_id from (
  select board_id, row_id from master_board union all select board_id, row_id from master_group
  union all select board_id, row_id from master_card) as m where row_id is not null))) or t.project_id in (select project_id from "added_board"  union all select project_id from "added_group"  union all select project_id from "added_card"  union all select project_id from "updated_board" where is_changed union all select project_id from "updated_group" where is_changed union all select project_id from "updated_card" where is_changed)) offset 0
    ) as t where new_id is distinct from release_id and new_id is not null
      and (project_id, master_board_id) in (select project_id, master_board_id from live_board)
    on conflict (project_id, board_id) do update set release_id = excluded.release_id
  )
      select ((select count(*) from "added_board" ) + (select count(*) from "added_group" ) + (select count(*) from "added_card" ) + (select count(*) from "updated_board" where is_changed) + (select count(*) from "updated_group" where is_changed) + (select count(*) from "updated_card" where is_changed))::int as count;
