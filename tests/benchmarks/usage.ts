import { readFileSync } from 'node:fs';
import pg from 'pg';
import { onServer } from '../harness/server.ts';

const MILLISECONDS_PER_TICK = 10;

/** The CPU time of a process with all its threads; 0 if it has ended. */
export function cpuMilliseconds(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The process name is in parentheses and may contain spaces.
    const [userTicks, systemTicks] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 13);
    return (Number(userTicks) + Number(systemTicks)) * MILLISECONDS_PER_TICK;
  } catch {
    return 0;
  }
}

export function residentMegabytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) / 1024;
}

export type DatabaseUsage = {
  /** The CPU time of the server processes for this database; NaN if the server is on another machine. */
  cpuMilliseconds: () => Promise<number>;
  stop: () => Promise<unknown>;
};

/** Measures only the PostgreSQL processes of one database, without other work of the server, such as autovacuum. */
export async function watchDatabase(databaseUrl: string): Promise<DatabaseUsage> {
  const client = new pg.Client(databaseUrl);
  // After a failed run the database is dropped; this error would hide the real one.
  client.on('error', () => undefined);
  await client.connect();
  const isLocal = /^(127\.|localhost$|::1$|\[::1\]$|$)/.test(new URL(databaseUrl).hostname);
  const lastSeen = new Map<number, number>();
  return {
    cpuMilliseconds: async () => {
      if (!isLocal) return Number.NaN;
      const { rows } = await client.query(
        `select pid from pg_stat_activity
         where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`,
      );
      for (const { pid } of rows) lastSeen.set(pid, Math.max(lastSeen.get(pid) ?? 0, cpuMilliseconds(pid)));
      return [...lastSeen.values()].reduce((sum, each) => sum + each, 0);
    },
    stop: () => client.end(),
  };
}

/** `no PostgreSQL` without a server. */
export async function serverVersion(url: string | undefined): Promise<string> {
  if (!url) return 'no PostgreSQL';
  const [{ version } = { version: '' }] = await onServer<{ version: string }>(
    url,
    "select current_setting('server_version') as version",
  );
  return `PostgreSQL ${version.split(' ', 1)[0]}`;
}
