import { join } from 'node:path';
import { MikroORM, type Options } from '@mikro-orm/core';
import { Migrator } from '@mikro-orm/migrations';
import type pg from 'pg';
import { parseDatabaseUrl } from '../runtime/databaseUrl.ts';
import type { Settings } from '../runtime/env.ts';
import type { Log } from '../runtime/log.ts';
import { embeddedDialect } from './embedded/embeddedDialect.ts';
import { entities } from './entities.ts';
import { INCARNATIONS } from './incarnation.ts';
import { STATE_TABLE } from './level.ts';
import { MIGRATING } from './openTransactions.ts';
import type { DropIdle } from './pool.ts';
import type { Db } from './query.ts';
import { POSITION_TABLES } from './writePosition.ts';

/** They hold no data of the service: a copy leaves them out. */
export const TABLES_WITHOUT_ENTITY = [...POSITION_TABLES, STATE_TABLE, INCARNATIONS];

/** The settings of the database. */
type DatabaseSettings = Pick<Settings, 'DATABASE_URL' | 'DATABASE_POOL_SIZE' | 'PREPARED_STATEMENTS' | 'DATA_DIR'>;

type OrmOptions = PoolOptions & {
  /** The embedded database, if it is open: the ORM uses the same connection. */
  db?: Db;
};

type PoolOptions = {
  /** Gets the connections to a server. */
  onPool?: (pool: pg.Pool, dropIdle: DropIdle) => void;
  /** Whether statements, locks and responses have a time limit: not for migrations. */
  hasTimeouts?: boolean;
  /** Gets a line for each change of the host, if there are several. */
  log?: Log | undefined;
};

export const openOrm = async (settings: DatabaseSettings, options?: OrmOptions): Promise<MikroORM> =>
  MikroORM.init(await ormOptions(settings, options));

/** The options of MikroORM: the driver for these settings, the entities and the migrations. */
export async function ormOptions(settings: DatabaseSettings, options: OrmOptions = {}): Promise<Partial<Options>> {
  return {
    ...(settings.DATABASE_URL ? await serverOptions(settings, options) : await embeddedOptions(settings, options.db)),
    entities,
    extensions: [Migrator],
    migrations: {
      path: join(import.meta.dirname, 'migrations'),
      snapshot: false,
      silent: true,
      // Lets `migrate` pass its transaction. The embedded database has one connection, which a migration in steps needs.
      allOrNothing: settings.DATABASE_URL !== undefined,
    },
    ensureDatabase: false,
    schemaGenerator: { skipTables: TABLES_WITHOUT_ENTITY },
    forceUtcTimezone: true,
  };
}

const embeddedOptions = async ({ DATA_DIR }: DatabaseSettings, db: Db | undefined): Promise<Partial<Options>> => {
  const { PgliteDriver } = await import('@mikro-orm/pglite');
  const opened = db ?? (await embeddedDialect(DATA_DIR));
  // As a function, since the ORM would copy an object.
  return { driver: PgliteDriver, dbName: DATA_DIR, driverOptions: () => opened };
};

const NO_JIT = 'set jit = off';
/** The package sends no 0 when it connects, so that those of a role or a database would count. */
const NO_TIMEOUTS = 'set statement_timeout = 0; set lock_timeout = 0; set idle_in_transaction_session_timeout = 0';

const serverOptions = async (
  { DATABASE_URL, DATABASE_POOL_SIZE, PREPARED_STATEMENTS }: DatabaseSettings,
  { onPool, hasTimeouts = true, log }: PoolOptions,
): Promise<Partial<Options>> => {
  const [{ PostgreSqlDriver }, { ServerClient }, { makeHosts }, { replaceLost, tryOtherHosts }] = await Promise.all([
    import('@mikro-orm/postgresql'),
    import('./client.ts'),
    import('./hosts.ts'),
    import('./pool.ts'),
  ]);
  const servers = parseDatabaseUrl(DATABASE_URL!);
  const [url] = servers.urls;
  const hosts = servers.mustBeWritable || servers.urls.length > 1 ? makeHosts(servers, log) : undefined;
  return {
    driver: PostgreSqlDriver,
    clientUrl: url,
    pool: { max: DATABASE_POOL_SIZE },
    driverOptions: {
      // The full URL, so that its query parameters, such as `sslmode=require`, apply too.
      connectionString: url,
      hosts,
      application_name: hasTimeouts ? 'deckhand' : MIGRATING,
      keepAlive: true,
      Client: ServerClient,
      isPreparing: PREPARED_STATEMENTS,
      hasTimeouts,
      onPoolCreated: (pool: pg.Pool) => {
        const dropIdle = replaceLost(pool);
        if (hosts) tryOtherHosts(pool);
        onPool?.(pool, dropIdle);
      },
      // Compiling a statement takes longer than running it. Not a start-up parameter: poolers refuse unknown ones.
      onConnect: (client: pg.ClientBase) => client.query(hasTimeouts ? NO_JIT : `${NO_JIT}; ${NO_TIMEOUTS}`),
      // The default is to wait forever.
      connectionTimeoutMillis: 2_000,
      statement_timeout: hasTimeouts ? 30_000 : 0,
      lock_timeout: hasTimeouts ? 10_000 : 0,
      idle_in_transaction_session_timeout: hasTimeouts ? 30_000 : 0,
    },
  };
};
