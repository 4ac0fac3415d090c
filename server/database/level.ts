import { type RawBuilder, sql } from 'kysely';
import { badRequest } from '../../shared/errors.ts';
import { type Db, query } from './query.ts';

/**
 * The level of a database says what all nodes on it can read. Nodes of the previous version may still run after an upgrade. What
 * they could not read (new types of events, new meanings of columns, longer cursors) is written only from its level on. An
 * operator raises the level once all nodes are new: `npx deckhand database finish-upgrade`.
 *
 * - Level 1: events of restored rows, of paused webhooks and of given proof, cursors that name the incarnation of the database.
 * - Level 2: releases, rollouts, and holds and pins of projects, which nodes of the version before would ignore.
 */
export const LATEST_LEVEL = 2;

/** It is no entity: a copied database has its own level. */
export const STATE_TABLE = 'database_state';

const known = new WeakMap<Db, number>();

/** The level of a database. It only rises, so the latest one is read once for each connection pool. */
export async function levelOf(db: Db): Promise<number> {
  const seen = known.get(db);
  if (seen !== undefined) return seen;
  const [state] = await query(db, sql<{ level: number }>`select level from database_state`);
  const level = state?.level ?? 0;
  if (level >= LATEST_LEVEL) known.set(db, level);
  return level;
}

/** Throws a 400 if nodes of the previous version may still run. */
export async function mustBeAtLevel(db: Db, level: number): Promise<void> {
  if ((await levelOf(db)) >= level) return;
  throw badRequest(
    'This works once the upgrade of the service is finished: an operator runs "npx deckhand database finish-upgrade".',
    'upgrade_unfinished',
  );
}

/** What the database says about itself. Webhooks are paused after a restore or a copy, until an operator resumes them. */
export async function stateOf(db: Db): Promise<{ level: number; webhooks_paused_at: Date | null }> {
  const [state] = await query(
    db,
    sql<{ level: number; webhooks_paused_at: Date | null }>`select level, webhooks_paused_at from database_state`,
  );
  return state ?? { level: 0, webhooks_paused_at: null };
}

/** What an operator still has to do, a sentence for each. */
export async function remindersOf(db: Db): Promise<string[]> {
  const { level, webhooks_paused_at: paused } = await stateOf(db);
  return [
    ...(level < LATEST_LEVEL
      ? [
          `The upgrade is not finished: the database is at level ${level}, the latest is ${LATEST_LEVEL}. Once all nodes are of this version, run npx deckhand database finish-upgrade.`,
        ]
      : []),
    ...(paused
      ? [
          `Webhooks have been paused since ${paused.toISOString()}, when this database was restored or copied. If it takes the place of the other one, run npx deckhand webhooks resume.`,
        ]
      : []),
  ];
}

/** Returns whether webhooks were paused. They go on behind the last event that each one got. */
export async function resumeWebhooks(db: Db): Promise<boolean> {
  const resumed = await query(
    db,
    sql`update database_state set webhooks_paused_at = null where webhooks_paused_at is not null returning id`,
  );
  return resumed.length > 0;
}

/** Raises the level to that of this version. Returns the level before. */
export async function finishUpgrade(db: Db): Promise<number> {
  const before = await levelOf(db);
  await raiseLevel(db, sql`true`);
  return before;
}

/** No node of an earlier version can run on an embedded database, or on one that nobody has used yet. */
export async function finishOwnUpgrade({ db, isEmbedded }: { db: Db; isEmbedded: boolean }): Promise<void> {
  // Asked first: a node may start on a server that is read-only for the moment.
  const isOwn = isEmbedded ? sql`true` : sql`not exists (select from users)`;
  const due = await query(
    db,
    sql`select where ${isOwn} and not exists (select from database_state where level >= ${sql.lit(LATEST_LEVEL)})`,
  );
  if (due.length > 0) await raiseLevel(db, isOwn);
}

async function raiseLevel(db: Db, condition: RawBuilder<unknown>): Promise<void> {
  await query(
    db,
    sql`
      insert into database_state as s (id, level) select 1, ${sql.lit(LATEST_LEVEL)} where ${condition}
      on conflict (id) do update set level = excluded.level where s.level < excluded.level`,
  );
}
