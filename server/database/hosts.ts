import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { DatabaseServers } from '../runtime/databaseUrl.ts';
import type { Log } from '../runtime/log.ts';

/** One of several servers. */
export type Host = { host: string; port: number };

/** The chosen host is gone or read-only: another one may work. */
export class HostLost extends Error {}

/** PostgreSQL's code of a write on a read-only server. */
export const READ_ONLY_TRANSACTION = '25006';

/** Chooses the server for new connections, and remembers it until a connection to it fails. */
export type Hosts = {
  mustBeWritable: boolean;
  choose: () => Promise<Host>;
  /** A connection to this server failed, or can't write: before the next connection, all servers are tried. */
  doubt: (host: Host, why: string) => void;
};

/** Below the pool's timeout for a connection, so that the connection itself can follow. */
const LONGEST_TRIAL_MILLISECONDS = 1_500;
/** For a server that comes earlier in the list, or was used last, and has not answered yet. */
const HEAD_START_MILLISECONDS = 300;
/** All hosts failed: the next connections fail, too, instead of trying them over and over. */
const PAUSE_MILLISECONDS = 200;

export function makeHosts({ urls, mustBeWritable }: DatabaseServers, log?: Log): Hosts {
  let order = urls;
  let chosen: Host | undefined;
  let last: { name: string; whyLeft?: string } | undefined;
  let choosing: Promise<Host> | undefined;

  const choose = async () => {
    const trials = order.map((url) => tryServer(url, mustBeWritable));
    const { url, ...host } = await firstInOrder(trials);
    order = [url, ...urls.filter((other) => other !== url)];
    chosen = host;
    noteChoice(`${host.host}:${host.port}`);
    choosing = undefined;
    return host;
  };

  const noteChoice = (name: string) => {
    if (!last) log?.info(`Uses the database on ${name}.`);
    else if (last.name !== name) log?.warn(`Uses the database on ${name}, no longer on ${last.name}: ${last.whyLeft}.`);
    last = { name };
  };

  return {
    mustBeWritable,
    choose: () => {
      if (chosen) return Promise.resolve(chosen);
      if (choosing) return choosing;
      choosing = choose();
      choosing.catch(async () => {
        await sleep(PAUSE_MILLISECONDS, undefined, { ref: false });
        choosing = undefined;
      });
      return choosing;
    },
    doubt: ({ host, port }, why) => {
      if (chosen?.host !== host || chosen.port !== port) return;
      chosen = undefined;
      last = { name: `${host}:${port}`, whyLeft: why };
    },
  };
}

/** The first of the list that works; one that does not answer delays the others only by the head start. */
async function firstInOrder<Result>(trials: Promise<Result>[]): Promise<Result> {
  const headStart = sleep(HEAD_START_MILLISECONDS, undefined, { ref: false });
  const answers = trials.map((trial) => trial.catch(() => undefined));
  for (const answer of answers) {
    const result = await Promise.race([answer, headStart]);
    if (result) return result;
  }
  return Promise.any(trials).catch(({ errors }: AggregateError) => {
    const message = `no host can be used (${errors.map(({ message }) => message).join('; ')})`;
    // Without a cause, whose message the log would repeat. If a standby is up, the database is not gone, but read-only.
    const { code } = errors.find(({ code }) => code === READ_ONLY_TRANSACTION) ?? {};
    throw Object.assign(new Error(message), { code });
  });
}

/** Connects, and asks whether the server accepts writes. */
async function tryServer(connectionString: string, mustBeWritable: boolean): Promise<Host & { url: string }> {
  const client = new pg.Client({
    connectionString,
    application_name: 'deckhand',
    connectionTimeoutMillis: LONGEST_TRIAL_MILLISECONDS,
    query_timeout: LONGEST_TRIAL_MILLISECONDS,
  });
  // Without a listener, a lost connection would end the process.
  client.on('error', () => undefined);
  const { host, port } = client;
  try {
    await client.connect();
    const { rows } = await client.query('show transaction_read_only');
    if (mustBeWritable && rows[0].transaction_read_only === 'on')
      throw Object.assign(new Error('read-only'), { code: READ_ONLY_TRANSACTION });
    return { url: connectionString, host, port };
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    throw Object.assign(new Error(`${host}:${port}: ${message || code}`), { code });
  } finally {
    client.end().catch(() => undefined);
  }
}
