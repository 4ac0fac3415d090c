import {
  getTRPCErrorFromUnknown,
  initTRPC,
  type TRPC_ERROR_CODE_NUMBER,
  type TRPCProcedureBuilder,
  type TRPCUnsetMarker,
  type TrackedEnvelope,
  tracked,
} from '@trpc/server';
import { TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc';
import { z } from 'zod';
import { type FieldErrors, toFailure } from '../../shared/errors.ts';
import type { EventType } from '../../shared/event.ts';
import type { Role } from '../../shared/user.ts';
import { mustBeAtLevel } from '../database/level.ts';
import { ACCESS, type Access, mustHaveAccess, type Rule } from '../domain/access/access.ts';
import type { AccountCaller, Caller, Context, KeyCaller, ProjectCaller } from '../domain/access/context.ts';
import type { Preparation } from '../domain/access/preparation.ts';
import type { ProofNeed } from '../domain/access/proofNeed.ts';
import { mustBeProven } from '../domain/account/proof.ts';
import { overLimit } from '../limits/rateLimit.ts';
import type { Deprecation } from './deprecation.ts';
import { type Idempotency, keyOf, type Result, runOnce } from './idempotency.ts';
import { inputParser, outputParser, type Parse, type ParseInput } from './parser.ts';
import { noteWriteAfter, readOnReplica } from './replicaReads.ts';
import type { RestMeta } from './restOperation.ts';
import { mustBeReadable, transformer } from './rpcInput.ts';

export type Meta = Partial<RestMeta> & {
  access?: Access;
  /** Why it has no REST path. */
  rpcOnly?: string;
  /** For a mutation: how an idempotency key makes it happen once. */
  idempotency?: Idempotency;
  /** Its slow step before the first statement (`domain/access/preparation.ts`). */
  // biome-ignore lint/suspicious/noExplicitAny: the input of this procedure
  prepare?: Preparation<Context, any, unknown>;
  /** For a call with many rows: what it counts as in the rate limit, by its input. */
  // biome-ignore lint/suspicious/noExplicitAny: the input of this procedure
  countsAs?: (input: any) => number;
  /** The events that a mutation writes. */
  events?: readonly EventType[];
  /** The level that the database needs, since nodes of the previous version could not read what it writes (`level.ts`). */
  level?: number;
  /** Set if it needs fresh proof; descriptions, and the scopes of keys, follow from it. */
  proof?: ProofNeed;
  /** Set if it will end: callers, operators and documents are told. */
  deprecated?: Deprecation;
  /** Whether assistants get it as a tool of its own (`tools.ts`); they find all others with `operations_search`. */
  tool?: boolean;
  /** For a query that reads itself what its caller has access to: it never runs on a replica, which may be behind. */
  onPrimary?: boolean;
};

const t = initTRPC
  .context<Context>()
  .meta<Meta>()
  .create({
    transformer,
    isDev: false,
    // A stream without any bytes would be closed as unread.
    jsonl: { pingMs: 10_000, contentType: 'application/jsonl' },
    errorFormatter: ({ shape, error }) => {
      const { code, status, reason, message, errors, retryAfterSeconds } = toFailure(error);
      return {
        message,
        code: TRPC_ERROR_CODES_BY_KEY[code] as TRPC_ERROR_CODE_NUMBER,
        data: {
          code,
          httpStatus: status,
          reason,
          path: shape.data.path,
          errors: errors as FieldErrors | undefined,
          retryAfterSeconds,
        },
      };
    },
  });

export const { router } = t;

/** One base procedure per access level (`access.ts`), with the type of its caller. */
export const anyoneProcedure = procedureFor<Caller | undefined>('anyone');
export const signedInProcedure = procedureFor<AccountCaller>('signedIn');
export const keyProcedure = procedureFor<KeyCaller>('key');
export const viewerProcedure = procedureFor<ProjectCaller>('viewer');
export const memberProcedure = procedureFor<ProjectCaller>('member');
export const ownerOrSuperadminProcedure = procedureFor<ProjectCaller>('ownerOrSuperadmin');
export const billingProcedure = procedureFor<ProjectCaller>('billing');
export const superadminProcedure = procedureFor<Caller>('superadmin');

function procedureFor<Admitted extends Caller | undefined>(access: Access) {
  return builderOf(t.procedure.meta({ access }) as BaseProcedure<{ caller: Admitted }>, { access });
}

type BaseProcedure<Changes, Unset = TRPCUnsetMarker> = TRPCProcedureBuilder<
  Context,
  Meta,
  Changes,
  Unset,
  Unset,
  Unset,
  Unset,
  false
>;

// biome-ignore lint/suspicious/noExplicitAny: whatever the procedure has so far
type AnyBuilder = TRPCProcedureBuilder<any, any, any, any, any, any, any, any, any>;

/**
 * Builds procedures without middlewares: tRPC takes longer for each of them, and for its own input and output steps, than for all
 * the rest of a call. `answerCall` does all steps, and tRPC only keeps the schemas, for the types and the documentation.
 */
function builderOf<Builder extends AnyBuilder>(builder: Builder, steps: Steps): Builder {
  const keep = (schemas: object) => builder.concat({ _def: { inputs: [], ...schemas } } as unknown as AnyBuilder);
  const wrap =
    (resolve: Resolver, taken = steps) =>
    (call: unknown) =>
      answerCall(call as Call, taken, resolve);
  return {
    _def: builder._def,
    meta: (meta) => builderOf(builder.meta(meta), steps),
    input: (input: z.ZodType) => builderOf(keep({ inputs: [input] }), { ...steps, parseInput: inputParser(input) }),
    output: (output: z.ZodType) => builderOf(keep({ output }), { ...steps, parseOutput: outputParser(output) }),
    query: (resolve: Resolver) => builder.query(wrap(resolve)),
    mutation: (resolve: Resolver) => builder.mutation(wrap(resolve)),
    subscription: (resolve: Resolver) => builder.subscription(wrap(resolve, eventSteps(steps)) as never),
  } as Builder;
}

/**
 * The output of a subscription, by the schema of each event: tRPC wants the type of the whole stream, while `eventSteps` checks
 * each event by itself.
 */
export const each = <Schema extends z.ZodType>(event: Schema) =>
  event as unknown as z.ZodType<AsyncIterable<TrackedEnvelope<z.output<Schema>>>>;

/**
 * The steps of a subscription are those of a call, until its stream begins: waiting for events takes no slot of the queue. An
 * event that goes to many followers is checked once.
 */
function eventSteps({ parseOutput, ...steps }: Steps): Steps {
  if (!parseOutput) return steps;
  const checked = new WeakMap<object, unknown>();
  const check = (event: object) => {
    if (!checked.has(event)) checked.set(event, parseOutput(event));
    return checked.get(event);
  };
  async function* checkEach(stream: AsyncIterable<TrackedEnvelope<object>>) {
    for await (const [id, event] of stream) yield tracked(id, check(event));
  }
  const parse: Parse = (stream) => {
    const events = stream as AsyncIterable<TrackedEnvelope<object>>;
    return { ...events, [Symbol.asyncIterator]: () => checkEach(events) };
  };
  return { ...steps, parseOutput: parse };
}

/** What differs between procedures. */
type Steps = { access: Access; parseInput?: ParseInput; parseOutput?: Parse };

/** What tRPC passes to a middleware; a resolver gets the same. */
type Call = Parameters<Parameters<typeof t.middleware>[0]>[0];

type Resolver = (options: { ctx: Context; input: unknown } & Pick<Call, 'path' | 'signal' | 'batchIndex'>) => unknown;

/** The steps of every call, in their order. */
async function answerCall(call: Call, steps: Steps, resolve: Resolver): Promise<unknown> {
  const { access, parseInput, parseOutput } = steps;
  const { ctx, batchIndex, type, path, meta, signal } = call;
  // In a batch, only the calls beyond the rate limit are refused.
  if (batchIndex >= ctx.callsAllowed) throw overLimit(ctx);
  mustHaveAccess(ctx, { name: path, type, access, proof: meta?.proof });
  const sent = await call.getRawInput();
  mustBeReadable(sent);
  const idempotencyKey = keyOf(ctx, { type, batchIndex, mode: meta?.idempotency });

  const { role: neededRole, needsSignIn }: Rule = ACCESS[access];
  const proceed = async () => {
    ctx.responseBudget?.mustNotBeSpent();
    const input = readInput(sent, call, parseInput);
    if (meta?.level !== undefined) await mustBeAtLevel(ctx.db, meta.level);
    if (meta?.proof && ctx.caller) await mustBeProven({ ...ctx, caller: ctx.caller }, meta.proof, input);
    const own = ownContext(ctx, neededRole, idempotencyKey);
    const run = () =>
      runBehindInput({ ctx: own, input, type, path, batchIndex, meta }, async (changes) => {
        const result = await resolve({ ctx: changes ? { ...own, ...changes } : own, input, path, signal, batchIndex });
        return parseOutput ? parseOutput(result) : result;
      });
    const further = (meta?.countsAs?.(input) ?? 1) - 1;
    const data = await (further > 0 && ctx.countFurther ? ctx.countFurther(further, run) : run());
    ctx.responseBudget?.spend(data);
    return data;
  };
  // Sign-in waits in the queue for passwords instead.
  if (!ctx.caller || !needsSignIn) return proceed();
  return ctx.queue.run(`user:${ctx.caller.id}`, proceed, { longestWaitForOwnMilliseconds: 30_000, signal });
}

/** The specified operations ignore unknown fields, as specified, except for assistants, who would take that for success. */
function readInput(sent: unknown, { ctx, meta }: Call, parseInput: ParseInput | undefined): unknown {
  const isStrict = !meta?.rest?.isSpecified || ctx.origin.surface === 'mcp';
  if (parseInput) return parseInput(sent, isStrict);
  if (sent !== undefined) parseNothing(sent, isStrict);
  return undefined;
}
/** For procedures without an input. */
const parseNothing = inputParser(z.object({}).or(z.unknown()));

/** The calls of a batch share their context, so it is copied for what differs. */
function ownContext(ctx: Context, neededRole: Role | undefined, idempotencyKey: string | undefined): Context {
  if (neededRole === undefined) return idempotencyKey === undefined ? ctx : { ...ctx, idempotencyKey };
  const caller = { ...ctx.caller, neededRole, actedIn: idempotencyKey === undefined ? undefined : [] };
  return { ...ctx, caller: caller as ProjectCaller, idempotencyKey };
}

/** A call with its own context and its parsed input. */
type ReadCall = { ctx: Context; input: unknown } & Pick<Call, 'type' | 'path' | 'batchIndex' | 'meta'>;

/** The procedure itself, with these changes to its context. */
type Work = (changes?: Partial<Context>) => Promise<unknown>;

/** Runs a mutation with a key only once and, if there are replicas, a query on one of them. */
async function runBehindInput(call: ReadCall, work: Work): Promise<unknown> {
  const { ctx, type, meta } = call;
  const { replicas } = ctx;
  if (replicas === undefined) return runMutation(call, work);
  if (type === 'mutation') return noteWriteAfter({ ...ctx, replicas }, () => runMutation(call, work));
  if (meta?.onPrimary) return work();
  return dataOf(await readOnReplica({ ...ctx, replicas }, (changes) => resultOf(work(changes))));
}

/** Wakes the event hub after the change, so that followers get its events at once. */
async function runMutation(call: ReadCall, work: Work): Promise<unknown> {
  const data = await runWithKey(call, work);
  if (call.meta?.events) call.ctx.eventHub.announce();
  return data;
}

async function runWithKey({ ctx, input, path, batchIndex, meta }: ReadCall, work: Work): Promise<unknown> {
  const { idempotencyKey: key, caller } = ctx;
  if (key === undefined || !caller) return work();
  const { idempotency: mode, prepare, access, rest } = meta ?? {};
  const { right }: Partial<Rule> = access ? ACCESS[access] : {};
  const documents422 = rest ? (rest.errors?.includes(422) ?? input !== undefined) : true;
  const call = { path, batchIndex, key, input, mode, prepare, right, documents422 };
  return dataOf(await runOnce({ ...ctx, caller }, call, (changes) => resultOf(work(changes))));
}

const resultOf = (data: Promise<unknown>): Promise<Result> =>
  data.then(
    (data) => ({ ok: true, data }),
    (error) => ({ ok: false, error: getTRPCErrorFromUnknown(error) }),
  );

function dataOf(result: Result): unknown {
  if (!result.ok) throw result.error;
  return result.data;
}
