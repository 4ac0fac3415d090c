import {
  initTRPC,
  type TRPC_ERROR_CODE_NUMBER,
  type TRPCProcedureBuilder,
  type TRPCUnsetMarker,
  type TrackedEnvelope,
} from '@trpc/server';
import { TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc';
import type { z } from 'zod';
import { type FieldErrors, toFailure } from '../../shared/errors.ts';
import type { EventType } from '../../shared/event.ts';
import type { Reason } from '../../shared/reasons.ts';
import type { Access } from '../domain/access/access.ts';
import type { AccountCaller, Caller, Context, KeyCaller, ProjectCaller } from '../domain/access/context.ts';
import type { Preparation } from '../domain/access/preparation.ts';
import type { ProofNeed } from '../domain/access/proofNeed.ts';
import type { Deprecation } from './deprecation.ts';
import type { RestMeta } from './restOperation.ts';
import { transformer } from './rpcInput.ts';

/**
 * How a mutation with an idempotency key is executed only once. By default its key, its work and its response are one transaction.
 * - `inSteps`: it has several transactions or outside effects. The key is claimed before the first and finished after the last.
 * - `secret`: the same, and its response is not stored, since it may be shown only once.
 * - `never`: the key is ignored.
 */
export type Idempotency = 'inSteps' | 'secret' | 'never';

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
  /** Set if it deletes or ends something, or changes many projects at once: pages ask first, and assistants are told. */
  isDestructive?: true | undefined;
  /** The events that a mutation writes; none if it only queues a mail. */
  events?: readonly EventType[];
  /** The reasons of its own rules, in `domain/`. The tests compare each refusal that they get with these. */
  reasons?: readonly Reason[];
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
  /** Whether its first statement confirms a remembered caller (`confirmation.ts`). */
  confirms?: boolean;
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

/** The context of tRPC's own adapter, which only streams batches: the steps of `server/call/answer.ts` answer each call. */
export type StreamedCalls = { answer: (index: number) => Promise<unknown> };

function procedureFor<Admitted extends Caller | undefined>(access: Access) {
  const handOver = t.middleware(async ({ ctx, batchIndex }) => {
    const data = await (ctx as unknown as StreamedCalls).answer(batchIndex);
    return { ok: true, data } as never;
  });
  return t.procedure.meta({ access }).use(handOver) as unknown as BaseProcedure<{ caller: Admitted }>;
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

/**
 * The output of a subscription, by the schema of each event: tRPC wants the type of the whole stream, while `procedures.ts` checks
 * each event by itself.
 */
export const each = <Schema extends z.ZodType>(event: Schema) =>
  event as unknown as z.ZodType<AsyncIterable<TrackedEnvelope<z.output<Schema>>>>;
