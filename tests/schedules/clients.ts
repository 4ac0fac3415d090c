import { makeRandom, type Random } from '../harness/random.ts';
import type { Call } from '../history/history.ts';
import { type Called, type Client, callUntilSettled, type Play } from './attempts.ts';
import type { Node } from './nodes.ts';
import { getCard, nextSending, type Pool, type Sending } from './operations.ts';
import type { Schedule } from './schedule.ts';
import { makeLife, tasks } from './time.ts';
import type { World } from './world.ts';

const CLIENTS = 4;

/** Clients that call both nodes until each call has an answer, or may not be repeated. */
export function startClients(seed: number, world: World, nodes: Map<string, Node>, schedule: Schedule) {
  const pool: Pool = { ...world, cards: [...world.cards], deleted: [], comments: [] };
  const called: Called[] = [];
  const calls: Call[] = [];
  const play: Play = { nodes, schedule, pool, called, calls, moment: 0 };
  const life = makeLife('clients', 0);
  const work = Array.from({ length: CLIENTS }, (_, number) =>
    tasks.run({ life, name: String(number) }, () => beClient(play, number, makeRandom(seed * 100 + number))),
  );
  return { called, calls, done: Promise.all(work) };
}

async function beClient(play: Play, number: number, random: Random): Promise<void> {
  const { pool } = play;
  const { owner, members } = pool.tokens;
  const client: Client = { name: `call ${number}`, random, owner, member: members[number % 2]!, versions: new Map() };
  if (number === 0 && random.isTrue(0.6)) return rollOut(play, client);
  for (let count = 1 + random.below(3); count > 0; count--) {
    const card = random.pick(pool.cards);
    const call = (sending: Sending, mark: string) => callUntilSettled(play, client, sending, mark);
    if (random.isTrue(0.4)) await call(getCard(card), 'before');
    const mark = `m${number}-${count}`;
    const seenVersion = (id: number) => client.versions.get(`card ${id}`);
    const sending = nextSending({ pool, random, mark, card, seenVersion });
    await call(sending, mark);
    if (sending.card !== undefined && random.isTrue(0.5)) await call(getCard(sending.card), 'after');
  }
}

async function rollOut(play: Play, client: Client): Promise<void> {
  const ask = (path: string, input: object) =>
    callUntilSettled(play, client, { path, input, writes: [], who: 'owner', isKeyed: true }, path);
  const published = await ask('releases.publish', { board_id: play.pool.masterBoard, note: 'Why' });
  const stages = [{ percent: 40, soak_minutes: 0 }, { percent: 100 }];
  const planned = published && (await ask('rollouts.plan', { release_id: published.release.id, stages }));
  const id = planned?.rollout.id;
  const started = id && (await ask('rollouts.start', { id }));
  if (started && client.random.isTrue(0.3)) await ask('rollouts.rollback', { id });
}
