import { initTRPC, type TRPC_ERROR_CODE_NUMBER } from '@trpc/server';
import { TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc';
import { type FieldErrors, toFailure } from '../../shared/errors.ts';
import { ACCESS, type Access, mustHaveAccess, type Rule } from '../domain/access/access.ts';
import type { AccountCaller, Caller, Context, ProjectCaller } from '../domain/access/context.ts';
import type { Preparation } from '../domain/access/preparation.ts';
import { overLimit } from '../limits/rateLimit.ts';
import { type Once, runOnce, withKey } from './idempotency.ts';
import type { RestMeta } from './restOperation.ts';
import { mustBeReadable, transformer } from './rpcInput.ts';

export type Meta = Partial<RestMeta> & {
  access?: Access;
  /** Why it has no REST path. */
  rpcOnly?: string;
  /** For a mutation: how an idempotency key makes it happen once. */
  once?: Once;
  /** Its slow step before the first statement (`domain/preparation.ts`). */
  // biome-ignore lint/suspicious/noExplicitAny: the input of this procedure
  prepare?: Preparation<Context, any, unknown>;
};

const t = initTRPC
  .context<Context>()
  .meta<Meta>()
  .create({
    transformer,
    isDev: false,
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
  const { role: neededRole, right }: Rule = ACCESS[access];
  return t.procedure.meta({ access }).use(async ({ ctx, batchIndex, getRawInput, next, type, path, meta, signal }) => {
    // In a batch, only the calls beyond the rate limit are refused.
    if (batchIndex >= ctx.callsAllowed) throw overLimit(ctx);
    mustHaveAccess(ctx, { name: path, type, access });
    const input = await getRawInput();
    mustBeReadable(input);
    const keyed =
      ctx.keys && withKey(ctx, { path, type, batchIndex, input, right, once: meta?.once, prepare: meta?.prepare });
    const proceed = async () => {
      ctx.answerBudget?.mustNotBeSpent();
      const caller =
        neededRole === undefined ? undefined : { caller: { ...ctx.caller!, neededRole, actedIn: keyed && [] } };
      const work = (changes?: object) =>
        next((changes ? { ctx: changes } : KEEP_CONTEXT) as { ctx: { caller: Admitted } });
      const result = await (keyed
        ? runOnce({ ...ctx, ...caller }, keyed, (changes) => work({ ...caller, ...changes }))
        : work(caller));
      if (result.ok) ctx.answerBudget?.spend(result.data);
      return result;
    };
    // Sign-in waits in the queue for passwords instead.
    if (!ctx.caller || !ACCESS[access].needsSignIn) return proceed();
    return ctx.queue.run(`user:${ctx.caller.id}`, proceed, { longestWaitForOwnMilliseconds: 30_000, signal });
  });
}

/** Passing undefined keeps the context, which tRPC would copy otherwise; the cast only changes its type. */
const KEEP_CONTEXT: unknown = undefined;
