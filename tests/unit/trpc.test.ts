import { callTRPCProcedure } from '@trpc/server';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { transformer } from '../../server/api/rpcInput.ts';
import { memberProcedure, router } from '../../server/api/trpc.ts';
import type { Caller, Context } from '../../server/domain/access/context.ts';
import { makeFairQueue } from '../../server/runtime/fairQueue.ts';
import { badRequest, toFailure, tooManyRequests } from '../../shared/errors.ts';

const appRouter = router({
  double: memberProcedure
    .input(z.object({ number: z.int() }))
    .output(z.object({ result: z.int() }))
    .mutation(({ input: { number } }) => ({ result: number === 13 ? ('unlucky' as never) : 2 * number, hidden: 1 })),
  caller: memberProcedure.output(z.unknown()).mutation(({ ctx }) => ctx.caller),
});

const MEMBER = { id: 7, isProjectChosen: false, highestRole: 'member' } as Caller;

/** The parts of a context that the steps of a call use. */
const contextWith = (changes: Partial<Context>) =>
  ({ callsAllowed: 1, retryAfterSeconds: 1, caller: MEMBER, queue: queueFor(1), ...changes }) as Context;

const queueFor = (running: number) =>
  makeFairQueue({
    running,
    runningPerKey: 1,
    waiting: 0,
    waitingPerKey: 0,
    refuse: () => tooManyRequests('The queue is full.', 1, 'service_busy'),
  });

const call = (path: string, ctx: Context, input?: unknown) =>
  callTRPCProcedure({
    router: appRouter,
    path,
    type: 'mutation',
    ctx,
    batchIndex: 0,
    getRawInput: async () => input,
    signal: undefined,
  });

const reasonFor = (ctx: Context, input: unknown) =>
  call('double', ctx, input).then(
    () => 'none',
    (error) => toFailure(error).reason,
  );

describe('the steps of a call', () => {
  const UNREADABLE = transformer.input.deserialize({ json: {}, meta: { v: 2 } });
  const invalidKey = badRequest('It is too long.', 'idempotency_key_invalid');
  const mustNotBeSpent = () => {
    throw tooManyRequests('It is spent.', 1, 'batch_answers_too_large');
  };
  const steps: { reason: string; context?: Partial<Context>; input?: unknown }[] = [
    { reason: 'over_rate_limit', context: { callsAllowed: 0 } },
    { reason: 'role_missing', context: { caller: { ...MEMBER, highestRole: 'viewer' } } },
    { reason: 'input_unreadable', input: UNREADABLE },
    { reason: 'idempotency_key_invalid', context: { idempotency: { keys: [invalidKey], replayed: [] } } },
    { reason: 'service_busy', context: { queue: queueFor(0) } },
    { reason: 'batch_answers_too_large', context: { responseBudget: { mustNotBeSpent, spend: () => undefined } } },
    { reason: 'invalid_input', input: { number: 'none' } },
    { reason: 'fault', input: { number: 13 } },
    { reason: 'none', input: { number: 2 } },
  ];

  it.each(steps.map(({ reason }, at) => [reason, at] as const))(
    '%s comes before those below it',
    async (reason, at) => {
      const from = steps.slice(at);

      const context = contextWith(Object.assign({}, ...from.map(({ context }) => context)));

      expect(await reasonFor(context, from.find(({ input }) => input)!.input)).toBe(reason);
    },
  );
});

describe('the response of a call', () => {
  const contextThatCounts = (spent: unknown[]) =>
    contextWith({ responseBudget: { mustNotBeSpent: () => undefined, spend: (response) => spent.push(response) } });

  it('is parsed, then counted against the budget', async () => {
    const spent: unknown[] = [];

    expect(await call('double', contextThatCounts(spent), { number: 2 })).toEqual({ result: 4 });
    expect(spent).toEqual([{ result: 4 }]);
  });

  it('500 if it is not as documented, with the reason for the log', async () => {
    const spent: unknown[] = [];

    await expect(call('double', contextThatCounts(spent), { number: 13 })).rejects.toMatchObject({
      code: 'INTERNAL_SERVER_ERROR',
      message: 'Output validation failed',
      cause: { issues: [{ path: ['result'] }] },
    });
    expect(spent).toEqual([]);
  });
});

describe('the context of a call', () => {
  it('names the needed role, and leaves the context that the calls of a batch share unchanged', async () => {
    const shared = contextWith({});

    expect(await call('caller', shared)).toEqual({ ...MEMBER, neededRole: 'member', actedIn: undefined });
    expect(shared.caller).toEqual({ id: 7, isProjectChosen: false, highestRole: 'member' });
  });
});
