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
/** Enough that PostgreSQL plans with the indexes from the start, as it would on any database in use. */
const CARDS_BEFORE = 5000;

/** Users with sessions in a database with demo data: each connection is somebody else, as in practice. */
export async function addTenants(databaseUrl: string, secret: string, count: number): Promise<Tenants> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  try {
    const { rows: projects } = await client.query(
      "insert into projects (platform_id, name) values (1, 'Bench') returning id, platform_id",
    );
    const [project] = projects;
    const readers = await addUsers(1);
    const writers = await addUsers(project.id);
    const values = [project.id, project.platform_id, count];
    await client.query(
      `with board as (
        insert into boards (project_id, platform_id, title) values ($1, $2, 'Bench') returning id
      )
      insert into groups (project_id, platform_id, board_id, title, position)
      select $1, $2, board.id, 'Group ' || n, n from board, generate_series(1, $3::int) as n`,
      values,
    );
    await client.query(
      `insert into cards (project_id, platform_id, group_id, title, position, sort_order)
      select $1, $2, g.id, 'Card ' || n, n, n * $3 + g.position
      from groups g, generate_series(1, ${CARDS_BEFORE} / $3::int) as n where g.project_id = $1 and g.platform_id = $2`,
      values,
    );
    await client.query(
      `insert into comments (project_id, card_id, user_id, comment) select project_id, id, 3, 'A comment' from cards where project_id = $1`,
      [project.id],
    );
    await client.query('analyze');
    const { rows: places } = await client.query(
      'select group_id, min(id) as card_id from cards where project_id = $1 group by group_id order by group_id',
      [project.id],
    );
    return { readers, writers: writers.map((user, at) => ({ ...user, ...places[at] })) };
  } finally {
    await client.end();
  }

  async function addUsers(projectId: number): Promise<BenchUser[]> {
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
}
