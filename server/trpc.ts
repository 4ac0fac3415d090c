import { initTRPC, type TRPC_ERROR_CODE_NUMBER } from '@trpc/server';
import { TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc';
import type { Role } from '../shared/user.ts';
import type { Context } from './context.ts';
import { type Access, admit, type Caller, type ProjectCaller } from './domain/caller.ts';
import { describe, type FieldErrors, tooManyRequests } from './errors.ts';
import type { RestMeta } from './restOperation.ts';
import { mustBeReadable, transformer } from './rpcInput.ts';

export type Meta = Partial<RestMeta> & {
  access?: Access;
  /** What it does, where the command line offers it too. */
  command?: string;
};

const t = initTRPC
  .context<Context>()
  .meta<Meta>()
  .create({
    transformer,
    isDev: false,
    errorFormatter: ({ shape, error }) => {
      const { code, status, message, errors, retryAfterSeconds } = describe(error);
      return {
        message,
        code: TRPC_ERROR_CODES_BY_KEY[code] as TRPC_ERROR_CODE_NUMBER,
        data: {
          code,
          httpStatus: status,
          path: shape.data.path,
          errors: errors as FieldErrors | undefined,
          retryAfterSeconds,
        },
      };
    },
  });

export const { router, mergeRouters } = t;

/** The ladder: each step says who may call, and what is then known about the caller. */
export const anyoneProcedure = admitting<Caller | undefined>('anyone');
export const signedInProcedure = admitting<Caller>('signedIn');
export const viewerProcedure = inProject('viewer');
export const memberProcedure = inProject('member');
export const ownerOrSuperadminProcedure = admitting<Caller>('ownerOrSuperadmin');
export const billingProcedure = admitting<ProjectCaller>('billing');
export const superadminProcedure = admitting<Caller>('superadmin');

function admitting<Admitted extends Caller | undefined>(access: Access) {
  return t.procedure.meta({ access }).use(async ({ ctx, batchIndex, getRawInput, next }) => {
    // Of a batch, the calls beyond the limit are refused one by one.
    if (batchIndex >= ctx.callsAllowed)
      throw tooManyRequests('Too many requests. Try again later.', ctx.retryAfterSeconds);
    admit(ctx.caller, access);
    mustBeReadable(await getRawInput());
    const proceed = async () => {
      ctx.answerRoom?.mustBeLeft();
      const result = await next(SAME as { ctx: { caller: Admitted } });
      if (result.ok) ctx.answerRoom?.take(result.data);
      return result;
    };
    // Signing in has a queue of its own, for passwords.
    if (!ctx.caller || access === 'anyone') return proceed();
    return ctx.queue.run(`user:${ctx.caller.id}`, proceed, { longestWaitForOwnMilliseconds: 30_000 });
  });
}

/** The context goes on as it is, with more known of its caller; tRPC copies one that is given. */
const SAME: unknown = undefined;

function inProject(role: Role) {
  return admitting<ProjectCaller>(role);
}

/** What domain functions are given by the steps of the ladder. */
export type SignedInContext = Context & { caller: Caller };
export type ProjectContext = Context & { caller: ProjectCaller };
