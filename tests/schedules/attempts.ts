import { setTimeout as pause } from 'node:timers/promises';
import { toFailure } from '../../shared/errors.ts';
import type { Random } from '../harness/random.ts';
import type { Call } from '../history/history.ts';
import type { Node } from './nodes.ts';
import type { Pool, Sending } from './operations.ts';
import { addToPool, type Begun, callOf, type Ended } from './record.ts';
import type { Schedule } from './schedule.ts';
import { virtualNow } from './time.ts';

/** The calls of a seed. */
export type Play = {
  nodes: Map<string, Node>;
  schedule: Schedule;
  pool: Pool;
  called: Called[];
  /** Each attempt, as the check of histories reads it. */
  calls: Call[];
  /** Counts the beginnings and ends of attempts: virtual time stands still for many of them. */
  moment: number;
};

/** Makes one call after the other. */
export type Client = {
  name: string;
  random: Random;
  owner: string;
  member: string;
  /** The last version of each row that it has seen. */
  versions: Map<string, string>;
};

/** A call with all of its attempts. */
export type Called = {
  path: string;
  mark: string;
  key: string | undefined;
  results: any[];
  /** Attempts that were refused, those of which nobody knows whether they were executed, and those that were. */
  refused: string[];
  unknown: number;
  executed: number;
};

const MOST_ATTEMPTS = 6;

/** Repeats a call until it is answered, or may not be repeated; returns its first answer. */
export async function callUntilSettled(play: Play, client: Client, sending: Sending, mark: string): Promise<any> {
  const { random } = client;
  const key = sending.isKeyed ? `k-${client.name}-${mark}` : undefined;
  const called: Called = { path: sending.path, mark, key, results: [], refused: [], unknown: 0, executed: 0 };
  play.called.push(called);
  const begun = virtualNow();
  const attempt = (node: string) => callOnce(play, client, sending, called, node, begun);
  const both = [...play.nodes.keys()];
  for (let count = 0; count < MOST_ATTEMPTS; count++) {
    await Promise.all(key && random.isTrue(0.4) ? both.map(attempt) : [attempt(random.pick(both))]);
    const isBusy = called.refused.includes('idempotency_key_running');
    if (called.results.length > 0 || !key || (called.refused.length > 0 && !isBusy)) break;
    called.refused = [];
    // The longest one is longer than the hold of a key.
    await pause(1000 * random.pick([1, 3, 31]));
  }
  return called.results[0];
}

async function callOnce(
  play: Play,
  client: Client,
  sending: Sending,
  called: Called,
  node: string,
  firstBegun: number,
): Promise<void> {
  const { schedule, nodes, calls, pool } = play;
  const { path, input, who } = sending;
  const life = schedule.lives.get(node)!;
  if (life.isDead) return;
  const since = virtualNow();
  const begun: Begun = { id: `request ${++play.moment}`, session: client.name, begun: play.moment, key: called.key };
  const token = client[who ?? 'member'];
  // A changed webhook ends its deliveries.
  const endChange = path === 'webhooks.rotateSecret' ? schedule.beginChange() : undefined;
  const end = await nodes
    .get(node)!
    .call(life, { id: begun.id, task: client.name, token, path, input, key: called.key })
    .then((answer): Ended => ({ outcome: 'done', ...(answer as { data: any; isReplayed: boolean }) }))
    .catch((error) => {
      const { status, reason } = toFailure(error);
      const isUnknown = life.isDead || status >= 500;
      if (isUnknown) called.unknown++;
      else called.refused.push(reason);
      if (isUnknown && !schedule.isTroubled(node, since))
        schedule.faults.add(`${path} failed without a cause: ${error}`);
      if (reason === 'idempotency_key_running') schedule.labels.add('key held by another call');
      return { outcome: isUnknown ? 'unknown' : 'refused', status } as Ended;
    });
  endChange?.();
  const call = callOf(sending, begun, ++play.moment, end);
  calls.push(call);
  addToPool(pool, call);
  if (end.outcome !== 'done') return;
  for (const { row } of call.shown) client.versions.set(row, end.data.version);
  called.results.push(end.data);
  if (end.isReplayed) schedule.labels.add('key replayed');
  else called.executed++;
  if (!end.isReplayed && path === 'masterBoards.sync') noteTakeover(play, called, firstBegun);
}

/** Another attempt may only execute a call again after the first was lost, or could not renew its hold in time. */
function noteTakeover({ schedule, nodes }: Play, { path, executed, unknown }: Called, begun: number): void {
  if (executed > 1 && ![...nodes.keys()].some((node) => schedule.isTroubled(node, begun)))
    schedule.faults.add(`Without a cause: ${path} is executed again.`);
  else if (executed > 1 || unknown > 0) schedule.labels.add('key taken over');
}
