import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import pg from 'pg';
import { ServerClient } from '../../server/database/client.ts';
import type { VirtualServer } from './server.ts';
import { type Life, type Task, tasks, virtualNow } from './time.ts';

/** A statement, or a call to a receiver, that waits for its turn at the gate. */
export type Step = {
  task: Task;
  text: string;
  /** Undefined for a call. */
  client: ServerClient | undefined;
  since: number;
  send: () => Promise<unknown>;
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
  /** How often in a row it was seen waiting for a lock; twice, since a deadlock is found a moment later. */
  waits: number;
  hasWaited: boolean;
};

export const FAULTS = ['serialization failure', 'deadlock', 'stale plan', 'connection lost', 'answer lost'] as const;
export type Fault = (typeof FAULTS)[number];

/** Steps that have arrived, and steps that were let through and have not ended. */
export const arrived: Step[] = [];
export const running = new Set<Step>();
const nodes = new Map<ServerClient, string>();
let opening = 0;
let onEnd: (step: Step, outcome: string) => void = () => undefined;

export const watchSteps = (watch: typeof onEnd) => {
  onEnd = watch;
};

/** A task whose statements don't wait. */
export const SETUP = 'setup';

const KILLED = new Error('The node was killed.');

/** Takes every statement of a task to the gate: all connections of the service are `ServerClient`s. */
export function installGate(): void {
  const prototype = ServerClient.prototype as any;
  const { query, connect } = prototype;
  const whileOpening = async (work: Promise<unknown>) => {
    opening++;
    noteChange();
    return work.finally(() => {
      opening--;
      noteChange();
    });
  };
  prototype.connect = function (callback: (error?: Error) => void) {
    // The server is never silent, but virtual time may pass while it works. Its own limits are in real time.
    this.hasTimeouts = false;
    Object.assign(this.connectionParameters, NO_LIMITS);
    const node = tasks.getStore()?.life.node;
    if (node) nodes.set(this, node);
    this.once('end', () => nodes.delete(this));
    const { promise, resolve: done } = Promise.withResolvers<void>();
    void whileOpening(promise);
    return connect.call(this, (error?: Error) => {
      done();
      callback(error);
    });
  };
  prototype.query = function (...parts: unknown[]) {
    const [text] = parts;
    const task = tasks.getStore();
    const send = () => query.apply(this, parts);
    if (String(text).startsWith('set jit = off')) return whileOpening(send());
    if (!task || task.name === SETUP || typeof text !== 'string' || typeof parts.at(-1) === 'function') return send();
    return enter({ task, text: shorten(text), client: this, send });
  };
  const { connect: checkOut } = pg.Pool.prototype as any;
  (pg.Pool.prototype as any).connect = function (...parts: unknown[]) {
    // Idle connections stay, and nobody waits for one: both would depend on earlier seeds.
    Object.assign(this.options, { idleTimeoutMillis: 0, connectionTimeoutMillis: 0, max: 50 });
    return checkOut.apply(this, parts);
  };
}

const NO_LIMITS = { statement_timeout: 0, lock_timeout: 0, idle_in_transaction_session_timeout: 0 };

/** A call to somebody outside waits, too. */
export const callOutside = <Result>(text: string, send: () => Promise<Result>) =>
  enter({ task: tasks.getStore()!, text, client: undefined, send }) as Promise<Result>;

function enter(step: Pick<Step, 'task' | 'text' | 'client' | 'send'>): Promise<unknown> {
  if (step.task.life.isDead) return Promise.reject(KILLED);
  return new Promise((resolve, reject) => {
    noteChange();
    arrived.push({ ...step, since: virtualNow(), resolve, reject, waits: 0, hasWaited: false });
  });
}

const shorten = (text: string) =>
  text
    .replace(/\/\*.*?\*\//gs, '')
    .replace(/\s+/g, ' ')
    .trim();

/** Lets a step through, which may fail by a fault. */
export function letThrough(step: Step, server: VirtualServer, fault?: Fault): void {
  arrived.splice(arrived.indexOf(step), 1);
  running.add(step);
  const end = (outcome: string, settle: () => void) => {
    running.delete(step);
    noteFreedLocks();
    onEnd(step, outcome);
    if (step.task.life.isDead) step.reject(KILLED);
    else settle();
  };
  tasks
    .exit(() => (fault ? failBy(fault, step, server) : step.send()))
    .then(
      (result) => end('', () => step.resolve(result)),
      (error) => end(` → ${error.code ?? error.message}`, () => step.reject(error)),
    );
}

export const RAISED: Partial<Record<Fault, { code: string; message: string }>> = {
  'serialization failure': { code: '40001', message: 'could not serialize access' },
  deadlock: { code: '40P01', message: 'deadlock detected' },
  'stale plan': { code: '0A000', message: 'cached plan must not change result type' },
};

async function failBy(fault: Fault, { client, send }: Step, server: VirtualServer): Promise<unknown> {
  if (!client) throw new Error('Calls fail by themselves.');
  const raised = RAISED[fault];
  // Raised by the server, so that the transaction has failed there, too.
  if (raised)
    return client.query(`do $$ begin raise exception '${raised.message}' using errcode = '${raised.code}'; end $$`, []);
  if (fault === 'answer lost') await send();
  await cut([client], server);
  return fault === 'answer lost' ? Promise.reject(new Error('Connection terminated unexpectedly')) : send();
}

async function cut(clients: ServerClient[], server: VirtualServer): Promise<void> {
  const pids = clients.map(pidOf);
  for (const client of clients) client.drop('The connection was lost.');
  await server.terminate(pids);
  // The pool must not hand them out any more.
  while (clients.some((client) => nodes.has(client))) await turn();
}

const pidOf = (client: ServerClient) => (client as unknown as { processID: number }).processID;

/** At the end of a seed: work that it left in the middle of a transaction must not reach the next seed through the pool. */
export async function cutOpenTransactions(server: VirtualServer): Promise<void> {
  const open = await server.findOpen([...nodes.keys()].map(pidOf));
  await cut(
    [...nodes.keys()].filter((client) => open.has(pidOf(client))),
    server,
  );
}

/** Closes the gate for a node, and rejects its waiting steps: the next seed would let them through. */
export function endLife(life: Life): void {
  life.end(KILLED);
  for (const step of arrived.filter(({ task }) => task.life === life)) {
    arrived.splice(arrived.indexOf(step), 1);
    step.reject(KILLED);
  }
}

/** Ends a node at once: its connections are cut, and nothing of it reaches the database or a receiver any more. */
export async function killNode(life: Life, server: VirtualServer): Promise<void> {
  endLife(life);
  await cut(
    [...nodes].flatMap(([client, node]) => (node === life.node ? [client] : [])),
    server,
  );
  noteFreedLocks();
}

/** Waits until each running step has ended or is blocked by a lock, and the steps that follow have arrived. */
export async function settleAll(server: VirtualServer, onWait: (step: Step) => void): Promise<void> {
  for (let before = -1; before !== changes; ) {
    while (opening > 0 || unsettled().length > 0) {
      const [count, ended] = [changes, nextChange()];
      // A step that has waited for a lock before needs no pause: it is asked about again at once.
      const isNew = unsettled().some(({ hasWaited }) => !hasWaited);
      if (isNew || opening > 0) await Promise.race([ended, sleep(SHORT_MILLISECONDS)]);
      if (count === changes) await lookForWaiting(server, onWait);
    }
    before = changes;
    for (let turns = 0; turns < 3; turns++) await turn();
  }
}

const SHORT_MILLISECONDS = 3;
const unsettled = () => [...running].filter(({ waits }) => waits < 2);

/** Counts what arrives and ends. */
let changes = 0;
let tell: () => void = () => undefined;
const nextChange = () =>
  new Promise<void>((resolve) => {
    tell = resolve;
  });
/** A lock was freed: steps that wait for one may have got it, so they are looked at again. */
function noteFreedLocks(): void {
  for (const step of running) step.waits = Math.min(step.waits, 1);
  noteChange();
}

function noteChange(): void {
  changes++;
  tell();
}

async function lookForWaiting(server: VirtualServer, onWait: (step: Step) => void): Promise<void> {
  const unknown = unsettled().filter(({ client }) => client);
  if (unknown.length === 0) return;
  const waiting = await server.findWaiting(unknown.map(({ client }) => pidOf(client!)));
  for (const step of unknown.filter((step) => running.has(step))) {
    step.waits = waiting.has(pidOf(step.client!)) ? step.waits + 1 : 0;
    if (step.waits < 2 || step.hasWaited) continue;
    step.hasWaited = true;
    onWait(step);
  }
}
