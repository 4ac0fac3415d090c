import fc from 'fast-check';
import { procedures } from '../../server/procedures.ts';
import { changed, inputSchemaOf } from '../harness/arbitrary.ts';
import { annotated } from './annotation.ts';
import { anyCall, batchedCall, type Call, calls, cheapCall, restCall, restCheapCall } from './call.ts';
import { headerGame } from './header.ts';
import { type BodyGame, bodyGame } from './hostile.ts';
import { malformed } from './malformed.ts';
import { pathGame, withPathGame } from './path.ts';
import type { FuzzWorld, Who } from './world.ts';

/** Requests made by chance from the schemas of the operations: valid, nearly valid and hostile. */

export type FuzzRequest = {
  surface: 'rest' | 'rpc' | 'other';
  kind: string;
  /** What it calls, in the order of its answers. */
  operations: string[];
  method: string;
  path: string;
  headers: [string, string][];
  body: Buffer | undefined;
  isChunked: boolean;
};

/** Bytes for a socket of their own. */
export type SocketRequest = {
  surface: 'socket';
  kind: string;
  operations: string[];
  bytes: Buffer;
  /** How many answers there are to be; 0 where the caller goes away. */
  answers: number;
  isRefused: boolean;
};

/** A request but for what only the world knows: tokens, and ids that are there. */
export type Draft = (world: FuzzWorld) => FuzzRequest | SocketRequest;

type Caller = { who: Who | 'nobody' | 'forger'; pick: number; isChoosing: boolean };

const caller = fc.record<Caller>({
  who: fc.oneof(
    { weight: 10, arbitrary: fc.constant<Who>('superadmin') },
    { weight: 6, arbitrary: fc.constantFrom<Who>('owner', 'member', 'member', 'viewer', 'outsider') },
    { weight: 1, arbitrary: fc.constantFrom('nobody' as const, 'forger' as const) },
  ),
  pick: fc.nat({ max: 100 }),
  isChoosing: fc.boolean(),
});

const JSON_TYPE: [string, string] = ['content-type', 'application/json'];

function headersOf({ who, pick, isChoosing }: Caller, operations: string[], world: FuzzWorld): [string, string][] {
  // Whoever signs out, or changes their password, is one whom nobody misses.
  const isExpendable = operations.some((name) => name.startsWith('account.')) && who in world.tokens;
  const token = isExpendable ? world.tokens.expendable : tokenOf(who, pick, world);
  const project = world.projects[pick % world.projects.length];
  return [
    ...(token === undefined ? [] : [['authorization', `Bearer ${token}`] satisfies [string, string]]),
    ...(isChoosing && pick % 4 === 0 ? [['x-project-id', String(project)] satisfies [string, string]] : []),
  ];
}

/** A token with one character changed is a forger's. */
function tokenOf(who: Caller['who'], pick: number, { tokens }: FuzzWorld): string | undefined {
  if (who === 'nobody') return undefined;
  if (who !== 'forger') return tokens[who];
  const at = (pick * 7) % tokens.superadmin.length;
  const other = tokens.superadmin[at] === 'A' ? 'B' : 'A';
  return tokens.superadmin.slice(0, at) + other + tokens.superadmin.slice(at + 1);
}

type Parts = { call: Call; caller: Caller; isChunked: boolean };

const parts = (call: fc.Arbitrary<Call>) =>
  fc.record<Parts>({ call, caller, isChunked: fc.nat({ max: 20 }).map((n) => n === 0) });

function restRequest({ call, caller, isChunked }: Parts, world: FuzzWorld): FuzzRequest & { surface: 'rest' } {
  const operations = [call.procedure.name];
  return {
    surface: 'rest',
    kind: call.kind,
    operations,
    method: 'POST',
    path: `/api${call.procedure.rest!.path}`,
    headers: [JSON_TYPE, ...headersOf(caller, operations, world)],
    body: Buffer.from(JSON.stringify(call.inputIn(world)) ?? ''),
    isChunked,
  };
}

function rpcRequest({ call, caller, isChunked }: Parts, world: FuzzWorld): FuzzRequest {
  const operations = [call.procedure.name];
  return {
    surface: 'rpc',
    kind: call.kind,
    operations,
    method: 'POST',
    path: `/trpc/${call.procedure.name}`,
    headers: [JSON_TYPE, ...headersOf(caller, operations, world)],
    body: Buffer.from(JSON.stringify({ json: call.inputIn(world) })),
    isChunked,
  };
}

function withBodyGame(request: FuzzRequest, { name, play, headers = [] }: BodyGame): FuzzRequest {
  const body = play(request.body!.toString());
  return { ...request, kind: `body: ${name}`, body, headers: [...request.headers, ...headers] };
}

/** Headers of the game take the place of those with the same name. */
function withHeaders(request: FuzzRequest, game: [string, string][]): FuzzRequest {
  const others = request.headers.filter(([name]) => !game.some(([played]) => played === name));
  return { ...request, kind: `header: ${game[0]![0]}`, headers: [...others, ...game] };
}

/** superjson's annotations, in an input that is valid but for them. */
const annotatedRequest = fc
  .constantFrom(...procedures)
  .chain((procedure) =>
    fc.tuple(parts(calls.get(procedure.name)!), annotated(Object.keys(inputSchemaOf(procedure).properties ?? {}))),
  )
  .map(([made, { at, value, isReplaced, meta }]) => (world: FuzzWorld): FuzzRequest => {
    const input = made.call.inputIn(world);
    const json = isReplaced ? changed(input, { path: [at], value }) : input;
    return {
      ...rpcRequest(made, world),
      kind: 'superjson',
      body: Buffer.from(JSON.stringify(value === null ? { meta } : { json, meta })),
    };
  });

type BatchGame = { name: string; query?: string; play: (inputs: unknown[]) => unknown };

const numbered = (inputs: unknown[]) => ({ ...inputs });
const BATCH_GAMES: BatchGame[] = [
  ...Array.from({ length: 8 }, () => ({ name: 'plain', play: numbered })),
  { name: 'hole', play: (inputs) => ({ ...numbered(inputs), 0: undefined }) },
  { name: 'shifted', play: (inputs) => ({ ...[null, ...inputs] }) },
  { name: 'far away', play: (inputs) => ({ ...numbered(inputs), 4294967296: {}, '-1': {}, '1e3': {}, x: {} }) },
  { name: '__proto__', play: (inputs) => JSON.parse(`{"__proto__":${JSON.stringify(numbered(inputs))}}`) },
  { name: 'array', play: (inputs) => inputs },
  { name: 'null', play: () => null },
  { name: 'text', play: () => 'x' },
  { name: 'nulls', play: (inputs) => numbered(inputs.map(() => null)) },
  { name: 'without json', play: (inputs) => numbered(inputs.map(() => ({ meta: { values: ['undefined'] } }))) },
  { name: 'batch=2', query: '?batch=2', play: numbered },
  { name: 'batch twice', query: '?batch=1&batch=1', play: numbered },
  { name: 'no batch', query: '', play: numbered },
  { name: 'input in the query', query: '?batch=1&input=%7B%220%22%3A1%7D', play: numbered },
];

function batchesOf(call: fc.Arbitrary<Call>): fc.Arbitrary<Made> {
  return fc
    .record({
      calls: fc.array(call, { minLength: 1, maxLength: 6 }),
      times: fc.oneof({ weight: 20, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.constantFrom(50, 51, 60) }),
      isMixed: fc.nat({ max: 7 }).map((n) => n === 0),
      odd: fc.option(fc.constantFrom('__proto__', 'constructor', 'boards', 'boards.', '', 'no.such'), { freq: 6 }),
      game: fc.constantFrom(...BATCH_GAMES),
      caller,
    })
    .map(({ calls, times, isMixed, odd, game, caller }) => (world: FuzzWorld): FuzzRequest => {
      // Queries and mutations together are refused as a whole.
      const alike = calls.filter(({ procedure }) => isMixed || procedure.type === calls[0]!.procedure.type);
      const called = times === 1 ? alike : Array.from({ length: times }, () => calls[0]!);
      const operations = [...called.map(({ procedure }) => procedure.name), ...(odd === null ? [] : [odd])];
      const inputs = called.map(({ inputIn }) => ({ json: inputIn(world) }));
      return {
        surface: 'rpc',
        kind: `batch: ${game.name}`,
        operations,
        method: 'POST',
        path: `/trpc/${operations.join(',')}${game.query ?? '?batch=1'}`,
        headers: [JSON_TYPE, ...headersOf(caller, operations, world)],
        body: Buffer.from(JSON.stringify(game.play(inputs))),
        isChunked: false,
      };
    });
}

type Made = (world: FuzzWorld) => FuzzRequest;

/** Everything, the most usual most often. */
function requestsOf(
  restCall: fc.Arbitrary<Call>,
  rpcCall: fc.Arbitrary<Call>,
  batchedCall: fc.Arbitrary<Call>,
): fc.Arbitrary<Draft> {
  const plain = fc.oneof(
    parts(restCall).map(
      (made): Made =>
        (world) =>
          restRequest(made, world),
    ),
    parts(rpcCall).map(
      (made): Made =>
        (world) =>
          rpcRequest(made, world),
    ),
  );
  const played = <Game>(game: fc.Arbitrary<Game>, play: (request: FuzzRequest, game: Game) => FuzzRequest) =>
    fc.tuple(plain, game).map(
      ([made, game]): Made =>
        (world) =>
          play(made(world), game),
    );
  return fc.oneof<{ weight: number; arbitrary: fc.Arbitrary<Draft> }[]>(
    { weight: 50, arbitrary: plain },
    { weight: 12, arbitrary: played(bodyGame, withBodyGame) },
    { weight: 12, arbitrary: played(headerGame, withHeaders) },
    { weight: 10, arbitrary: annotatedRequest },
    { weight: 8, arbitrary: batchesOf(batchedCall) },
    { weight: 6, arbitrary: played(pathGame, withPathGame) },
    { weight: 2, arbitrary: malformed },
  );
}

export const anyRequest = requestsOf(restCall, anyCall, batchedCall);

/** Those that a long run can repeat: hardly a password is checked, and every row that is added can be deleted. */
export const cheapRequest = requestsOf(restCheapCall, cheapCall, cheapCall);
