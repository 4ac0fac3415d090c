import { setTimeout } from 'node:timers/promises';
import { sql } from 'kysely';
import { type Outcome, stopNode, timeUntil, withRemoval } from '../faults/outcome.ts';
import { eventsAfter, givenReceiver, type Receiver } from '../faults/receiver.ts';
import { makeWorld, type World } from '../faults/world.ts';
import { readRows, startProgram } from '../harness/process.ts';
import type { Pool } from './callers.ts';
import { anomaliesOf } from './check.ts';
import type { Call, History, Shown } from './history.ts';
import { type Caller, callUntil, makeCaller, perform, type Target } from './record.ts';

export type RunOptions = {
  seconds: number;
  /** Ends earlier, with this many calls. */
  calls?: number;
  callers: number;
  seed: number;
  hasReplicas?: boolean;
  /** The service to start, if it is not that of this repository. */
  program?: string;
  nodes?: number;
  longestDeliverySeconds?: number;
  /** Disturbs the run, again and again. */
  disturb?: (nodes: Nodes, round: number) => Promise<void>;
};

/** What disturbs a run. `done` waits until this many more calls are done, or until the end. */
export type Nodes = { kill: (at: number) => Promise<void>; done: (more: number) => Promise<void> };

const WANTED = ['card.updated', 'card.moved', 'card.deleted'];

/** Records what callers see, under disturbances, and checks it. */
export async function runHistory(
  fault: string,
  settings: Record<string, string>,
  options: RunOptions,
): Promise<Outcome> {
  const { calls, violations } = await withRemoval(await givenReceiver(), async (all) =>
    withRemoval(await givenReceiver(), (some) => record(settings, options, [all, some])),
  );
  const outcomes = { done: 'acknowledged', refused: 'refused', unknown: 'lost' } as const;
  const sent = calls.map(({ operation, outcome, begun, ended }) => ({
    operation,
    outcome: outcomes[outcome],
    milliseconds: ended - begun,
  }));
  return {
    fault: `${fault}, seed ${options.seed}`,
    rounds: 1,
    sent: sent as unknown as Outcome['sent'],
    violations,
    times: [],
  };
}

async function record(
  base: Record<string, string>,
  options: RunOptions,
  receivers: [Receiver, Receiver],
): Promise<{ calls: Call[]; violations: string[] }> {
  const { seconds, callers: count, seed, program = 'server/boot/main.js', hasReplicas = false } = options;
  const longestDelivery = 1000 * (options.longestDeliverySeconds ?? 60);
  const settings = { ...base, WEBHOOK_ALLOWED_HOSTS: receivers.map(({ host }) => host).join() };
  const world = await makeWorld(settings);
  const start = () => startProgram([program], settings);
  const nodes = await Promise.all(Array.from({ length: options.nodes ?? 2 }, start));
  const target: Target = { urls: nodes.map(({ url }) => url) };
  const [all, some] = receivers;
  await all.register(nodes[0]!.url, world.superadmin);
  const expected = await some.register(nodes[0]!.url, world.superadmin, undefined, WANTED);

  const calls: Call[] = [];
  const callers = world.clients
    .slice(0, count)
    .map(({ token }, at) => makeCaller(`session ${at}`, token, seed + at, calls, at % 4 === 3));
  const pool: Pool = { groups: world.sharedGroups, cards: [], deleted: [], comments: [], tags: [], copies: [] };
  const admin = makeCaller('the template', world.superadmin, seed - 1, []);
  const changeTemplate = await givenCopies(admin, callers[0]!, target, world, pool);
  const end = performance.now() + seconds * 1000;
  const isOver = () => performance.now() > end || calls.length >= (options.calls ?? Number.POSITIVE_INFINITY);
  const repeat = async (work: (round: number) => Promise<void>) => {
    for (let round = 0; !isOver(); round++) await work(round);
  };
  const kill = async (at: number) => {
    target.urls = target.urls.filter((url) => url !== nodes[at]!.url);
    await nodes[at]!.stop('SIGKILL');
    nodes[at] = await start();
    target.urls = nodes.map(({ url }) => url);
  };
  const done = async (more: number) => {
    const begin = calls.length;
    const isDone = ({ outcome }: Call) => outcome === 'done';
    while (calls.slice(begin).filter(isDone).length < more && !isOver()) await setTimeout(20);
  };
  await Promise.all([
    ...callers.map((caller) => callUntil(isOver, caller, target, pool)),
    repeat(changeTemplate),
    options.disturb && repeat((round) => options.disturb!({ kill, done }, round)),
  ]);

  // The feed ends before the oldest transaction that is still running, so nothing is missing before the last call.
  const last = makeCaller('the last one', world.clients[0]!.token, seed, calls);
  const sending = { operation: 'cards.create', input: { title: 'The last one' } };
  const create = () => perform(last, target, { ...sending, writes: [{ verb: 'created', fields: {} }] });
  let marker = await create();
  for (; marker.call.outcome !== 'done'; marker = await create()) await setTimeout(50);
  let events: History['events'] = [];
  const isComplete = async () => {
    events = await eventsAfter(target.urls[0]!, world.superadmin, expected);
    return events.some(({ request_id }) => request_id === marker.call.id);
  };
  await timeUntil(isComplete, longestDelivery);
  const hasArrived = async () =>
    events.every(({ id, type }) => all.seen.has(id) && (!WANTED.includes(type) || some.seen.has(id)));
  await timeUntil(hasArrived, longestDelivery);
  const ends = await Promise.all(nodes.map(stopNode));

  const history: History = {
    ...{ calls, events, hasReplicas, rows: await readRows(settings, ROWS) },
    webhooks: [
      { name: 'the webhook for all', types: null, arrived: [...all.seen] },
      { name: 'the webhook for some', types: WANTED, arrived: [...some.seen] },
    ],
    copies: new Set(pool.copies.map((id) => `card ${id}`)),
  };
  const failed = ends.flatMap(({ violations }) => violations);
  return { calls, violations: [...anomaliesOf(history).map(({ name, text }) => `${name}: ${text}`), ...failed] };
}

const ROWS = sql<Shown>`
  select 'card ' || id as row, version, jsonb_build_object('title', title, 'group_id', group_id) as fields
  from cards where deleted_at is null and not is_master
  union all select 'comment ' || id, version, jsonb_build_object('comment', comment) from comments where deleted_at is null
  union all select 'tag ' || id, version, jsonb_build_object('name', name) from tags where deleted_at is null`;

/** Syncs a template, and returns what changes it again: by a sync, or by a rollout. */
async function givenCopies(admin: Caller, reader: Caller, target: Target, world: World, pool: Pool) {
  const [board_id] = world.masterBoards;
  const ask = async (caller: Caller, operation: string, input: object) =>
    (await perform(caller, target, { operation, input: { ...input }, writes: [] })).data;
  await ask(admin, 'masterBoards.sync', { board_id });
  const { cards } = await ask({ ...reader, calls: [] }, 'cards.list', { text: 'Master card', limit: 100 });
  pool.copies.push(...cards.map(({ id }: { id: number }) => id));
  const masters = cards.map(({ master_card_id }: { master_card_id: number }) => master_card_id);
  return async (round: number) => {
    await setTimeout(500);
    await ask(admin, 'masterCards.update', { id: masters[round % masters.length], short_description: `${round}` });
    if (round % 2) return ask(admin, 'masterBoards.sync', { board_id });
    // Refused while the rollout before is still open.
    const { release } = (await ask(admin, 'releases.publish', { board_id, note: 'A change' })) ?? {};
    const plan = { release_id: release?.id, stages: [{ percent: 100 }] };
    const { rollout } = (release && (await ask(admin, 'rollouts.plan', plan))) ?? {};
    if (rollout) await ask(admin, 'rollouts.start', { id: rollout.id });
  };
}
