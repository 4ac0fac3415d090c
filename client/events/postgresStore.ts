import type { EventStore } from './event.ts';

/** A connection of the package `pg`, or of another one with the same `query`. */
export type PostgresClient = {
  /** Sends a statement with its values. */
  query: (text: string, values?: unknown[]) => Promise<Record<'rows', Record<string, unknown>[]>>;
};

/** A pool of connections, such as a `Pool` of the package `pg`. */
export type PostgresPool<Client extends PostgresClient> = {
  /** Takes a connection, which `release` gives back. */
  connect: () => Promise<Client & Record<'release', Release> & Partial<Record<'on' | 'off', Listening>>>;
};
type Release = (isBroken?: boolean) => void;
type Listening = (name: 'error', listener: (error: Error) => void) => unknown;

/** How handled events are stored. */
export type PostgresStoreOptions = {
  /** Tells several receivers in one database apart. Default: `default`. */
  name?: string | undefined;
  /** How long handled events, and the versions of their rows, are kept. Default: 45 days; Deckhand keeps events for 30 by default. */
  keptDays?: number | undefined;
};

/**
 * Marks events in PostgreSQL, in one transaction with what their handler writes. So each event takes effect exactly once, whichever
 * process gets it, and events of the same row are handled one after the other. Creates the table `deckhand_marks`. The type of
 * `transaction` is that of your connections: `postgresStore<PoolClient>(pool)`.
 */
export function postgresStore<Client extends PostgresClient = PostgresClient>(
  pool: PostgresPool<Client>,
  { name = 'default', keptDays = 45 }: PostgresStoreOptions = {},
): EventStore<Client> {
  let creation: Promise<void> | undefined;
  let handled = 0;

  async function transact<Result>(work: (client: Client) => Promise<Result>): Promise<Result> {
    creation ??= inTransaction(createMarks).catch((error) => {
      creation = undefined;
      throw error;
    });
    await creation;
    return inTransaction(work);
  }

  async function inTransaction<Result>(work: (client: Client) => Promise<Result>): Promise<Result> {
    const client = await pool.connect();
    // PostgreSQL ends the session of a handler that takes longer than its time limits: such a handler is not waited for.
    let drop: (error: Error) => void = () => undefined;
    const lost = new Promise<never>((_, reject) => {
      drop = reject;
    });
    lost.catch(() => undefined);
    client.on?.('error', drop);
    let isBroken = false;
    try {
      // Read committed: marks that were written meanwhile must be seen.
      await client.query('begin isolation level read committed');
      const result = await Promise.race([work(client), lost]);
      // Fails if the handler has caught an SQL error: `commit` would roll back without an error.
      await client.query('select');
      await client.query('commit');
      return result;
    } catch (error) {
      await client.query('rollback').catch(() => {
        isBroken = true;
      });
      throw error;
    } finally {
      client.off?.('error', drop);
      client.release(isBroken);
    }
  }

  /** Waits for another transaction with the same mark. Returns whether the mark is new. */
  const add = async (client: Client, mark: string) =>
    (await client.query(`insert into ${MARKS} values ($1, $2) on conflict do nothing returning mark`, [name, mark]))
      .rows.length > 0;

  const setCursor = (client: Client, cursor: string) =>
    client.query(
      `insert into ${MARKS} (store, mark, cursor) values ($1, 'cursor', $2) on conflict (store, mark) do update set cursor = $2`,
      [name, cursor],
    );

  return {
    handleOnce: async ({ id, row, version = 0, cursor }, work) => {
      const isHandled = await transact(async (transaction) => {
        const isNew = await add(transaction, `event ${id}`);
        if (isNew && row !== undefined) {
          // Locks the row, and keeps its mark for as long as those of its events.
          const hold = `insert into ${MARKS} values ($1, $2) on conflict (store, mark) do update set marked_at = now() returning version`;
          const [known] = (await transaction.query(hold, [name, row])).rows;
          await work({ transaction, isOutdated: version > 0 && version < Number(known?.version) });
          const raise = `update ${MARKS} set version = $3 where store = $1 and mark = $2 and version < $3`;
          await transaction.query(raise, [name, row, version]);
        } else if (isNew) await work({ transaction, isOutdated: false });
        if (cursor !== undefined) await setCursor(transaction, cursor);
        return isNew;
      });
      // By itself, since a cleaning that fails or takes too long must not undo the handler.
      if (handled++ % HANDLED_BETWEEN_CLEANINGS === 0)
        await inTransaction((client) => client.query(CLEANING, [name, keptDays])).catch(() => undefined);
      return isHandled;
    },
    readCursor: () =>
      transact(async (client) => {
        const text = `select cursor from ${MARKS} where store = $1 and mark = 'cursor'`;
        return (await client.query(text, [name])).rows[0]?.cursor as string | undefined;
      }),
    writeCursor: (cursor) => transact(async (client) => void (await setCursor(client, cursor))),
  };
}

const MARKS = 'deckhand_marks';

/** Marks are events (`event 1042 2026-01-31T09:30:00.000Z`), rows with their latest version (`card 7`), and `cursor`. */
async function createMarks(client: PostgresClient): Promise<void> {
  // `create table if not exists` needs the right to create tables, also if the table is there.
  const { rows } = await client.query(`select where to_regclass('${MARKS}') is not null`);
  if (rows.length > 0) return;
  // Two processes that create the table at the same time would fail.
  await client.query(`select pg_advisory_xact_lock(hashtext('${MARKS}'))`);
  await client.query(
    `create table if not exists ${MARKS} (store text, mark text, version int not null default 0, cursor text,
      marked_at timestamptz not null default now(), primary key (store, mark))`,
  );
  await client.query(`create index if not exists ${MARKS}_age on ${MARKS} (store, marked_at) where ${AGES}`);
}

/** Marks that are removed when they are old. The index has the same condition. */
const AGES = "mark <> 'cursor'";

/** More are removed at once than are added in between. Several processes don't wait for each other. */
const HANDLED_BETWEEN_CLEANINGS = 1000;
const MOST_REMOVED = 5000;
const CLEANING = `
  delete from ${MARKS} where store = $1 and mark in (
    select mark from ${MARKS} where store = $1 and ${AGES} and marked_at < now() - $2::int * interval '1 day'
    order by marked_at limit ${MOST_REMOVED} for update skip locked)`;
