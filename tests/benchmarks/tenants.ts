import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { makeTokens } from '../../server/security/tokens.ts';

export type BenchUser = { email: string; token: string };
export type Tenants = {
  /** Act in the project of the demo data, which stays as it is. */
  readers: BenchUser[];
  /** Act in a project of their own, each with a group and a card to write to. */
  writers: (BenchUser & { group_id: number; card_id: number })[];
};

const HOUR_SECONDS = 3600;

/** Users with sessions in a database with demo data: each connection is somebody else, as in practice. */
export async function addTenants(databaseUrl: string, secret: string, count: number): Promise<Tenants> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  try {
    await addOtherProjects(client);
    const readers = await addUsers(client, secret, DEMO_PROJECT, count);
    const { rows: projects } = await client.query(
      "insert into projects (platform_id, name) values (1, 'Bench') returning id",
    );
    const writers = await addUsers(client, secret, projects[0].id, count);
    const { rows: places } = await client.query(
      `with board as (
        insert into boards (project_id, platform_id, title) values ($1, 1, 'Bench') returning id
      ), added as (
        insert into groups (project_id, platform_id, board_id, title, position)
        select $1, 1, board.id, 'Group ' || n, n from board, generate_series(1, $2::int) as n returning id, position
      )
      insert into cards (project_id, platform_id, group_id, title, position, sort_order)
      select $1, 1, id, 'A card', 1, position from added returning group_id, id as card_id`,
      [projects[0].id, count],
    );
    await client.query('analyze');
    return { readers, writers: writers.map((user, at) => ({ ...user, ...places[at] })) };
  } finally {
    await client.end();
  }
}

const DEMO_PROJECT = 1;

/** 200 projects with 20,000 cards and 20,000 comments: PostgreSQL plans as on any database in use. */
async function addOtherProjects(client: pg.Client): Promise<void> {
  const { rows } = await client.query(
    "insert into projects (platform_id, name) select 2, 'Project ' || n from generate_series(1, 200) as n returning id",
  );
  await client.query(
    `with board as (
      insert into boards (project_id, platform_id, title, position)
      select project_id, 2, 'Board ' || n, n from unnest($1::int[]) as project_id, generate_series(1, 4) as n
      returning id, project_id
    ), added as (
      insert into groups (project_id, platform_id, board_id, title, position)
      select project_id, 2, id, 'Group ' || n, n from board, generate_series(1, 5) as n returning id, project_id
    ), card as (
      insert into cards (project_id, platform_id, group_id, title, position, sort_order)
      select project_id, 2, id, 'Card ' || n, n, n from added, generate_series(1, 5) as n returning id, project_id
    )
    insert into comments (project_id, card_id, user_id, comment) select project_id, id, 3, 'A comment' from card`,
    [rows.map(({ id }) => id)],
  );
}

async function addUsers(client: pg.Client, secret: string, projectId: number, count: number): Promise<BenchUser[]> {
  const tokens = makeTokens([secret], HOUR_SECONDS);
  const { rows } = await client.query(
    `with created as (
      insert into users (name, email, password_hash, default_project_id)
      select 'Bench', $1 || n || '@example.test', password_hash, $2 from users, generate_series(1, $3::int) as n
      where email = 'member@demo.test' returning id, email
    ), member as (
      insert into members (project_id, user_id, role) select $2, id, 'member' from created
    ), session as (
      insert into sessions (user_id, expires_at) select id, now() + interval '1 hour' from created returning id, user_id
    )
    select session.user_id, session.id, created.email from session join created on created.id = session.user_id`,
    [randomUUID(), projectId, count],
  );
  return rows.map(({ user_id, id, email }) => ({ email, token: tokens.sign({ userId: user_id, sessionId: id }) }));
}
