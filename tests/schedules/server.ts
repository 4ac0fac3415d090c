import pg from 'pg';
import { givenCluster } from '../faults/privateServer.ts';
import { givenServerDatabase, onServer } from '../harness/server.ts';

/** A server whose `now()` is virtual, and what looks at it and steers it. */
export type VirtualServer = NonNullable<Awaited<ReturnType<typeof givenVirtualServer>>>;

/** Private, since the end of the feed depends on all transactions of a server. Undefined if no server is installed. */
export async function givenVirtualServer() {
  const cluster = await givenCluster();
  if (!cluster) return undefined;
  for (const setting of SETTINGS) await onServer(cluster.url, `alter system set ${setting}`);
  await onServer(cluster.url, 'select pg_reload_conf()');
  const { url } = await givenServerDatabase(cluster.url, 'schedules');
  const control = new pg.Client(url);
  await control.connect();
  await control.query(VIRTUAL_NOW);
  const find = async (name: string, text: string, pids: number[]) =>
    new Set((await control.query({ name, text, values: [pids] })).rows.map(({ pid }) => pid as number));
  return {
    url,
    /** Moves the server's clock forward. */
    setNow: async (milliseconds: number) => {
      await control.query({ name: 'set', text: SET_NOW, values: [milliseconds * 1000] });
    },
    /** Which of these processes wait for a lock of another one. */
    findWaiting: (pids: number[]) => find('waiting', FIND_WAITING, pids),
    /** Which of these connections are in a transaction. */
    findOpen: (pids: number[]) => find('open', FIND_OPEN, pids),
    /** Ends processes, and waits until their locks are free. */
    terminate: async (pids: number[]) => {
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
