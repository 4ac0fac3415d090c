import fc from 'fast-check';
import { procedures } from '../../server/api/procedures.ts';
import { inputSchemaOf } from '../../server/contract/input.ts';
import { changed } from '../harness/arbitrary.ts';
import { annotated } from './annotation.ts';
import { anyCall, batchedCall, type Call, calls, cheapCall, restCall, restCheapCall } from './call.ts';
import { headerVariant } from './header.ts';
import { type BodyVariant, bodyVariant } from './hostile.ts';
import { malformed } from './malformed.ts';
import { pathVariant, withPathVariant } from './path.ts';
import type { FuzzWorld, Who } from './world.ts';

/** Random requests generated from the schemas of the operations: valid, nearly valid and hostile. */

export type FuzzRequest = {
  surface: 'rest' | 'rpc' | 'mcp' | 'other';
  kind: string;
  /** The called operations, in the order of the answers. */
  operations: string[];
  method: string;
  path: string;
  headers: [string, string][];
  body: Buffer | undefined;
  isChunked: boolean;
};

/** Raw bytes for a separate socket. */
export type SocketRequest = {
  surface: 'socket';
  kind: string;
  operations: string[];
  bytes: Buffer;
  /** The expected number of answers; 0 if the caller disconnects. */
  answers: number;
  isRefused: boolean;
};

/** A request that still needs tokens and existing ids from the world. */
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
  // Calls that sign out or change a password use an expendable user.
  const isExpendable = operations.some((name) => name.startsWith('account.')) && who in world.tokens;
  const token = isExpendable ? world.tokens.expendable : tokenOf(who, pick, world);
  const project = world.projects[pick % world.projects.length];
  return [
    ...(token === undefined ? [] : [['authorization', `Bearer ${token}`] satisfies [string, string]]),
    ...(isChoosing && pick % 4 === 0 ? [['x-project-id', String(project)] satisfies [string, string]] : []),
  ];
}

/** A forged token has one character changed. */
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

const requestOver =
  (surface: 'rest' | 'rpc') =>
  ({ call, caller, isChunked }: Parts, world: FuzzWorld): FuzzRequest => {
    const { name, rest } = call.procedure;
    const input = call.inputIn(world);
    return {
      surface,
      kind: call.kind,
      operations: [name],
      method: 'POST',
      path: surface === 'rest' ? `/api${rest!.path}` : `/trpc/${name}`,
      headers: [JSON_TYPE, ...headersOf(caller, [name], world)],
      body: Buffer.from(JSON.stringify(surface === 'rest' ? input : { json: input }) ?? ''),
      isChunked,
    };
  };
const rpcRequest = requestOver('rpc');

/** The same call as a message of an assistant, mostly as one of its tools takes it. */
const MESSAGES: { name: string; of: (operation: string, input: unknown) => unknown }[] = [
  ...Array.from({ length: 6 }, () => ({ name: 'call', of: operationCall })),
  { name: 'key', of: (name, input) => ({ ...operationCall(name, input), _meta: { idempotency_key: name } }) },
  { name: 'odd key', of: (name, input) => ({ ...operationCall(name, input), _meta: { idempotency_key: input } }) },
  { name: 'tool', of: (name, input) => ({ name: name.replace('.', '_'), arguments: input }) },
  { name: 'search', of: (name) => ({ name: 'operations_search', arguments: { query: name } }) },
  { name: 'odd arguments', of: (name, input) => ({ name: 'operations_call', arguments: [name, input] }) },
  { name: 'odd tool', of: (_, input) => ({ name: '__proto__', arguments: input }) },
  { name: 'no parameters', of: () => undefined },
];

function operationCall(name: string, input: unknown) {
  return { name: 'operations_call', arguments: { name, input } };
}

const messageRequest = fc
  .record({
    made: parts(anyCall),
    message: fc.constantFrom(...MESSAGES),
    id: fc.constantFrom(1, 'x', null, undefined, {}),
  })
  .map(({ made, message, id }) => (world: FuzzWorld): FuzzRequest => {
    const request = rpcRequest(made, world);
    const params = message.of(made.call.procedure.name, made.call.inputIn(world));
    return {
      ...request,
      surface: 'mcp',
      kind: `message: ${message.name}`,
      path: '/mcp',
      headers: [...request.headers, ['accept', 'application/json, text/event-stream']],
      body: Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })),
    };
  });

/** The input of a query in the URL. Larger ones don't fit into Node's limit for headers, which is checked elsewhere. */
function asGet(request: FuzzRequest): FuzzRequest {
  const input = encodeURIComponent(request.body!.toString().toWellFormed());
  if (request.surface !== 'rpc' || input.length > LONGEST_INPUT) return request;
  const separator = request.path.includes('?') ? '&' : '?';
  const path = `${request.path}${separator}input=${input}`;
  return { ...request, kind: `GET: ${request.kind}`, method: 'GET', path, body: undefined, isChunked: false };
}
const LONGEST_INPUT = 8000;

function withBodyVariant(request: FuzzRequest, { name, apply, headers = [] }: BodyVariant): FuzzRequest {
  const body = apply(request.body!.toString());
  return { ...request, kind: `body: ${name}`, body, headers: [...request.headers, ...headers] };
}

/** Replaces headers of the same name. */
function withHeaders(request: FuzzRequest, added: [string, string][]): FuzzRequest {
  const others = request.headers.filter(([name]) => !added.some(([other]) => other === name));
  return { ...request, kind: `header: ${added[0]![0]}`, headers: [...others, ...added] };
}

/** An otherwise valid input with superjson annotations. */
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

type BatchVariant = { name: string; query?: string; apply: (inputs: unknown[]) => unknown };

const numbered = (inputs: unknown[]) => ({ ...inputs });
const BATCH_VARIANTS: BatchVariant[] = [
  ...Array.from({ length: 8 }, () => ({ name: 'plain', apply: numbered })),
  { name: 'hole', apply: (inputs) => ({ ...numbered(inputs), 0: undefined }) },
  { name: 'shifted', apply: (inputs) => ({ ...[null, ...inputs] }) },
  { name: 'odd keys', apply: (inputs) => ({ ...numbered(inputs), 4294967296: {}, '-1': {}, '1e3': {}, x: {} }) },
  { name: '__proto__', apply: (inputs) => JSON.parse(`{"__proto__":${JSON.stringify(numbered(inputs))}}`) },
  { name: 'array', apply: (inputs) => inputs },
  { name: 'null', apply: () => null },
  { name: 'text', apply: () => 'x' },
  { name: 'nulls', apply: (inputs) => numbered(inputs.map(() => null)) },
  { name: 'without json', apply: (inputs) => numbered(inputs.map(() => ({ meta: { values: ['undefined'] } }))) },
  { name: 'batch=2', query: '?batch=2', apply: numbered },
  { name: 'batch twice', query: '?batch=1&batch=1', apply: numbered },
  { name: 'no batch', query: '', apply: numbered },
  { name: 'input in the query', query: '?batch=1&input=%7B%220%22%3A1%7D', apply: numbered },
];

function batchesOf(call: fc.Arbitrary<Call>): fc.Arbitrary<Made> {
  return fc
    .record({
      calls: fc.array(call, { minLength: 1, maxLength: 6 }),
      times: fc.oneof({ weight: 20, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.constantFrom(50, 51, 60) }),
      isMixed: fc.nat({ max: 7 }).map((n) => n === 0),
      odd: fc.option(fc.constantFrom('__proto__', 'constructor', 'boards', 'boards.', '', 'no.such'), { freq: 6 }),
      variant: fc.constantFrom(...BATCH_VARIANTS),
      caller,
    })
    .map(({ calls, times, isMixed, odd, variant, caller }) => (world: FuzzWorld): FuzzRequest => {
      // A batch that mixes queries and mutations is refused as a whole.
      const alike = calls.filter(({ procedure }) => isMixed || procedure.type === calls[0]!.procedure.type);
      const called = times === 1 ? alike : Array.from({ length: times }, () => calls[0]!);
      const operations = [...called.map(({ procedure }) => procedure.name), ...(odd === null ? [] : [odd])];
      const inputs = called.map(({ inputIn }) => ({ json: inputIn(world) }));
      return {
        surface: 'rpc',
        kind: `batch: ${variant.name}`,
        operations,
        method: 'POST',
        path: `/trpc/${operations.join(',')}${variant.query ?? '?batch=1'}`,
        headers: [JSON_TYPE, ...headersOf(caller, operations, world)],
        body: Buffer.from(JSON.stringify(variant.apply(inputs))),
        isChunked: false,
      };
    });
}

type Made = (world: FuzzWorld) => FuzzRequest;

const inWorld = <Value>(
  arbitrary: fc.Arbitrary<Value>,
  make: (value: Value, world: FuzzWorld) => FuzzRequest,
): fc.Arbitrary<Made> => arbitrary.map((value) => (world) => make(value, world));

/** All kinds of requests, weighted towards the usual ones. */
function requestsOf(
  restCall: fc.Arbitrary<Call>,
  rpcCall: fc.Arbitrary<Call>,
  batchedCall: fc.Arbitrary<Call>,
): fc.Arbitrary<Draft> {
  const plain = fc.oneof(inWorld(parts(restCall), requestOver('rest')), inWorld(parts(rpcCall), rpcRequest));
  const varied = <Variant>(
    variant: fc.Arbitrary<Variant>,
    apply: (request: FuzzRequest, variant: Variant) => FuzzRequest,
  ) => inWorld(fc.tuple(plain, variant), ([made, variant], world) => apply(made(world), variant));
  const gettable = fc.oneof(plain, annotatedRequest, batchesOf(batchedCall));
  return fc.oneof<{ weight: number; arbitrary: fc.Arbitrary<Draft> }[]>(
    { weight: 50, arbitrary: plain },
    { weight: 12, arbitrary: varied(bodyVariant, withBodyVariant) },
    { weight: 12, arbitrary: varied(headerVariant, withHeaders) },
    { weight: 10, arbitrary: annotatedRequest },
    { weight: 8, arbitrary: batchesOf(batchedCall) },
    { weight: 8, arbitrary: messageRequest },
    { weight: 6, arbitrary: inWorld(gettable, (made, world) => asGet(made(world))) },
    { weight: 6, arbitrary: varied(pathVariant, withPathVariant) },
    { weight: 2, arbitrary: malformed },
  );
}

export const anyRequest = requestsOf(restCall, anyCall, batchedCall);

/** Requests for long runs: they check few passwords, and every row they add can be deleted. */
export const cheapRequest = requestsOf(restCheapCall, cheapCall, cheapCall);
