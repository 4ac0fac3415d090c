import { sql } from 'kysely';
import type { Database } from '../../server/database/connect.ts';
import { type Db, query } from '../../server/database/query.ts';
import { signTokens } from '../faults/world.ts';

type User = { email: string; token: string };

/** The users whose calls are measured. */
export type Users = {
  /** Act in the demo project, and only read. */
  readers: User[];
  /** Act in another project, each with its own group and card to write to. */
  writers: (User & { group_id: number; card_id: number })[];
  /** Share a board of 5,000 cards in another project. */
  collectors: (User & { board_id: number })[];
};

const DEMO_PROJECT = 1;
const COLLECTORS = 4;

/** Adds users with sessions to a database with demo data: one per connection, as in practice. */
export async function addUsers({ db }: Database, count: number, { hasStatistics = true } = {}): Promise<Users> {
  await addOtherProjects(db);
  const users = {
    readers: await addMembers(db, DEMO_PROJECT, count),
    writers: await addWriters(db, count),
    collectors: await addCollectors(db),
  };
  if (hasStatistics) await query(db, sql`analyze`);
  return users;
}

/** 200 projects with 20,000 cards and 20,000 comments, so that PostgreSQL plans as on a database in use. */
async function addOtherProjects(db: Db): Promise<void> {
  await query(
    db,
    sql`
      with project as (
        insert into projects (platform_id, name) select 2, 'Project ' || n from generate_series(1, 200) as n returning id
      ), board as (
        insert into boards (project_id, platform_id, title, position)
        select project.id, 2, 'Board ' || n, n from project, generate_series(1, 4) as n returning id, project_id
      ), added as (
        insert into groups (project_id, platform_id, board_id, title, position)
        select project_id, 2, id, 'Group ' || n, n from board, generate_series(1, 5) as n returning id, project_id
      ), card as (
        insert into cards (project_id, platform_id, group_id, title, position, sort_order)
        select project_id, 2, id, 'Card ' || n, n, n from added, generate_series(1, 5) as n returning id, project_id
      )
      insert into comments (project_id, card_id, user_id, comment) select project_id, id, 3, 'A comment' from card`,
  );
}

async function addWriters(db: Db, count: number): Promise<Users['writers']> {
  const project = await addProject(db);
  const users = await addMembers(db, project, count);
  const targets = await query(
    db,
    sql<{ group_id: number; card_id: number }>`
      with board as (
        insert into boards (project_id, platform_id, title) values (${project}, 1, 'Bench') returning id
      ), added as (
        insert into groups (project_id, platform_id, board_id, title, position)
        select ${project}::int, 1, board.id, 'Group ' || n, n from board, generate_series(1, ${count}::int) as n
        returning id, position
      )
      insert into cards (project_id, platform_id, group_id, title, position, sort_order)
      select ${project}::int, 1, id, 'A card', 1, position from added returning group_id, id as card_id`,
  );
  return users.map((user, at) => ({ ...user, ...targets[at]! }));
}

/** Realistic texts: titles of about 40 characters, and descriptions of some hundred on most cards. */
async function addCollectors(db: Db): Promise<Users['collectors']> {
  const project = await addProject(db);
  const users = await addMembers(db, project, COLLECTORS);
  const [board] = await query(
    db,
    sql<{ board_id: number }>`
      with board as (
        insert into boards (project_id, platform_id, title) values (${project}, 1, 'Large') returning id
      ), added as (
        insert into groups (project_id, platform_id, board_id, title, position)
        select ${project}::int, 1, board.id, 'Group ' || n, n from board, generate_series(1, 10) as n
        returning id, position, board_id
      ), card as (
        insert into cards (project_id, platform_id, group_id, title, description, status, due_date, created_by, position, sort_order)
        select ${project}::int, 1, added.id, 'Describe the pictures of the start page, ' || n,
          case when n % 5 > 0 then '<p>' || repeat('Every picture needs a text, "in a few words", for those who can''t see it. ', n % 5) || '</p>' end,
          (array['open', 'in_progress', 'to_check', 'closed'])[n % 4 + 1],
          case when n % 3 = 0 then now() + make_interval(days => n % 60 - 30) end, 3, n, n
        from added, generate_series(1, 500) as n
      )
      select distinct board_id from added`,
  );
  return users.map((user) => ({ ...user, ...board! }));
}

async function addProject(db: Db): Promise<number> {
  const [project] = await query(
    db,
    sql<{ id: number }>`insert into projects (platform_id, name) values (1, 'Bench') returning id`,
  );
  return project!.id;
}

export async function addMembers(db: Db, project: number, count: number): Promise<User[]> {
  const rows = await query(
    db,
    sql<{ id: number; email: string }>`
      with created as (
        insert into users (name, email, password_hash, default_project_id)
        select 'Bench', gen_random_uuid() || '@example.test', password_hash, ${project}::int
        from users, generate_series(1, ${count}::int) where email = 'member@demo.test' returning id, email
      ), member as (
        insert into members (project_id, user_id, role) select ${project}::int, id, 'member' from created
      )
      select id, email from created order by id`,
  );
  const tokens = await signTokens(
    db,
    rows.map(({ id }) => id),
  );
  return rows.map(({ email }, at) => ({ email, token: tokens[at]! }));
}
