import { setTimeout as pause } from 'node:timers/promises';
import { toFailure } from '../../shared/errors.ts';
import { makeRandom, type Random } from '../harness/random.ts';
import type { Node, NodeCall } from './nodes.ts';
import type { Schedule } from './schedule.ts';
import { makeLife, tasks, virtualNow } from './time.ts';
import type { World } from './world.ts';

/** A call of a client, with all of its attempts. */
export type Called = {
  path: string;
  /** A text that no other call writes. */
  mark: string;
  key: string | undefined;
  results: any[];
  /** Attempts that were refused, those of which nobody knows whether they were executed, and those that were. */
  refused: string[];
  unknown: number;
  executed: number;
};

type Operation = {
  path: string;
  input: (mark: string, world: World, random: Random) => object;
  who?: 'owner';
  isKeyed?: true;
};

const OPERATIONS: Operation[] = [
  { path: 'cards.create', input: (title, { groups }, { pick }) => ({ title, group_id: pick(groups) }), isKeyed: true },
  { path: 'cards.create', input: (title, { groups }, { pick }) => ({ title, group_id: pick(groups) }) },
  {
    path: 'cards.move',
    input: (_, { cards, groups }, { pick, below }) => ({
      id: pick(cards),
      group_id: pick(groups),
      position: 1 + below(3),
    }),
  },
  { path: 'cards.update', input: (title, { cards }, { pick }) => ({ id: pick(cards), title }), isKeyed: true },
  { path: 'cards.delete', input: (_, { cards }, { pick }) => ({ id: pick(cards) }), isKeyed: true },
  {
    path: 'comments.create',
    input: (comment, { cards }, { pick }) => ({ card_id: pick(cards), comment }),
    isKeyed: true,
  },
  { path: 'members.invite', input: (mark) => ({ email: `${mark}@example.test`, role: 'viewer' }), who: 'owner' },
  { path: 'webhooks.rotateSecret', input: (_, { webhooks }, { pick }) => ({ id: pick(webhooks) }), who: 'owner' },
  { path: 'account.startExport', input: () => ({}) },
  {
    path: 'masterCards.update',
    input: (title, world, { pick }) => ({ id: pick(world.masterCards), title }),
    who: 'owner',
  },
  { path: 'masterBoards.sync', input: (_, world) => ({ board_id: world.masterBoard }), who: 'owner', isKeyed: true },
];

const CLIENTS = 4;
const MOST_ATTEMPTS = 6;

/** Clients that call both nodes until each call has an answer, or may not be repeated. */
export function startClients(seed: number, world: World, nodes: Map<string, Node>, schedule: Schedule) {
  const called: Called[] = [];
  const life = makeLife('clients', 0);
  const work = Array.from({ length: CLIENTS }, (_, number) =>
    tasks.run({ life, name: String(number) }, () => beClient(number, makeRandom(seed * 100 + number))),
  );
  return { called, done: Promise.all(work) };

  async function beClient(number: number, random: Random): Promise<void> {
    const token = (who: 'owner' | undefined) => (who ? world.tokens.owner : world.tokens.members[number % 2]!);
    const name = `call ${number}`;
    if (number === 0 && random.isTrue(0.6)) return rollOut(name, random, token('owner'));
    for (let count = 1 + random.below(2); count > 0; count--) {
      const { path, input, who, isKeyed } = random.pick(OPERATIONS);
      const mark = `m${number}-${count}`;
      const key = isKeyed && `k-${mark}`;
      await call(name, random, { path, input: input(mark, world, random), token: token(who), key }, mark);
    }
  }

  async function rollOut(name: string, random: Random, token: string): Promise<void> {
    const ask = (path: string, input: object) => call(name, random, { path, input, token, key: `k-${path}` });
    const published = await ask('releases.publish', { board_id: world.masterBoard, note: 'Why' });
    const stages = [{ percent: 40, soak_minutes: 0 }, { percent: 100 }];
    const planned = published && (await ask('rollouts.plan', { release_id: published.release.id, stages }));
    const id = planned?.rollout.id;
    const started = id && (await ask('rollouts.start', { id }));
    if (started && random.isTrue(0.3)) await ask('rollouts.rollback', { id });
  }

  async function call(
    task: string,
    random: Random,
    { path, input, token, key }: Pick<NodeCall, 'path' | 'input' | 'token' | 'key'>,
    mark = path,
  ): Promise<any> {
    const record: Called = { path, mark, key, results: [], refused: [], unknown: 0, executed: 0 };
    called.push(record);
    const attempt = async (node: string) => {
      const life = schedule.lives.get(node)!;
      if (life.isDead) return;
      const begun = virtualNow();
      // A changed webhook ends its deliveries.
      const endChange = path === 'webhooks.rotateSecret' ? schedule.beginChange() : undefined;
      try {
        const { data, isReplayed } = (await nodes.get(node)!.call(life, { task, token, path, input, key })) as {
          data: any;
          isReplayed: boolean;
        };
        record.results.push(data);
        if (isReplayed) schedule.labels.add('key replayed');
        else record.executed++;
        if (!isReplayed && path === 'masterBoards.sync') noteTakeover(record);
      } catch (error) {
        const { status, reason } = toFailure(error);
        const isUnknown = life.isDead || status >= 500;
        if (isUnknown) record.unknown++;
        else record.refused.push(reason);
        if (isUnknown && !schedule.isTroubled(node, begun))
          schedule.faults.add(`${path} failed without a cause: ${error}`);
        if (reason === 'idempotency_key_running') schedule.labels.add('key held by another call');
      } finally {
        endChange?.();
      }
    };
    const both = [...nodes.keys()];
    const begun = virtualNow();
    /** Another attempt may only execute a call again after the first was lost, or could not renew its hold in time. */
    function noteTakeover({ executed, unknown }: Called): void {
      if (executed > 1 && !both.some((node) => schedule.isTroubled(node, begun)))
        schedule.faults.add(`Without a cause: ${path} is executed again.`);
      else if (executed > 1 || unknown > 0) schedule.labels.add('key taken over');
    }
    for (let count = 0; count < MOST_ATTEMPTS; count++) {
      await Promise.all(key && random.isTrue(0.4) ? both.map(attempt) : [attempt(random.pick(both))]);
      const isBusy = record.refused.includes('idempotency_key_running');
      if (record.results.length > 0 || !key || (record.refused.length > 0 && !isBusy)) break;
      record.refused = [];
      // The longest one is longer than the hold of a key.
      await pause(1000 * random.pick([1, 3, 31]));
    }
    return record.results[0];
  }
}
