import { sql } from 'kysely';
import { pino } from 'pino';
import { createClient } from '../../client/client.ts';
import { openServices } from '../../server/api/services.ts';
import { buildApp } from '../../server/boot/app.ts';
import { connect, type Database } from '../../server/database/connect.ts';
import { IN_MEMORY } from '../../server/database/embedded/location.ts';
import { migrate } from '../../server/database/migrate.ts';
import { query, transact } from '../../server/database/query.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { findTestServer } from '../harness/server.ts';
import { givenBenchDatabase } from './database.ts';

/**
 * Measures syncing and pushing templates: `npm run bench:templates`, or with `-- embedded` without a server. Prints each figure
 * with its limit.
 */

export const SECRET = 'a secret for benchmarks that nobody else uses';
const GROUPS = 6;
const CARDS_IN_GROUP = 10;

const { url: server } = process.argv[2] === 'embedded' ? {} : await findTestServer();
if (process.argv[1] === import.meta.filename) await reportAll();

async function reportAll() {
  if (server) {
    console.log('On a PostgreSQL server:');
    // First, while the memory of the process has not grown yet.
    const alone = await onFreshDatabase((database) => measureSync(database, 5000, { isListing: false }));
    const bare = await onFreshDatabase((database) => bareInsert(database, 5000));
    const first = await onFreshDatabase((database) => measureSync(database, 5000));
    report('bare INSERT … SELECT of 300,000 cards', `${bare} ms`);
    report(
      'sync of 5,000 projects × 60 cards',
      `${first.sync} ms, ${(first.sync / bare).toFixed(2)} times the bare insert`,
      '1.3 times',
    );
    report('the same again, nothing new', `${first.again} ms, ${first.idsUsed} ids used`, '1,000 ms, 0 ids');
    report(
      'the same without other requests',
      `${alone.sync} ms, ${(alone.sync / bare).toFixed(2)} times the bare insert`,
      '1.3 times',
    );
    report('growth of Node memory', `${alone.memoryMegabytes} MB`, '50 MB');
    report('boards/list meanwhile, p99', `${first.p99} ms of ${first.requests} requests`, '500 ms');
    const large = await onFreshDatabase((database) => measureSync(database, 16_667));
    report(
      'sync of 1,000,020 cards',
      `${large.sync} ms, ${(large.sync / first.sync / (16_667 / 5000)).toFixed(2)} times linear`,
      'about 1',
    );
  } else {
    console.log('SKIPPED: no PostgreSQL server is reachable.');
  }

  console.log('On the embedded database:');
  const embedded = await open(readSettings({ DATA_DIR: IN_MEMORY, JWT_SECRET: SECRET }));
  const figures = await measureSync(embedded, 1000);
  report('sync of 1,000 projects × 60 cards', `${figures.sync} ms`);
  report('boards/list meanwhile, p99', `${figures.p99} ms of ${figures.requests} requests`, '1,000 ms');
  process.exit();
}

export function report(what: string, figure: string, limit?: string) {
  console.log(`  ${what}: ${figure}${limit ? ` (at most ${limit})` : ''}`);
}

export async function onFreshDatabase<Result>(work: (database: Database) => Promise<Result>): Promise<Result> {
  const { settings, remove } = await givenBenchDatabase({ isEmbedded: false });
  const database = await open(readSettings(settings));
  try {
    return await work(database);
  } finally {
    await database.close();
    await remove();
  }
}

async function open(settings: ReturnType<typeof readSettings>): Promise<Database> {
  const database = await connect(settings);
  await migrate(database);
  return database;
}

/** Projects, a superadmin, and a master board with its groups and cards; the board's id is 1. */
export async function fill({ db }: Database, projects: number) {
  await query(db, sql`insert into platforms (name) values ('Bench')`);
  await query(
    db,
    sql`insert into projects (platform_id, name) select 1, 'Project ' || n from generate_series(1, ${projects}::int) n`,
  );
  await query(
    db,
    sql`insert into users (name, email, password_hash, superadmin, default_project_id) values ('Bench', 'bench@example.test', 'x', true, 1)`,
  );
  await query(db, sql`insert into sessions (user_id, expires_at) values (1, now() + interval '1 day')`);
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

export async function bareInsert(database: Database, projects: number): Promise<number> {
  await fill(database, projects);
  const db = database.db;
  await query(
    db,
    sql`insert into boards (project_id, platform_id, title, master_board_id) select id, 1, 'Master', 1 from projects`,
  );
  await query(
    db,
    sql`insert into groups (project_id, platform_id, board_id, title, master_group_id)
      select b.project_id, 1, b.id, g.title, g.id from boards b, groups g where not b.is_master and g.is_master`,
  );
  return milliseconds(() =>
    database.withoutTimeouts(({ db }) =>
      transact(db, async (db) => {
        // The same planner settings as a sync: without them the bare statement takes several times as long.
        await query(db, sql`select set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true)`);
        await query(
          db,
          sql`insert into cards (project_id, platform_id, master_card_id, group_id, title, description, position, sort_order)
        select g.project_id, 1, c.id, g.id, c.title, c.description, c.position, c.sort_order
        from groups g join cards c on c.group_id = g.master_group_id and c.is_master where not g.is_master`,
        );
      }),
    ),
  );
}

/** A service on this database, and a client of its superadmin. */
export async function openClient(database: Database) {
  const logger = pino({ level: 'silent' });
  const settings = readSettings({ RATE_LIMIT_PER_MINUTE: '100000000', JWT_SECRET: SECRET });
  const services = await openServices(settings, database, SECRET, logger);
  const app = await buildApp({ ...services, logger, trustProxy: false, allowedOrigins: [], isStopping: () => false });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const [session] = await query(database.db, sql<{ id: string }>`select id from sessions`);
  const client = createClient({ url, token: services.tokens.sign({ userId: 1, sessionId: session!.id }) });
  return { client, close: () => app.close() };
}

export async function measureSync(database: Database, projects: number, { isListing = true } = {}) {
  await fill(database, projects);
  const { client, close } = await openClient(database);

  const before = memory();
  let most = before;
  const watch = setInterval(() => {
    most = Math.max(most, memory());
  }, 20);
  let isRunning = true;
  const latencies: number[] = [];
  const listing = (async () => {
    while (isListing && isRunning) latencies.push(await milliseconds(() => client.boards.list.query()));
  })();

  const syncTime = await milliseconds(() => client.masterBoards.sync.mutate({ board_id: 1 }));
  isRunning = false;
  await listing;
  clearInterval(watch);

  const lastId = async () =>
    (await query(database.db, sql<{ id: number }>`select last_value::int as id from cards_id_seq`))[0]!.id;
  const idBefore = await lastId();
  const again = await milliseconds(() => client.masterBoards.sync.mutate({ board_id: 1 }));
  const [count] = await query(
    database.db,
    sql<{ count: number }>`select count(*)::int as count from cards where not is_master`,
  );
  if (count!.count !== projects * GROUPS * CARDS_IN_GROUP) throw new Error(`There are ${count!.count} copies.`);
  await close();

  latencies.sort((a, b) => a - b);
  return {
    sync: syncTime,
    again,
    idsUsed: (await lastId()) - idBefore,
    memoryMegabytes: Math.round(most - before),
    p99: latencies[Math.floor(latencies.length * 0.99)]!,
    requests: latencies.length,
  };
}

function memory(): number {
  return process.memoryUsage().rss / 1024 / 1024;
}

export async function milliseconds(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return Math.round(performance.now() - begun);
}
