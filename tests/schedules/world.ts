import { sql } from 'kysely';
import { emptyTables } from '../../server/database/emptyTables.ts';
import { type Db, oneRow, query } from '../../server/database/query.ts';
import { signTokens } from '../faults/world.ts';

/** What the calls of a seed work on. */
export type World = {
  groups: number[];
  cards: number[];
  /** A copy of a master card in the project. */
  copies: number[];
  tags: number[];
  webhooks: number[];
  masterBoard: number;
  masterCards: number[];
  /** To sign calls of two members, and of an owner, who is a superadmin. */
  tokens: { members: [string, string]; owner: string };
};

const PROJECTS = 3;

/** Empties and fills the tables: a project with a board, two webhooks, old deleted cards, and a master board for all projects. */
export async function makeWorld(db: Db): Promise<World> {
  await emptyTables(db, { id: 0 });
  const made = oneRow(
    await query(
      db,
      sql<Omit<World, 'tokens'> & { users: [number, number, number] }>`
        with platform as (insert into platforms (name) values ('A platform') returning id
        ), project as (
          insert into projects (platform_id, name) select id, 'A project' from platform, generate_series(1, ${sql.lit(PROJECTS)}) returning id, platform_id
        ), first as (select * from project order by id limit 1
        ), person as (
          insert into users (name, email, password_hash, superadmin, default_project_id)
          select 'A user', n || '@example.test', 'none', n = 3, first.id from first, generate_series(1, 3) n returning id, superadmin, default_project_id
        ), member as (
          insert into members (project_id, user_id, role)
          select default_project_id, id, case when superadmin then 'owner' else 'member' end from person
        ), board as (
          insert into boards (project_id, platform_id, title, is_master)
          select id, platform_id, 'A board', false from first union all select null, null, 'A master board', true returning id, project_id, platform_id, is_master
        ), "group" as (
          insert into groups (project_id, platform_id, board_id, title, is_master)
          select project_id, platform_id, id, 'A group', is_master from board, generate_series(1, 2) order by is_master, id returning id, project_id, platform_id, is_master
        ), card as (
          insert into cards (project_id, platform_id, group_id, title, position, is_master)
          select project_id, platform_id, id, 'A card', n, is_master from "group", generate_series(1, 2) n returning id, is_master
        ), copy as (
          insert into cards (project_id, platform_id, group_id, title, position, master_card_id)
          select g.project_id, g.platform_id, g.id, 'A card', 3, c.id from "group" g, card c where not g.is_master and c.is_master
          order by g.id, c.id limit 1 returning id
        ), tag as (
          insert into tags (project_id, name) select id, 'Tag ' || n from first, generate_series(1, 2) n returning id
        ), old as (
          insert into cards (project_id, platform_id, title, deleted_at) select id, platform_id, 'An old card', now() - interval '90 days' from first, generate_series(1, 2)
        ), webhook as (
          insert into webhooks (project_id, url, secret, after_transaction, after_event, types)
          select id, 'https://' || kind || '.example.com/', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', '0', '0', types
          from first, (values ('all', null::text[]), ('some', '{card.created,card.moved}')) as hook (kind, types) returning id
        )
        select (select array_agg(id order by id) from "group" where not is_master) as groups,
          (select array_agg(id order by id) from card where not is_master) as cards, (select array_agg(id) from copy) as copies,
          (select array_agg(id order by id) from tag) as tags, (select array_agg(id order by id) from webhook) as webhooks,
          (select id from board where is_master) as "masterBoard", (select array_agg(id order by id) from card where is_master) as "masterCards",
          (select array_agg(id order by superadmin, id) from person) as users`,
    ),
  );
  const [one, other, owner] = (await signTokens(db, made.users)) as [string, string, string];
  // Who asks for an export has just given their password.
  await query(db, sql`update sessions set proven_at = now()`);
  return { ...made, tokens: { members: [one, other], owner } };
}
