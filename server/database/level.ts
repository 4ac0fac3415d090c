import { type RawBuilder, sql } from 'kysely';
import { badRequest } from '../../shared/errors.ts';
import { startFailure } from '../runtime/startFailure.ts';
import { VERSION } from '../runtime/version.ts';
import { type Db, query, withShortTimeout } from './query.ts';

/**
 * The level of a database says what all nodes on it can read. Nodes of the previous version may still run after an upgrade. What
 * they could not read (new types of events, new meanings of columns, longer cursors) is written only from its level on. An
 * operator raises the level once all nodes are new: `npx deckhand database finish-upgrade`.
 *
 * - Level 1: events of restored rows, of paused webhooks and of given proof, cursors that name the incarnation of the database.
 * - Level 2: releases, rollouts, and holds and pins of projects, which nodes of the version before would ignore.
 * - Level 3: persons without a password, sessions of single sign-on, keys of identity rules, and erased persons.
 */
export const LATEST_LEVEL = 3;

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

/** Throws if the upgrade to a later version is finished: what that writes, this version can't read. */
export async function mustKnowLevel(db: Db): Promise<void> {
  const text = await laterVersion(db);
  if (text) throw startFailure(`${text} Start that version, or restore a backup from before the upgrade.`);
}

/** Which version the database needs, as a sentence, if it is later than this one. */
export async function laterVersion(db: Db): Promise<string | undefined> {
  const [table] = await query(db, sql<{ name: string | null }>`select to_regclass(${STATE_TABLE}) as name`);
  if (!table?.name) return undefined;
  // As JSON: the column is new.
  const [state] = await query(
    db,
    sql<{
      level: number;
      version: string | null;
    }>`select level, to_jsonb(s) ->> 'version' as version from database_state s`,
  );
  if (!state || state.level <= LATEST_LEVEL) return undefined;
  const needed = state.version === null ? 'a later version' : `version ${state.version} or later`;
  return `The database needs ${needed} of Deckhand: it is at level ${state.level}, and this version, ${VERSION}, knows only level ${LATEST_LEVEL}.`;
}

/** Throws a 400 if nodes of the previous version may still run. */
export async function mustBeAtLevel(db: Db, level: number): Promise<void> {
  if ((await levelOf(db)) >= level) return;
  throw badRequest(
    'This works once the upgrade of the service is finished: an operator runs "npx deckhand database finish-upgrade".',
    'upgrade_unfinished',
  );
}

/** What the database says about itself. Webhooks are paused and mails held after a restore or a copy, until an operator resumes them. */
export async function stateOf(db: Db): Promise<DatabaseState> {
  const [state] = await query(
    db,
    withShortTimeout(sql<DatabaseState>`select level, webhooks_paused_at, erasures_due_at from database_state`),
  );
  return state ?? { level: 0, webhooks_paused_at: null, erasures_due_at: null };
}
type DatabaseState = { level: number; webhooks_paused_at: Date | null; erasures_due_at: Date | null };

/** Whether a restored database may have persons who were erased since: nobody is served until an operator has told it. */
export const areErasuresDue = sql<boolean>`exists (select from database_state where erasures_due_at is not null)`;

export async function mayHaveErased(db: Db): Promise<boolean> {
  return (await query(db, sql`select where ${areErasuresDue}`)).length > 0;
}

/** All of them are erased here, too, or there are none. Returns whether it was due. */
export async function endErasuresDue(db: Db): Promise<boolean> {
  const ended = await query(
    db,
    sql`update database_state set erasures_due_at = null where erasures_due_at is not null returning id`,
  );
  return ended.length > 0;
}

export const ERASURES_DUE =
  'This database was restored or copied, and may have persons who were erased since: no call is served. Run npx deckhand erasures apply FILE with the file of erasures or, if nobody was erased, npx deckhand erasures none.';

/** What an operator still has to do, a sentence for each. */
export async function remindersOf(db: Db): Promise<string[]> {
  const { level, webhooks_paused_at: paused, erasures_due_at: due } = await stateOf(db);
  return [
    ...(level < LATEST_LEVEL
      ? [
          `The upgrade is not finished: the database is at level ${level}, the latest is ${LATEST_LEVEL}. Once all nodes are of this version, run npx deckhand database finish-upgrade.`,
        ]
      : []),
    ...(due ? [ERASURES_DUE] : []),
    ...(paused
      ? [
          `Webhooks have been paused since ${paused.toISOString()}, when this database was restored or copied, and mails are held. If it takes the place of the other one, run npx deckhand webhooks resume.`,
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
      insert into database_state as s (id, level, version) select 1, ${sql.lit(LATEST_LEVEL)}, ${VERSION} where ${condition}
      on conflict (id) do update set level = excluded.level, version = excluded.version where s.level < excluded.level`,
  );
}
