import { existsSync, openAsBlob } from 'node:fs';
import { join, resolve } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import type { Options } from '@mikro-orm/core';
import { Migrator } from '@mikro-orm/migrations';
import { PGliteDialect } from 'kysely';
import type pg from 'pg';
import { parseDatabaseUrl } from '../runtime/databaseUrl.ts';
import type { Settings } from '../runtime/env.ts';
import type { Log } from '../runtime/log.ts';
import type { openEmbedded } from './embedded/embeddedClient.ts';
import { refuseWriteOnFullDisk } from './embedded/fullDisk.ts';
import { entities } from './entities.ts';
import { MIGRATING } from './openTransactions.ts';
import { POSITION_TABLES } from './writePosition.ts';

/** The settings of the database. */
type DatabaseSettings = Pick<Settings, 'DATABASE_URL' | 'DATABASE_POOL_SIZE' | 'PREPARED_STATEMENTS' | 'DATA_DIR'>;

type PoolOptions = {
  /** Gets the connections to a server. */
  onPool?: (pool: pg.Pool) => void;
  /** Whether statements, locks and responses have a time limit: not for migrations. */
  hasTimeouts?: boolean;
  /** Gets a line for each change of the host, if there are several. */
  log?: Log | undefined;
};

/** The options of MikroORM: the driver for these settings, the entities and the migrations. */
export async function ormOptions(settings: DatabaseSettings, pool: PoolOptions = {}): Promise<Partial<Options>> {
  return {
    ...(settings.DATABASE_URL ? await serverOptions(settings, pool) : await embeddedOptions(settings)),
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
    schemaGenerator: { skipTables: POSITION_TABLES },
    forceUtcTimezone: true,
  };
}

const embeddedOptions = async ({ DATA_DIR }: DatabaseSettings): Promise<Partial<Options>> => {
  if (isInMemory(DATA_DIR)) {
    const archive = DATA_DIR.slice(IN_MEMORY.length);
    return embeddedDriver({
      dataDir: IN_MEMORY,
      loadDataDir: archive ? await openAsBlob(archive) : await emptyCluster(),
    });
  }

  optimizeLater();
  const dataDir = embeddedDirectory(DATA_DIR);
  const loadDataDir = existsSync(dataDir) ? undefined : await emptyCluster();
  return embeddedDriver({ dataDir, loadDataDir }, { beforeWrite: () => refuseWriteOnFullDisk(dataDir) });
};

/** Optimizing the WebAssembly code of the database during the start costs more than it saves: delays it. */
export const optimizeLater = () => setFlagsFromString('--wasm-tiering-budget=1000000000');

export const embeddedDirectory = (dataDirectory: string) => join(resolve(dataDirectory), 'database');

/** A prepared cluster from PGlite: unpacking it takes one second, creating one takes five. */
async function emptyCluster(): Promise<Blob> {
  const { dataDir } = await import('@electric-sql/pglite-prepopulatedfs');
  return dataDir();
}

async function embeddedDriver(...opening: Parameters<typeof openEmbedded>): Promise<Partial<Options>> {
  const [{ PgliteDriver }, { openEmbedded }] = await Promise.all([
    import('@mikro-orm/pglite'),
    import('./embedded/embeddedClient.ts'),
  ]);
  // As a function, since the ORM would copy an object.
  const driverOptions = () => new PGliteDialect({ pglite: () => openEmbedded(...opening) });
  return { driver: PgliteDriver, dbName: opening[0].dataDir, driverOptions };
}

/** A `DATA_DIR` in memory, for tests; the path of a tar archive to load may follow. */
export const IN_MEMORY = 'memory://';
export const isInMemory = (directory: string) =>
  directory === IN_MEMORY || (directory.startsWith(IN_MEMORY) && existsSync(directory.slice(IN_MEMORY.length)));

const serverOptions = async (
  { DATABASE_URL, DATABASE_POOL_SIZE, PREPARED_STATEMENTS }: DatabaseSettings,
  { onPool, hasTimeouts = true, log }: PoolOptions,
): Promise<Partial<Options>> => {
  const [{ PostgreSqlDriver }, { DeckhandClient }, { makeHosts }, { replaceLost, tryOtherHosts }] = await Promise.all([
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
      Client: DeckhandClient,
      isPreparing: PREPARED_STATEMENTS,
      hasTimeouts,
      onPoolCreated: (pool: pg.Pool) => {
        replaceLost(pool);
        if (hosts) tryOtherHosts(pool);
        onPool?.(pool);
      },
      // Compiling a statement takes longer than running it. Not a start-up parameter: poolers refuse unknown ones.
      onConnect: (client: pg.ClientBase) => client.query('set jit = off'),
      // The default is to wait forever.
      connectionTimeoutMillis: 2_000,
      statement_timeout: hasTimeouts ? 30_000 : 0,
      lock_timeout: hasTimeouts ? 10_000 : 0,
      idle_in_transaction_session_timeout: hasTimeouts ? 30_000 : 0,
    },
  };
};
