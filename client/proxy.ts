import type { Kind } from './call.ts';
import type { CallDefaults, MutationOptions, WithMeta } from './calls.ts';
import { DeckhandError, withCallerStack } from './errors.ts';
import type { FollowStream } from './follow.ts';
import type { Procedures } from './procedures.ts';

/** Every procedure, as `client.cards.create.mutate(…)`. */
export type Client = Procedures & {
  /** The same client with other defaults: `client.as({ projectId: 7 })`. They share the sign-in. */
  as: (defaults: CallDefaults) => Client;
};

/** Sends a call. `caller` has the stack of the line that made it. */
export type Send = (call: {
  path: string;
  kind: Kind;
  input: unknown;
  options: MutationOptions;
  caller: Error;
}) => Promise<WithMeta<unknown>>;

export function withDefaults(defaults: CallDefaults, send: Send, follow: FollowStream): Client {
  const as = (changed: CallDefaults) => withDefaults(mergeDefaults(defaults, changed), send, follow);
  const merged = <Call extends { options: CallDefaults }>(call: Call): Call => ({
    ...call,
    options: { ...call.options, ...mergeDefaults(defaults, call.options) },
  });
  const calls = {
    send: (call: Parameters<Send>[0]) => send(merged(call)),
    follow: (call: Parameters<FollowStream>[0]) => follow(merged(call)),
  };
  return procedureAt([], calls, { as }) as Client;
}

type Calls = { send: Send; follow: FollowStream };

/** A field that is undefined does not replace a default. */
function mergeDefaults(defaults: CallDefaults, changed: CallDefaults): CallDefaults {
  return {
    projectId: changed.projectId ?? defaults.projectId,
    timeoutMilliseconds: changed.timeoutMilliseconds ?? defaults.timeoutMilliseconds,
  };
}

/** `client.cards.create.mutate(input)` sends `cards.create`: each property access adds a part to the path. */
function procedureAt(path: string[], calls: Calls, members: Record<string, unknown> = {}): unknown {
  const call = (input: unknown, options: MutationOptions = {}): unknown => {
    const hasMeta = path.at(-1) === 'withMeta';
    const called = hasMeta ? path.slice(0, -1) : path;
    const [procedure, method] = [called.slice(0, -1).join('.'), called.at(-1)];
    const caller = new Error('The line that made the call.');
    (Error as V8Error).captureStackTrace?.(caller, call);
    const { send, follow } = calls;
    const parts = { path: procedure, options, caller };
    if (method === 'follow' && !hasMeta) return follow({ ...parts, path: path.join('.'), input });
    if (!METHODS.has(method) || (hasMeta && method === 'each'))
      throw withCallerStack(new DeckhandError(wrongMethod(path)), caller);
    if (method === 'each') {
      const list = async (page: object) => (await send({ ...parts, kind: 'query', input: page })).data as Page;
      return Object.assign(eachRow(list, input as object), { pages: () => eachPage(list, input as object) });
    }
    const sent = send({ ...parts, kind: method === 'query' ? 'query' : 'mutation', input });
    return hasMeta ? sent : sent.then(({ data }) => data);
  };
  return new Proxy(call, {
    get: (_, name) => {
      if (name === Symbol.toPrimitive) return () => ['client', ...path].join('.');
      if (typeof name === 'symbol' || NOT_PROCEDURES.has(name)) return undefined;
      return Object.hasOwn(members, name) ? members[name] : procedureAt([...path, name], calls);
    },
  });
}

const METHODS = new Set<string | undefined>(['query', 'mutate', 'each']);

/** For JavaScript, where the compiler does not catch `client.cards.create(…)`. */
const wrongMethod = (path: string[]) =>
  `${['client', ...path].join('.')} can't be called: a procedure has query or each if it reads, mutate if it changes something.`;

/** V8 can leave the lines of this file out of the stack. */
type V8Error = { captureStackTrace?: (error: Error, above: unknown) => void };

/** Properties that JavaScript reads when a value is awaited or printed. */
const NOT_PROCEDURES = new Set(['then', 'toJSON', 'toString', 'valueOf']);

type Page = { next_cursor?: string | null };

type List = (input: object) => Promise<Page>;

async function* eachPage(list: List, input: object = {}) {
  let page: Page = {};
  do {
    page = await list(page.next_cursor ? { ...input, cursor: page.next_cursor } : input);
    yield page;
  } while (page.next_cursor);
}

async function* eachRow(list: List, input: object | undefined) {
  for await (const page of eachPage(list, input)) yield* Object.values<unknown>(page).find(Array.isArray) ?? [];
}
