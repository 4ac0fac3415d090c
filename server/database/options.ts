import { join, resolve } from 'node:path';
import type { Options } from '@mikro-orm/core';
import { Migrator } from '@mikro-orm/migrations';
import { Board } from '../entities/board.ts';
import { Card, TourDismissal } from '../entities/card.ts';
import { Comment } from '../entities/comment.ts';
import { Group } from '../entities/group.ts';
import { Platform, Project, ProjectTool } from '../entities/platform.ts';
import { Checkout, Plan, Subscription } from '../entities/subscription.ts';
import { Tag } from '../entities/tag.ts';
import { Theme, ThemeVersion } from '../entities/theme.ts';
import { Member, RecoveryCode, Session, User } from '../entities/user.ts';
import type { Settings } from '../env.ts';

/** Where the data is. */
type DatabaseSettings = Pick<Settings, 'DATABASE_URL' | 'DATABASE_POOL_SIZE' | 'DATA_DIR'>;

/** What MikroORM needs to know: the driver for these settings, the tables and the migrations. */
export async function ormOptions(settings: DatabaseSettings): Promise<Partial<Options>> {
  return {
    ...(settings.DATABASE_URL ? await serverOptions(settings) : await embeddedOptions(settings)),
    entities: [
      Platform,
      Project,
      ProjectTool,
      User,
      RecoveryCode,
      Session,
      Member,
      Board,
      Group,
      Tag,
      Card,
      TourDismissal,
      Comment,
      Plan,
      Subscription,
      Checkout,
      Theme,
      ThemeVersion,
    ],
    extensions: [Migrator],
    migrations: {
      path: join(import.meta.dirname, 'migrations'),
      snapshotName: '.snapshot',
      snapshotOnMigrate: false,
      silent: true,
    },
    ensureDatabase: false,
    forceUtcTimezone: true,
  };
}

const embeddedOptions = async ({ DATA_DIR }: DatabaseSettings): Promise<Partial<Options>> => {
  const { PgliteDriver } = await import('@mikro-orm/pglite');
  return { driver: PgliteDriver, dbName: DATA_DIR === IN_MEMORY ? IN_MEMORY : join(resolve(DATA_DIR), 'database') };
};

/** A `DATA_DIR` that keeps nothing, for tests. */
export const IN_MEMORY = 'memory://';

const serverOptions = async ({ DATABASE_URL, DATABASE_POOL_SIZE }: DatabaseSettings): Promise<Partial<Options>> => {
  const { PostgreSqlDriver } = await import('@mikro-orm/postgresql');
  return {
    driver: PostgreSqlDriver,
    clientUrl: DATABASE_URL,
    pool: { max: DATABASE_POOL_SIZE },
    driverOptions: {
      application_name: 'deckhand',
      keepAlive: true,
      // The pool would wait for ever by default.
      connectionTimeoutMillis: 5_000,
      statement_timeout: 30_000,
      lock_timeout: 10_000,
      idle_in_transaction_session_timeout: 30_000,
    },
  };
};
