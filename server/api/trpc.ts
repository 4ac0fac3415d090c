import { initTRPC, type TRPC_ERROR_CODE_NUMBER, type TRPCProcedureBuilder } from '@trpc/server';
import { TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc';
import { type FieldErrors, toFailure } from '../../shared/errors.ts';
import { ACCESS, type Access, mustHaveAccess, type Rule } from '../domain/access/access.ts';
import type { AccountCaller, Caller, Context, ProjectCaller } from '../domain/access/context.ts';
import type { Preparation } from '../domain/access/preparation.ts';
import { overLimit } from '../limits/rateLimit.ts';
import { type Idempotency, keyOf, runOnce } from './idempotency.ts';
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
export const viewerProcedure = procedureFor<ProjectCaller>('viewer');
export const memberProcedure = procedureFor<ProjectCaller>('member');
export const ownerOrSuperadminProcedure = procedureFor<ProjectCaller>('ownerOrSuperadmin');
export const billingProcedure = procedureFor<ProjectCaller>('billing');
export const superadminProcedure = procedureFor<Caller>('superadmin');

function procedureFor<Admitted extends Caller | undefined>(access: Access) {
  const { role: neededRole, needsSignIn }: Rule = ACCESS[access];
  const procedure = t.procedure
    .meta({ access })
    .use(async ({ ctx, batchIndex, getRawInput, next, type, path, meta, signal }) => {
      // In a batch, only the calls beyond the rate limit are refused.
      if (batchIndex >= ctx.callsAllowed) throw overLimit(ctx);
      mustHaveAccess(ctx, { name: path, type, access });
      mustBeReadable(await getRawInput());
      const idempotencyKey = keyOf(ctx, { type, batchIndex, mode: meta?.idempotency });
      const proceed = async () => {
        ctx.responseBudget?.mustNotBeSpent();
        const caller =
          neededRole === undefined
            ? undefined
            : { caller: { ...ctx.caller, neededRole, actedIn: idempotencyKey === undefined ? undefined : [] } };
        // tRPC would copy the context for an empty change, too.
        const changes: object | undefined =
          caller || idempotencyKey !== undefined ? { ...caller, idempotencyKey } : undefined;
        const result = await next({ ctx: changes as { caller: Admitted } });
        if (result.ok) ctx.responseBudget?.spend(result.data);
        return result;
      };
      // Sign-in waits in the queue for passwords instead.
      if (!ctx.caller || !needsSignIn) return proceed();
      return ctx.queue.run(`user:${ctx.caller.id}`, proceed, { longestWaitForOwnMilliseconds: 30_000, signal });
    });
  return withStepBehindInput(procedure);
}

/** Behind the input: runs a mutation with a key only once and, if there are replicas, a query on one of them. */
const behindInput = t.middleware((call) => {
  const { ctx, type, meta, next } = call;
  const { replicas } = ctx;
  if (replicas === undefined) return runMutation(call);
  if (type === 'mutation') return noteWriteAfter({ ...ctx, replicas }, () => runMutation(call));
  if (meta?.onPrimary) return next();
  return readOnReplica({ ...ctx, replicas }, (changes) => next({ ctx: changes }));
});

type MiddlewareCall = Parameters<Parameters<typeof t.middleware>[0]>[0];

function runMutation({ ctx, input, path, batchIndex, meta, next }: MiddlewareCall) {
  const { idempotencyKey: key, caller } = ctx;
  if (key === undefined || !caller) return next();
  const { idempotency: mode, prepare, access, rest } = meta ?? {};
  const { right }: Partial<Rule> = access ? ACCESS[access] : {};
  const documents422 = rest ? (rest.errors?.includes(422) ?? input !== undefined) : true;
  const call = { path, batchIndex, key, input, mode, prepare, right, documents422 };
  return runOnce({ ...ctx, caller }, call, (changes) => next({ ctx: changes }));
}

/** Adds the step `behindInput` to the procedures that are built on this one: behind the input, which it needs parsed. */
function withStepBehindInput<Builder extends AnyBuilder>(builder: Builder): Builder {
  return {
    ...builder,
    meta: (meta) => withStepBehindInput(builder.meta(meta)),
    input: (schema) => withStepBehindInput(builder.input(schema)),
    output: (schema) => builder.use(behindInput).output(schema),
  } as Builder;
}

// biome-ignore lint/suspicious/noExplicitAny: whatever the procedure has so far
type AnyBuilder = TRPCProcedureBuilder<any, any, any, any, any, any, any, any, any>;
