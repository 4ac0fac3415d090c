import { randomBytes, randomUUID } from 'node:crypto';
import type { Agent } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { undocumented } from '../harness/answer.ts';
import { keepAlive, post, type Reply } from './request.ts';
import type { World } from './world.ts';

/** Writes of many clients at once, with a record of what was acknowledged. Nothing is ever sent twice. */

export type Operation = keyof typeof OPERATIONS;

export type Sent = {
  operation: Operation;
  surface: 'rest' | 'rpc';
  input: any;
  /** Milliseconds of the process's clock. */
  sentAt: number;
  milliseconds: number;
  /** Acknowledged with 2xx, refused with another status, lost with the connection, or never sent for want of one. */
  outcome: 'acknowledged' | 'refused' | 'lost' | 'unconnected';
  status?: number;
  /** Why it was lost. */
  code?: string;
  /** Of what was created. */
  id?: number;
  /** What the document does not say of the answer. */
  undocumented: string[];
};

export type Load = {
  sent: Sent[];
  /** Resolves when so many more requests were acknowledged. */
  acknowledged: (more: number) => Promise<void>;
  /** Lets what is under way end. */
  stop: () => Promise<Sent[]>;
};

/** Where the nodes listen; it changes while they are started again. */
export type Target = { urls: string[] };

type Options = {
  clients: number;
  /** How long the description of a card is. */
  textLength?: number;
  /** Also syncs and pushes templates. */
  hasTemplates?: boolean;
  /** A client whose connection is refused ends. */
  endsWhenRefused?: boolean;
};

export function startLoad(world: World, target: Target, options: Options): Load {
  const sent: Sent[] = [];
  let isStopping = false;
  let countAcknowledged = 0;
  const run = async (client: number, token: string, nextWrite: NextWrite) => {
    const agent = keepAlive();
    let record: Sent | undefined;
    for (let round = client; !isStopping; round++) {
      const url = target.urls[round % target.urls.length]!;
      record = await send(url, agent, token, round % 2 ? 'rest' : 'rpc', nextWrite(record));
      sent.push(record);
      if (record.outcome === 'acknowledged') countAcknowledged++;
      if (record.outcome !== 'unconnected') continue;
      if (options.endsWhenRefused) break;
      await setTimeout(50);
    }
    agent.destroy();
  };

  const clients = world.clients
    .slice(0, options.clients)
    .map(({ token, groups }, client) => run(client, token, writesOf(groups, world.sharedGroups, options.textLength)));
  if (options.hasTemplates) clients.push(run(0, world.superadmin, templateWritesOf(world)));

  return {
    sent,
    acknowledged: async (more) => {
      const wanted = countAcknowledged + more;
      const limit = performance.now() + 60_000;
      while (countAcknowledged < wanted) {
        if (performance.now() > limit) {
          isStopping = true;
          const last = sent.slice(-20).map(({ status, code }) => status ?? code);
          throw new Error(`In a minute, no ${more} more requests were acknowledged; the last answers are ${last}.`);
        }
        await setTimeout(5);
      }
    },
    stop: async () => {
      isStopping = true;
      await Promise.all(clients);
      return sent;
    },
  };
}

export type Write = { operation: Operation; input: object };

/** The next write of a client, given what came of the one before. */
type NextWrite = (previous: Sent | undefined) => Write;

/** Each text and each position tells which request it came from. */
function writesOf(groups: number[], sharedGroups: number[], textLength = 40): NextWrite {
  const made: number[] = [];
  let round = 0;
  return (previous) => {
    if (previous?.operation === 'cards.create' && previous.id) made.push(previous.id);
    const title = randomUUID();
    const description = `${title} ${randomBytes(textLength / 2).toString('hex')}`;
    const writes: Write[] = [
      { operation: 'groups.reorder', input: placing(sharedGroups) },
      { operation: 'cards.create', input: { title, description, group_id: groups[0] } },
      // Refused by what the database holds.
      { operation: 'cards.create', input: { title, group_id: 2 ** 31 - 1 } },
      { operation: 'groups.reorder', input: placing(groups) },
      { operation: 'cards.create', input: { title, description, group_id: groups[1] } },
      { operation: 'comments.create', input: { card_id: made.at(-1), comment: title } },
      { operation: 'cards.delete', input: { id: made[0] } },
    ];
    // A card to comment on, and one more to delete.
    const next = writes[round++ % (made.length > 1 ? writes.length : 5)]!;
    if (next.operation === 'cards.delete') made.shift();
    return next;
  };
}

let reorders = 0;
/** The positions of one reorder share their hundreds with no other. */
const placing = (groups: number[]) => {
  const hundreds = ++reorders * 100;
  return { groups: groups.map((id, at) => ({ id, position: hundreds + at })) };
};

function templateWritesOf({ masterGroup, masterBoards }: World): NextWrite {
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
const OPERATIONS = {
  'cards.create': { path: `${WORK}/cards/create`, idIn: ({ card }: any) => card.id },
  'cards.delete': { path: `${WORK}/cards/delete`, idIn: () => undefined },
  'comments.create': { path: `${WORK}/comments/create`, idIn: ({ comment }: any) => comment.id },
  'groups.reorder': { path: `${WORK}/groups/reorder`, idIn: () => undefined },
  'masterCards.create': { path: `${ADMIN}/master-cards/create`, idIn: ({ card }: any) => card.id },
  'masterBoards.sync': { path: `${ADMIN}/master-boards/sync`, idIn: () => undefined },
};

export async function send(
  url: string,
  agent: Agent,
  token: string,
  surface: Sent['surface'],
  { operation, input }: Write,
): Promise<Sent> {
  const { path, idIn } = OPERATIONS[operation];
  const sentAt = performance.now();
  const reply = await (surface === 'rest'
    ? post(`${url}/api${path}`, agent, token, input)
    : post(`${url}/trpc/${operation}`, agent, token, { json: input }));
  const record = { operation, surface, input, sentAt, milliseconds: reply.milliseconds };
  if (reply.status === undefined) {
    const { code } = reply;
    return { ...record, outcome: code === 'ECONNREFUSED' ? 'unconnected' : 'lost', code, undocumented: [] };
  }

  const { status } = reply;
  if (status > 299) return { ...record, outcome: 'refused', status, undocumented: strayings(surface, path, reply) };
  const body = JSON.parse(reply.text);
  const result = surface === 'rest' ? body.data : body.result.data.json;
  return { ...record, outcome: 'acknowledged', status, id: result && idIn(result), undocumented: [] };
}

/** REST answers are checked against the document; RPC has the same statuses. */
function strayings(surface: Sent['surface'], path: string, reply: Reply & { status: number }): string[] {
  if (surface === 'rpc') return DOCUMENTED.has(reply.status) ? [] : [`The status ${reply.status} is not listed.`];
  const headers = new Headers(Object.entries(reply.headers).map(([name, value]) => [name, String(value)]));
  const response = new Response(null, { status: reply.status, headers });
  try {
    return undocumented({ method: 'POST', path, response, text: reply.text });
  } catch (error) {
    return [String(error)];
  }
}
const DOCUMENTED = new Set([400, 401, 403, 404, 422, 429, 500]);
