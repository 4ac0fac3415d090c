import { sql } from 'kysely';
import { connect } from '../../server/database/connect.ts';
import { type Db, query } from '../../server/database/query.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { makeTokens, type Tokens } from '../../server/security/tokens.ts';

type BenchUser = { email: string; token: string };
export type Tenants = {
  /** Act in the demo project, and only read. */
  readers: BenchUser[];
  /** Act in another project, each with its own group and card to write to. */
  writers: (BenchUser & { group_id: number; card_id: number })[];
  /** Share a board of 5,000 cards in another project. */
  collectors: (BenchUser & { board_id: number })[];
};

const DEMO_PROJECT = 1;
const HOUR_SECONDS = 3600;
const COLLECTORS = 4;

/** Adds users with sessions to a database with demo data: one per connection, as in practice. */
export async function addTenants(
  settings: { JWT_SECRET: string },
  count: number,
  { hasStatistics = true } = {},
): Promise<Tenants> {
  const database = await connect(readSettings(settings));
  const tokens = makeTokens([settings.JWT_SECRET], HOUR_SECONDS);
  const { db } = database;
  try {
    await addOtherProjects(db);
    const readers = await addUsers(db, tokens, DEMO_PROJECT, count);
    const writers = await addWriters(db, tokens, count);
    const collectors = await addCollectors(db, tokens);
    if (hasStatistics) await query(db, sql`analyze`);
    return { readers, writers, collectors };
  } finally {
    await database.close();
  }
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

async function addWriters(db: Db, tokens: Tokens, count: number): Promise<Tenants['writers']> {
  const project = await addProject(db);
  const users = await addUsers(db, tokens, project, count);
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
async function addCollectors(db: Db, tokens: Tokens): Promise<Tenants['collectors']> {
  const project = await addProject(db);
  const users = await addUsers(db, tokens, project, COLLECTORS);
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

export async function addUsers(db: Db, tokens: Tokens, project: number, count: number): Promise<BenchUser[]> {
  const rows = await query(
    db,
    sql<{ user_id: number; session_id: string; email: string }>`
      with created as (
        insert into users (name, email, password_hash, default_project_id)
        select 'Bench', gen_random_uuid() || '@example.test', password_hash, ${project}::int
        from users, generate_series(1, ${count}::int) where email = 'member@demo.test' returning id, email
      ), member as (
        insert into members (project_id, user_id, role) select ${project}::int, id, 'member' from created
      ), session as (
        insert into sessions (user_id, expires_at) select id, now() + interval '1 hour' from created returning id, user_id
      )
      select created.id as user_id, session.id as session_id, created.email
      from session join created on created.id = session.user_id`,
  );
  return rows.map(({ user_id: userId, session_id: sessionId, email }) => ({
    email,
    token: tokens.sign({ userId, sessionId }),
  }));
}
