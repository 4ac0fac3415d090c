import { sql } from 'kysely';
import { pino } from 'pino';
import { createClient } from '../../client/client.ts';
import { openServices } from '../../server/api/services.ts';
import { buildApp } from '../../server/boot/app.ts';
import { connect, type Database } from '../../server/database/connect.ts';
import { oneRow, query } from '../../server/database/query.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { signTokens } from '../faults/world.ts';
import { givenSettings } from '../harness/process.ts';
import { LIMITS } from './programs.ts';

/** A master board for many projects, and a service that its superadmin calls. */

const GROUPS = 6;
const CARDS_IN_GROUP = 10;
export const COPIES = GROUPS * CARDS_IN_GROUP;
export const BOARD = { board_id: 1 };

/** Projects, a superadmin, and a master board with its groups and cards; the board's id is 1. */
export async function givenMaster(projects: number, { isEmbedded = false } = {}) {
  const settings = { ...(await givenSettings('migrated', { isEmbedded })), ...LIMITS };
  const database = await connect(readSettings(settings));
  await fill(database, projects);
  return { settings, database };
}

/** The same with a service in this process, which leaves background work to others, and a client of the superadmin. */
export async function givenTemplateService(projects: number, { isEmbedded = false } = {}) {
  const { settings, database } = await givenMaster(projects, { isEmbedded });
  const logger = pino({ level: 'silent' });
  const services = await openServices(readSettings(settings), database, settings.JWT_SECRET, logger);
  const app = await buildApp({ ...services, logger, trustProxy: false, allowedOrigins: [], isStopping: () => false });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const [token = ''] = await signTokens(database.db, [1]);
  const stop = async () => {
    await app.close();
    await database.close();
  };
  return { settings, database, url, token, client: createClient({ url, token }), stop };
}

export type TemplateService = Awaited<ReturnType<typeof givenTemplateService>>;

async function fill({ db }: Database, projects: number) {
  await query(db, sql`insert into platforms (name) values ('Bench')`);
  await query(
    db,
    sql`insert into projects (platform_id, name) select 1, 'Project ' || n from generate_series(1, ${projects}::int) n`,
  );
  await query(
    db,
    sql`insert into users (name, email, password_hash, superadmin, default_project_id) values ('Bench', 'bench@example.test', 'x', true, 1)`,
  );
  await query(db, sql`insert into boards (is_master, title) values (true, 'Master')`);
  await query(
    db,
    sql`insert into groups (is_master, board_id, title, position) select true, 1, 'Group ' || n, n from generate_series(1, ${GROUPS}::int) n`,
  );
  await query(
    db,
    sql`insert into cards (is_master, group_id, title, description, position, sort_order)
      select true, g, 'Card ' || n, repeat('Some text. ', 10), n, n from generate_series(1, ${GROUPS}::int) g, generate_series(1, ${CARDS_IN_GROUP}::int) n`,
  );
  await query(db, sql`analyze`);
}

/** Boards and groups of all projects, which the cards of a bare insert need. */
export async function addGroups({ db }: Database): Promise<void> {
  await query(
    db,
    sql`insert into boards (project_id, platform_id, title, master_board_id) select id, 1, 'Master', 1 from projects`,
  );
  await query(
    db,
    sql`insert into groups (project_id, platform_id, board_id, title, master_group_id)
      select b.project_id, 1, b.id, g.title, g.id from boards b, groups g where not b.is_master and g.is_master`,
  );
}

export const lastCardId = async ({ db }: Database): Promise<number> =>
  oneRow(await query(db, sql<{ id: number }>`select last_value::int as id from cards_id_seq`)).id;

export const countCopies = async ({ db }: Database): Promise<number> =>
  oneRow(await query(db, sql<{ count: number }>`select count(*)::int as count from cards where not is_master`)).count;
