import pg from 'pg';
import { givenCluster } from '../faults/privateServer.ts';

/** A server whose `now()` is virtual, and connections to look at it and to steer it. */
export type VirtualServer = {
  url: string;
  /** Moves the server's clock forward. */
  setNow: (milliseconds: number) => Promise<void>;
  /** Which of these processes wait for a lock of another one. */
  findWaiting: (pids: number[]) => Promise<Set<number>>;
  /** Which of these connections are in a transaction. */
  findOpen: (pids: number[]) => Promise<Set<number>>;
  /** Ends processes, and waits until their locks are free. */
  terminate: (pids: number[]) => Promise<void>;
  vacuum: () => Promise<void>;
  remove: () => Promise<void>;
};

const DATABASE = 'schedules';

/** Private, since the end of the feed depends on all transactions of a server. Undefined if no server is installed. */
export async function givenVirtualServer(): Promise<VirtualServer | undefined> {
  const cluster = await givenCluster();
  if (!cluster) return undefined;
  const first = await connect(cluster.url);
  for (const setting of SETTINGS) await first.query(`alter system set ${setting}`);
  await first.query('select pg_reload_conf()');
  await first.query(`create database ${DATABASE}`);
  await first.end();
  const url = Object.assign(new URL(cluster.url), { pathname: `/${DATABASE}` }).href;
  const control = await connect(url);
  await control.query(VIRTUAL_NOW);
  return {
    url,
    setNow: async (milliseconds) => {
      await control.query({ name: 'set', text: SET_NOW, values: [milliseconds * 1000] });
    },
    findWaiting: async (pids) => {
      const { rows } = await control.query({ name: 'find', text: FIND_WAITING, values: [pids] });
      return new Set(rows.map(({ pid }) => pid));
    },
    findOpen: async (pids) => {
      const { rows } = await control.query({ name: 'open', text: FIND_OPEN, values: [pids] });
      return new Set(rows.map(({ pid }) => pid));
    },
    terminate: async (pids) => {
      await control.query('select pg_terminate_backend(pid, 5000) from pg_stat_activity where pid = any($1)', [pids]);
    },
    vacuum: async () => {
      await control.query('vacuum analyze');
    },
    remove: async () => {
      await control.end();
      await cluster.remove();
    },
  };
}

/** No background work. In a deadlock, the statement that closes the cycle fails: others were checked before. */
const SETTINGS = ['autovacuum = off', 'fsync = off', `checkpoint_timeout = '1d'`, `deadlock_timeout = '1ms'`];

/**
 * Each transaction has a time of its own, a millisecond after the one before. Built-in functions are called by number, so only the
 * planner sees the new text of `now()`: it puts the call of another function there, in defaults and triggers, too.
 */
const VIRTUAL_NOW = `
  create schema virtual;
  create sequence virtual.microseconds increment 1000 cache 1;
  create function virtual.now() returns timestamptz language plpgsql stable parallel restricted as $$
    declare own text := current_setting('virtual.now', true);
    begin
      if coalesce(own, '') = '' then
        if current_setting('transaction_read_only')::boolean then select last_value into own from virtual.microseconds;
        else own := nextval('virtual.microseconds'); end if;
        perform set_config('virtual.now', own, true);
      end if;
      return timestamptz 'epoch' + own::bigint * interval '1 microsecond';
    end $$;
  create or replace function pg_catalog.now() returns timestamptz language sql stable parallel restricted as 'select virtual.now()'`;

const SET_NOW = `select setval('virtual.microseconds', greatest(last_value, $1::bigint)) from virtual.microseconds`;
const FIND_OPEN = `select pid from pg_stat_activity where pid = any($1::int[]) and xact_start is not null`;
const FIND_WAITING = `select pid from unnest($1::int[]) as pid where cardinality(pg_blocking_pids(pid)) > 0`;

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  await client.connect();
  return client;
}
