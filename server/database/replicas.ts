import type { Settings } from '../runtime/env.ts';
import type { Log } from '../runtime/log.ts';
import type { Database } from './connect.ts';
import type { Milestone, Replica } from './replica.ts';
import { beginEpoch, readPrimary, storePosition, type Written } from './writePosition.ts';

export type { Replica };

/** The replicas that queries read from. */
export type Replicas = {
  /** One that shows all that this user has written and seen; undefined if the primary has to serve their read. */
  choose: (userId: number, written: Written) => Promise<Replica | undefined>;
  /** After each mutation, before it is answered: a replica serves the user's reads once it has passed this point. */
  noteWrite: (userId: number) => Promise<void>;
  /** After a read on the primary: the user's next read, on a replica, must not be older than this one. */
  noteRead: (userId: number) => Promise<void>;
  /** Counts a read that a replica failed to serve, so that the primary did. */
  noteRetry: () => void;
  load: () => ReplicaLoad;
};

export type ReplicaLoad = {
  /** Without the primary, if it is in the list. The lag is undefined if it could not be measured. */
  replicas: { name: string; isLeftOut: boolean; lagSeconds: number | undefined }[];
  /** Queries by where they were served: `primary`, or the name of a replica. */
  reads: ReadonlyMap<string, number>;
  retries: number;
};

const ASK_MILLISECONDS = 100;
const ASK_PRIMARY_MILLISECONDS = 1_000;

/** Opens the replicas of the settings, and follows how far they are. Undefined without replicas. */
export async function openReplicas(
  settings: Settings,
  database: Database,
  log: Log,
): Promise<(Replicas & { close: () => Promise<void> }) | undefined> {
  const { DATABASE_REPLICA_URLS } = settings;
  if (DATABASE_REPLICA_URLS.length === 0) return undefined;
  const [{ Replica }, orm] = await Promise.all([import('./replica.ts'), database.orm()]);
  const opened = DATABASE_REPLICA_URLS.map((url) => Replica.open(url, settings, orm, log));
  const replicas = await Promise.all(opened);
  // A node starts after its migrations: replicas are used once they have replayed them.
  await beginEpoch(database.db);

  let primary: Milestone | undefined;
  const askPrimary = async () => {
    const at = performance.now();
    primary = { ...(await readPrimary(database.db)), at };
    if (primary.epoch === null) await beginEpoch(database.db);
  };
  await askPrimary();
  const timers = [
    // A primary that is gone or read-only for the moment is asked again; without it, no caller is found either.
    repeat(() => askPrimary().catch(() => undefined), ASK_PRIMARY_MILLISECONDS),
    ...replicas.map((replica) => repeat(() => replica.ask(primary), ASK_MILLISECONDS)),
  ];
  const reads = new Map<string, number>();
  let retries = 0;

  return {
    choose: async (userId, written) => {
      const replica = await chooseOf(replicas, userId, written);
      const name = replica?.name ?? 'primary';
      reads.set(name, (reads.get(name) ?? 0) + 1);
      return replica;
    },
    ...notesIn(database),
    noteRetry: () => {
      retries++;
    },
    load: () => ({
      replicas: replicas
        .filter(({ isPrimary }) => !isPrimary)
        .map(({ name, leftOut, lagSeconds }) => ({ name, isLeftOut: leftOut !== undefined, lagSeconds })),
      reads,
      retries,
    }),
    close: async () => {
      for (const timer of timers) clearInterval(timer);
      await Promise.all(replicas.map((replica) => replica.close()));
    },
  };
}

/** Skips the turns while the work still runs. */
function repeat(work: () => Promise<void>, milliseconds: number): NodeJS.Timeout {
  let isRunning = false;
  return setInterval(async () => {
    if (isRunning) return;
    isRunning = true;
    await work();
    isRunning = false;
  }, milliseconds).unref();
}

/** The same one on every node as long as it serves, so that what a user sees does not jump back and forth. */
async function chooseOf(replicas: Replica[], userId: number, written: Written): Promise<Replica | undefined> {
  const first = userId % replicas.length;
  const own = [...replicas.slice(first), ...replicas.slice(0, first)].find(({ leftOut }) => leftOut === undefined);
  return (await own?.reaches(written)) ? own : undefined;
}

/** For commands that act as a user: their reads stay on the primary, and nodes with replicas must know of their writes. */
export const replicasForCommands = ({ DATABASE_REPLICA_URLS }: Settings, database: Database): Replicas | undefined =>
  DATABASE_REPLICA_URLS.length === 0
    ? undefined
    : {
        choose: async () => undefined,
        ...notesIn(database),
        noteRetry: () => undefined,
        load: () => ({ replicas: [], reads: new Map(), retries: 0 }),
      };

const notesIn = ({ db }: Pick<Database, 'db'>): Pick<Replicas, 'noteWrite' | 'noteRead'> => ({
  /** The write is done: a lost connection is worth another attempt. If that fails, too, the caller must not be told of success. */
  noteWrite: async (userId) => {
    await storePosition(db, { userId }).catch(() => storePosition(db, { userId }));
  },
  /** The read was right, whether this is stored or not. */
  noteRead: async (userId) => {
    await storePosition(db, { userId }).catch(() => undefined);
  },
});
