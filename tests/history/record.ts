import { randomUUID } from 'node:crypto';
import type { Agent } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { findProcedure } from '../../server/api/procedures.ts';
import { keepAlive, post, type Reply } from '../faults/request.ts';
import { makeRandom } from '../harness/random.ts';
import { getCard, nextSending, type Pool, type Random, type Sending } from './callers.ts';
import type { Call, Shown } from './history.ts';

/** The addresses of the nodes. Callers choose one for each call, and wait while there are none. */
export type Target = { urls: string[] };

export type Caller = {
  session: string;
  token: string;
  agent: Agent;
  random: Random;
  /** The last version of each row that it has seen. */
  versions: Map<string, string>;
  /** What it has sent. */
  calls: Call[];
  /** One that never writes may be served by a replica all the time. */
  isReader: boolean;
};

export const makeCaller = (session: string, token: string, seed: number, calls: Call[], isReader = false): Caller => ({
  ...{ session, token, agent: keepAlive(), random: makeRandom(seed).below, versions: new Map(), calls, isReader },
});

/** Sends one call after the other until it is over, over all surfaces, some of them with a key and some of these twice. */
export async function callUntil(isOver: () => boolean, caller: Caller, target: Target, pool: Pool): Promise<void> {
  const { random, versions, isReader } = caller;
  while (!isOver()) {
    const sending = nextSending(pool, random, isReader ? undefined : (row) => versions.get(row));
    const key = sending.writes.length > 0 && random(4) === 0 ? randomUUID() : undefined;
    const attempt = () => perform(caller, target, sending, key);
    const attempts = await Promise.all(key && random(3) === 0 ? [attempt(), attempt()] : [attempt()]);
    while (key && !isOver() && attempts.at(-1)!.call.outcome === 'unknown') {
      await setTimeout(50);
      attempts.push(await attempt());
    }
    for (const { call } of attempts) call.mayBeReplayed = attempts.length > 1;
    const { call, data } = attempts.find(({ call }) => call.outcome === 'done') ?? attempts[0]!;
    if (call.outcome === 'done') notePool(pool, call, data);
    const written = call.shown[0]?.row.startsWith('card') && random(2) === 0 ? sending.card : undefined;
    if (written !== undefined) await perform(caller, target, getCard(written));
    // The node may be gone for a moment.
    if (call.outcome === 'unknown') await setTimeout(20);
  }
  caller.agent.destroy();
}

function notePool(pool: Pool, { operation, writes }: Call, data: any): void {
  for (const { row, verb } of writes) {
    const [noun, number] = row?.split(' ') ?? [];
    const id = Number(number);
    if (noun === 'card' && (verb === 'created' || (verb === 'restored' && data.restored_count > 0)))
      pool.cards.push(id);
    if (operation === 'cards.delete') pool.deleted.push(id);
    if (verb === 'created' && noun === 'tag') pool.tags.push(id);
    if (verb === 'created' && noun === 'comment') pool.comments.push(id);
  }
}

/** Sends a call and records it. */
export async function perform(caller: Caller, target: Target, sending: Sending, key?: string) {
  const { operation, card } = sending;
  while (target.urls.length === 0) await setTimeout(20);
  const url = target.urls[caller.random(target.urls.length)]!;
  const surface = SURFACES[caller.random(SURFACES.length)]!;
  const id = randomUUID();
  const begun = performance.now();
  const reply = await surface(caller, url, sending, id, key);
  const { status, data, version } = reply ?? {};
  const isDone = status !== undefined && status < 300;
  const call: Call = {
    ...{ id, session: caller.session, operation, begun, ended: performance.now(), ...(key && { key }) },
    outcome: isDone ? 'done' : status === undefined || status >= 500 ? 'unknown' : 'refused',
    writes: structuredClone(sending.writes),
    shown: isDone ? shownIn(data, version) : [],
    missing: status === 404 && card !== undefined ? [`card ${card}`] : [],
  };
  if (isDone) nameRows(call, data);
  for (const { row } of call.shown) if (version) caller.versions.set(row, version);
  caller.calls.push(call);
  return { call, data };
}

/** Gives new rows their ids, and marks the refused ones of many. */
function nameRows({ writes, shown }: Call, data: any): void {
  for (const [at, write] of writes.entries()) {
    const { card, error } = data?.results?.[at] ?? {};
    if (error) write.isRefused = true;
    else write.row ??= card ? `card ${card.id}` : shown[0]?.row;
  }
}

/** Fields that depend on the time or on the caller. */
const NOT_OF_THE_ROW = new Set(['is_overdue', 'is_dismissed', 'card_type']);

const shownIn = (data: any, version = ''): Shown[] =>
  ['card', 'comment', 'tag'].flatMap((noun) => {
    const row = data?.[noun];
    if (!row) return [];
    const fields = Object.entries(row).filter(([field]) => !NOT_OF_THE_ROW.has(field));
    return [{ row: `${noun} ${row.id}`, version: Number.parseInt(version, 10), fields: Object.fromEntries(fields) }];
  });

type Surface = (
  caller: Caller,
  url: string,
  sending: Sending,
  id: string,
  key: string | undefined,
) => Promise<{ status: number; data?: any; version?: string } | undefined>;

const overRest: Surface = async ({ agent, token }, url, { operation, input }, id, key) => {
  const { if_version, ...fields } = input;
  const headers = { 'x-request-id': id, ...(if_version ? { 'if-match': `"${if_version}"` } : {}) };
  const address = `${url}/api${findProcedure(operation)!.rest!.path}`;
  return read(await post(address, agent, token, fields, key, headers), ({ status, headers, body }) => {
    return { status, data: body.data, version: headers.etag?.slice(1, -1) };
  });
};

const overRpc: Surface = async ({ agent, token }, url, { operation, input }, id, key) =>
  read(
    await post(`${url}/trpc/${operation}`, agent, token, { json: input }, key, { 'x-request-id': id }),
    ({ status, body }) => {
      const data = body.result?.data.json;
      return { status, data, version: data?.version };
    },
  );

const overMcp: Surface = async ({ agent, token }, url, { operation, input }, id, key) => {
  const params = findProcedure(operation)!.isTool
    ? { name: operation.replace('.', '_'), arguments: input }
    : { name: 'operations_call', arguments: { name: operation, input } };
  const message = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { ...params, _meta: { idempotency_key: key } },
  };
  const headers = { 'x-request-id': id, accept: 'application/json, text/event-stream' };
  return read(await post(`${url}/mcp`, agent, token, message, undefined, headers), ({ status, body }) => {
    const failed = body.error ? (body.error.data ?? { status: 500 }) : body.result.structuredContent?.error;
    if (failed) return { status: failed.status };
    const [{ text }] = body.result.content;
    const data = text.startsWith('{') ? JSON.parse(text) : undefined;
    return { status, data, version: data?.version };
  });
};

const SURFACES = [overRest, overRpc, overMcp];

type Answered = Extract<Reply, { status: number }>;

/** Undefined without an answer. */
const read = <Result>(reply: Reply, parse: (answer: Answered & { body: any }) => Result): Result | undefined =>
  reply.status === undefined ? undefined : parse({ ...reply, body: JSON.parse(reply.text) });
