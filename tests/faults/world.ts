import { sql } from 'kysely';
import { connect } from '../../server/database/connect.ts';
import { migrate } from '../../server/database/migrate.ts';
import { type Db, query } from '../../server/database/query.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { makeTokens } from '../../server/security/tokens.ts';

/** The data that the load works on. Each client has its own user and board; all share one more board. */
export type World = {
  clients: { token: string; groups: number[] }[];
  sharedGroups: number[];
  superadmin: string;
  /** A group of the master board whose cards are pushed one by one. */
  masterGroup: number;
  /** Master boards without copies, to be synced one after the other. */
  masterBoards: number[];
  /** Owners of platforms with a trial. */
  owners: string[];
};

export const CLIENTS = 50;
export const CARDS_OF_MASTER_BOARD = 6;
const PROJECTS = 12;
const GROUPS = 4;
const MASTER_BOARDS = 60;
const TRIALS = 4;

export const JWT_SECRET = 'a secret for tests that nobody else uses';

/** The settings of every node under test; `where` is the database. */
export const nodeSettings = (where: Record<string, string>) => ({
  JWT_SECRET,
  RATE_LIMIT_PER_MINUTE: '100000000',
  LOG_LEVEL: 'silent',
  TEST_CHECKOUT: 'on',
  ...where,
});

/** Creates and fills the tables, before any node runs. */
export async function makeWorld(settings: Record<string, string>): Promise<World> {
  const database = await connect(readSettings(settings));
  try {
    await migrate(database);
    return await database.db.transaction().execute((db) => fill(db));
  } finally {
    await database.close();
  }
}

async function fill(db: Db): Promise<World> {
  const ids = async (statement: ReturnType<typeof sql>) =>
    (await query(db, statement as ReturnType<typeof sql<{ id: number }>>)).map(({ id }) => id);
  const count = (amount: number) => sql`generate_series(1, ${sql.lit(amount)}) n`;

  const [platform] = await ids(sql`insert into platforms (name) values ('Load') returning id`);
  const [project] = await ids(
    sql`insert into projects (platform_id, name) select ${platform}, 'Project ' || n from ${count(PROJECTS)} returning id`,
  );
  const boards = await ids(
    sql`insert into boards (project_id, platform_id, title) select ${project}, ${platform}, 'Board ' || n
      from ${count(CLIENTS + 1)} returning id`,
  );
  const groups = await query(
    db,
    sql<{ id: number; board_id: number }>`
      insert into groups (project_id, platform_id, board_id, title)
      select ${project}, ${platform}, id, 'Group ' || n from boards, ${count(GROUPS)} returning id, board_id`,
  );
  const [sharedGroups, ...groupsOfClients] = boards.map((board) =>
    groups.filter(({ board_id }) => board_id === board).map(({ id }) => id),
  );
  const tokensOfClients = await signIn(db, Array(CLIENTS).fill(project), 'member');
  const [superadmin] = await signIn(db, [project!], 'owner');
  await query(db, sql`update users set superadmin = true where id = (select max(id) from users)`);
  // Whoever creates a webhook needs it.
  await query(db, sql`update sessions set proven_at = now() where user_id = (select max(id) from users)`);

  const [pushed, ...masterBoards] = await ids(
    sql`insert into boards (is_master, title) select true, 'Master board ' || n from ${count(MASTER_BOARDS + 1)} returning id`,
  );
  const masterGroups = await query(
    db,
    sql<{ id: number; board_id: number }>`
      insert into groups (is_master, board_id, title) select true, b.id, 'Master group ' || n from boards b, ${count(2)}
      where b.is_master returning id, board_id`,
  );
  await query(
    db,
    sql`insert into cards (is_master, group_id, title) select true, g.id, 'Master card ' || n
      from groups g, ${count(CARDS_OF_MASTER_BOARD / 2)} where g.is_master and g.board_id <> ${pushed}`,
  );

  return {
    clients: groupsOfClients.map((groups, client) => ({ token: tokensOfClients[client]!, groups })),
    sharedGroups: sharedGroups!,
    superadmin: superadmin!,
    masterGroup: masterGroups.find(({ board_id }) => board_id === pushed)!.id,
    masterBoards,
    owners: await addTrials(db),
  };
}

/** Adds trials, each on its own platform, and returns the tokens of their owners. */
async function addTrials(db: Db): Promise<string[]> {
  const projects = await query(
    db,
    sql<{ id: number }>`
      with plan as (
        insert into plans (product, plan, period, price_cents) values ('load', 'pro', 'month', 1900), ('load', 'pro', 'year', 19000)
      ), platform as (
        insert into platforms (name) select 'On trial' from generate_series(1, ${sql.lit(TRIALS)}) returning id
      ), trial as (
        insert into subscriptions (platform_id, product, status, trial_ends_at)
        select id, 'load', 'trial', now() + interval '1 day' from platform
      )
      insert into projects (platform_id, name) select id, 'On trial' from platform returning id`,
  );
  return signIn(
    db,
    projects.map(({ id }) => id),
    'owner',
  );
}

const tokens = makeTokens([JWT_SECRET], 3600);

/** Adds a user for each project, and returns their tokens. */
async function signIn(db: Db, projects: number[], role: string): Promise<string[]> {
  const users = await query(
    db,
    sql<{ id: number }>`
      with made as (
        insert into users (name, email, password_hash, default_project_id)
        select 'A user', gen_random_uuid() || '@example.test', 'none', project from unnest(${projects}::int[]) as project
        returning id, default_project_id
      )
      insert into members (project_id, user_id, role) select default_project_id, id, ${role} from made returning user_id as id`,
  );
  return signTokens(
    db,
    users.map(({ id }) => id),
  );
}

/** Opens a session for each user, and returns their tokens. */
export async function signTokens(db: Db, users: number[]): Promise<string[]> {
  const sessions = await query(
    db,
    sql<{ id: string; user_id: number }>`
      insert into sessions (user_id, expires_at)
      select id, now() + interval '1 day' from unnest(${users}::int[]) as id returning id, user_id`,
  );
  return sessions.map(({ id, user_id }) => tokens.sign({ userId: user_id, sessionId: id }));
}
