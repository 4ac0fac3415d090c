import { randomBytes, randomUUID } from 'node:crypto';
import type { Agent } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { undocumented } from '../../server/contract/answer.ts';
import { keepAlive, post, type Reply } from './request.ts';
import type { World } from './world.ts';

/** Concurrent writes of many clients, with a record of what was acknowledged. */

export type Operation = keyof typeof OPERATIONS;

export type Sent = {
  operation: Operation;
  surface: 'rest' | 'rpc';
  input: any;
  /** Milliseconds of the process's clock. */
  sentAt: number;
  milliseconds: number;
  /** Acknowledged with 2xx, refused with another status, lost with its connection, or never sent since none opened. */
  outcome: 'acknowledged' | 'refused' | 'lost' | 'unconnected';
  status?: number;
  /** Why it was lost. */
  code?: string;
  /** The answer of a refused request. */
  text?: string;
  /** The id of the created row. */
  id?: number;
  /** How the answer differs from the document. */
  undocumented: string[];
};

export type Load = {
  sent: Sent[];
  /** Resolves when this many more requests are acknowledged. */
  acknowledged: (more: number) => Promise<void>;
  /** Waits for running requests. */
  stop: () => Promise<Sent[]>;
};

/** The addresses of the nodes; they change when nodes restart. Clients wait while there are none. */
type Target = { urls: string[] };

type Options = {
  clients: number;
  /** How long the description of a card is. */
  textLength?: number;
  /** Also syncs and pushes templates. */
  hasTemplates?: boolean;
  /** A client whose connection is refused ends. */
  endsWhenRefused?: boolean;
  /** Repeats a write with its Idempotency-Key until it is acknowledged or refused for good. Without it, nothing is retried. */
  isRetrying?: boolean;
};

export function startLoad(world: World, target: Target, options: Options): Load {
  const clients: Client[] = world.clients
    .slice(0, options.clients)
    .map(({ token, groups }) => ({ token, next: writesOf(groups, world.sharedGroups, options.textLength) }));
  if (options.hasTemplates) clients.push({ token: world.superadmin, next: templateWritesOf(world) });
  return startClients(clients, target, options);
}

/** A client sends one request after the other. */
export type Client = { token: string; next: NextRequest; pauseMilliseconds?: number };

export function startClients(
  clients: Client[],
  target: Target,
  { endsWhenRefused = false, isRetrying = false }: Pick<Options, 'endsWhenRefused' | 'isRetrying'> = {},
): Load {
  const sent: Sent[] = [];
  let isStopping = false;
  let countAcknowledged = 0;
  const run = async ({ token, next, pauseMilliseconds }: Client, client: number) => {
    const agent = keepAlive();
    let record: Sent | undefined;
    for (let round = client; !isStopping; round++) {
      if (target.urls.length === 0) {
        await setTimeout(5);
        continue;
      }
      const request = next(record);
      const url = target.urls[round % target.urls.length]!;
      const surface = round % 2 ? 'rest' : 'rpc';
      record = isRetrying
        ? await sendUntilSettled(() => isStopping, url, agent, token, surface, request)
        : await send(url, agent, token, surface, request);
      sent.push(record);
      if (record.outcome === 'acknowledged') countAcknowledged++;
      if (pauseMilliseconds) await setTimeout(pauseMilliseconds);
      if (record.outcome !== 'unconnected') continue;
      if (endsWhenRefused) break;
      await setTimeout(50);
    }
    agent.destroy();
  };
  const running = clients.map(run);

  return {
    sent,
    acknowledged: async (more) => {
      const wanted = countAcknowledged + more;
      const limit = performance.now() + 60_000;
      while (countAcknowledged < wanted) {
        if (performance.now() > limit) {
          isStopping = true;
          const last = sent.slice(-20).map(({ status, code }) => status ?? code);
          throw new Error(`Fewer than ${more} requests were acknowledged in a minute; the last answers are ${last}.`);
        }
        await setTimeout(5);
      }
    },
    stop: async () => {
      isStopping = true;
      await Promise.all(running);
      return sent;
    },
  };
}

export type Request = { operation: Operation; input: object; idempotencyKey?: string };

/** The next request of a client, given the result of the previous one. */
export type NextRequest = (previous: Sent | undefined) => Request;

/** Texts and positions are unique, so each stored value can be traced to its request. */
function writesOf(groups: number[], sharedGroups: number[], textLength = 40): NextRequest {
  const created: number[] = [];
  let round = 0;
  return (previous) => {
    if (previous?.operation === 'cards.create' && previous.id) created.push(previous.id);
    const title = randomUUID();
    const description = `${title} ${randomBytes(textLength / 2).toString('hex')}`;
    const writes: Request[] = [
      { operation: 'groups.reorder', input: placing(sharedGroups) },
      { operation: 'cards.create', input: { title, description, group_id: groups[0] } },
      // Refused: there is no such group.
      { operation: 'cards.create', input: { title, group_id: 2 ** 31 - 1 } },
      { operation: 'groups.reorder', input: placing(groups) },
      { operation: 'cards.create', input: { title, description, group_id: groups[1] } },
      { operation: 'comments.create', input: { card_id: created.at(-1), comment: title } },
      { operation: 'cards.delete', input: { id: created[0] } },
    ];
    // The last two need a card to comment on and another one to delete.
    const next = writes[round++ % (created.length > 1 ? writes.length : 5)]!;
    if (next.operation === 'cards.delete') created.shift();
    return next;
  };
}

let reorders = 0;
/** Each reorder has its own hundred, so positions tell which one they came from. */
const placing = (groups: number[]) => {
  const hundreds = ++reorders * 100;
  return { groups: groups.map((id, at) => ({ id, position: hundreds + at })) };
};

function templateWritesOf({ masterGroup, masterBoards }: World): NextRequest {
  let round = 0;
  return () => {
    const title = randomUUID();
    const board_id = masterBoards[(round >> 1) % masterBoards.length];
    return round++ % 2
      ? { operation: 'masterCards.create', input: { group_id: masterGroup, title, push_to_projects: true } }
      : { operation: 'masterBoards.sync', input: { board_id } };
  };
}

const WORK = '/services/operations/v1/operations';
const ADMIN = '/services/operations/v1/admin';
const none = () => undefined;
/** With the REST path, if there is one. */
const OPERATIONS = {
  'auth.authenticate': { path: '/v1/authenticate', idIn: none },
  'boards.list': { path: undefined, idIn: none },
  'cards.create': { path: `${WORK}/cards/create`, idIn: ({ card }: any) => card.id },
  'cards.delete': { path: `${WORK}/cards/delete`, idIn: none },
  'cards.list': { path: undefined, idIn: none },
  'cards.move': { path: undefined, idIn: none },
  'cards.restore': { path: undefined, idIn: none },
  'cards.update': { path: undefined, idIn: none },
  'comments.create': { path: `${WORK}/comments/create`, idIn: ({ comment }: any) => comment.id },
  'comments.list': { path: undefined, idIn: none },
  'groups.reorder': { path: `${WORK}/groups/reorder`, idIn: none },
  'masterCards.create': { path: `${ADMIN}/master-cards/create`, idIn: ({ card }: any) => card.id },
  'masterBoards.sync': { path: `${ADMIN}/master-boards/sync`, idIn: none },
};

/** Of a card or a comment. */
export const isCreate = (operation: Operation) => operation === 'cards.create' || operation === 'comments.create';

/** Retries what may work later, as a careful caller does; the record is that of the last attempt, timed from the first. */
async function sendUntilSettled(
  isStopping: () => boolean,
  ...[url, agent, token, surface, request]: Parameters<typeof send>
): Promise<Sent> {
  const idempotencyKey = randomUUID();
  const sentAt = performance.now();
  const undocumented: string[] = [];
  for (;;) {
    const last = await send(url, agent, token, surface, { ...request, idempotencyKey });
    undocumented.push(...last.undocumented);
    const isSettled = last.status !== undefined && last.status < 500 && last.status !== 429;
    if (isSettled || isStopping()) return { ...last, sentAt, milliseconds: performance.now() - sentAt, undocumented };
    await setTimeout(50);
  }
}

async function send(
  url: string,
  agent: Agent,
  token: string,
  wanted: Sent['surface'],
  { operation, input, idempotencyKey }: Request,
): Promise<Sent> {
  const { path, idIn } = OPERATIONS[operation];
  const surface = path === undefined ? 'rpc' : wanted;
  const sentAt = performance.now();
  const reply = await (surface === 'rest'
    ? post(`${url}/api${path}`, agent, token, input, idempotencyKey)
    : post(`${url}/trpc/${operation}`, agent, token, { json: input }, idempotencyKey));
  const record = { operation, surface, input, sentAt, milliseconds: reply.milliseconds };
  if (reply.status === undefined) {
    const { code } = reply;
    return { ...record, outcome: code === 'ECONNREFUSED' ? 'unconnected' : 'lost', code, undocumented: [] };
  }

  const { status } = reply;
  if (status > 299) {
    const text = reply.text.slice(0, 300);
    return { ...record, outcome: 'refused', status, text, undocumented: deviations(path, surface, reply) };
  }
  const body = JSON.parse(reply.text);
  const result = surface === 'rest' ? body.data : body.result.data.json;
  return { ...record, outcome: 'acknowledged', status, id: result && idIn(result), undocumented: [] };
}

/** REST answers are checked against the document; RPC has the same statuses. */
function deviations(path: string | undefined, surface: Sent['surface'], reply: Reply & { status: number }): string[] {
  if (surface === 'rpc' || !path)
    return DOCUMENTED.has(reply.status) ? [] : [`The status ${reply.status} is not listed.`];
  const headers = new Headers(Object.entries(reply.headers).map(([name, value]) => [name, String(value)]));
  const response = new Response(null, { status: reply.status, headers });
  try {
    return undocumented({ method: 'POST', path, response, text: reply.text });
  } catch (error) {
    return [String(error)];
  }
}
const DOCUMENTED = new Set([400, 401, 403, 404, 422, 429, 500]);
