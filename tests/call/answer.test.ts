import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { proceduresOf } from '../../server/api/procedures.ts';
import type { Services } from '../../server/api/services.ts';
import { anyoneProcedure, memberProcedure, router } from '../../server/api/trpc.ts';
import { admit, answer, type Call, type Exchange, identifyAgain } from '../../server/call/answer.ts';
import { makeRememberedCallers } from '../../server/domain/access/confirmation.ts';
import type { AccountCaller, Caller } from '../../server/domain/access/context.ts';
import { makeKeyHolders } from '../../server/limits/keyHolders.ts';
import type { Counted } from '../../server/limits/rateLimit.ts';
import { makeFairQueue } from '../../server/runtime/fairQueue.ts';
import { Leaving } from '../../server/runtime/leaving.ts';
import { makeKeySecret } from '../../server/security/apiKeys.ts';
import { badRequest, toFailure, tooManyRequests, unauthorized } from '../../shared/errors.ts';

const RPC_ONLY = { rpcOnly: 'for these tests' };
const resolved = vi.fn();
const [double, caller, open, confirmed] = proceduresOf(
  router({
    double: memberProcedure
      .meta(RPC_ONLY)
      .input(z.object({ number: z.int() }))
      .output(z.object({ result: z.int() }))
      .mutation(({ input: { number } }) => {
        resolved();
        return { result: number === 13 ? ('unlucky' as never) : 2 * number, hidden: 1 };
      }),
    caller: memberProcedure
      .meta(RPC_ONLY)
      .output(z.unknown())
      .mutation(({ ctx }) => ctx.caller),
    open: anyoneProcedure
      .meta(RPC_ONLY)
      .output(z.unknown())
      .query(() => 'done'),
    confirmed: memberProcedure
      .meta({ ...RPC_ONLY, confirms: true })
      .output(z.unknown())
      .query(() => 'done'),
  }),
) as [Call['procedure'], Call['procedure'], Call['procedure'], Call['procedure']];

const MEMBER = { id: 7, isProjectChosen: false, highestRole: 'member' } as AccountCaller;
const VIEWER: Caller = { ...MEMBER, highestRole: 'viewer' };
const LIMIT: Counted = {
  limit: 10,
  remaining: 9,
  callsAllowed: 1,
  retryAfterSeconds: 3,
  key: '',
  calls: 1,
  until: 0,
};

const queueFor = (running: number) =>
  makeFairQueue({
    running,
    runningPerKey: 1,
    waiting: 0,
    waitingPerKey: 0,
    refuse: () => tooManyRequests('The queue is full.', 1, 'service_busy'),
  });

type Parts = Partial<Omit<Exchange, 'services'>> & { services?: Partial<Services> };

/** An admitted exchange with the parts that the steps use. */
const exchangeWith = ({ services, ...parts }: Parts = {}): Exchange => ({
  services: {
    queue: queueFor(1),
    database: {},
    rememberedCallers: makeRememberedCallers(),
    erasures: { isDue: false },
    ...services,
  } as Services,
  token: '',
  projectId: undefined,
  origin: { surface: 'rpc', requestId: null, address: '127.0.0.1', serviceUrl: '' },
  log: { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() },
  leaving: undefined,
  calls: 1,
  isPlain: true,
  called: [double],
  neededRole: undefined,
  reasons: [],
  caller: MEMBER,
  limit: LIMIT,
  ...parts,
});

const callWith = (sent: unknown, key?: Call['key']): Call => ({
  procedure: double,
  index: 0,
  readInput: () => {
    if (sent instanceof Error) throw sent;
    return sent;
  },
  key,
});

const reasonOf = (reply: Awaited<ReturnType<typeof answer>>) => ('failure' in reply ? reply.failure.reason : 'none');

describe('the steps of a call', () => {
  const UNREADABLE = badRequest('It could not be read.', 'input_unreadable');
  const mustNotBeSpent = () => {
    throw tooManyRequests('It is spent.', 1, 'batch_answers_too_large');
  };
  const steps: { reason: string; parts?: Parts; input?: unknown; key?: Error }[] = [
    { reason: 'over_rate_limit', parts: { limit: { ...LIMIT, callsAllowed: 0 } } },
    { reason: 'role_missing', parts: { caller: VIEWER } },
    { reason: 'input_unreadable', input: UNREADABLE },
    { reason: 'idempotency_key_invalid', key: badRequest('It is too long.', 'idempotency_key_invalid') },
    { reason: 'service_busy', parts: { services: { queue: queueFor(0) } } },
    { reason: 'batch_answers_too_large', parts: { budget: { mustNotBeSpent, spend: () => undefined } } },
    { reason: 'invalid_input', input: { number: 'none' } },
    { reason: 'fault', input: { number: 13 } },
    { reason: 'none', input: { number: 2 } },
  ];

  it.each(steps.map(({ reason }, at) => [reason, at] as const))(
    '%s comes before those below it',
    async (reason, at) => {
      const from = steps.slice(at);
      const exchange = exchangeWith(Object.assign({}, ...from.map(({ parts }) => parts)));
      const key = from.find((step) => step.key)?.key;

      const reply = await answer(exchange, callWith(from.find(({ input }) => input)!.input, key));

      expect(reasonOf(reply)).toBe(reason);
      expect(exchange.reasons).toEqual(reason === 'none' ? [] : [reason]);
    },
  );

  it('read no body for who may not call', async () => {
    const readInput = vi.fn();

    await answer(exchangeWith({ caller: VIEWER }), { procedure: double, index: 0, readInput });

    expect(readInput).not.toHaveBeenCalled();
  });

  it('401 if the caller was signed out while the body came, and nothing is done', async () => {
    resolved.mockClear();
    const exchange = exchangeWith({ token: 'token', unidentified: undefined });
    exchange.services.tokens = { read: () => ({ userId: 7, sessionId: 'x' }) } as unknown as Services['tokens'];
    exchange.services.findCaller = async () => undefined;
    const readInput = async () => {
      await identifyAgain(exchange);
      return { number: 2 };
    };

    const reply = await answer(exchange, { procedure: double, index: 0, readInput });

    expect(reasonOf(reply)).toBe('credential_invalid');
    expect(resolved).not.toHaveBeenCalled();
  });

  it('401 with the reason why if the key has ended while the body came', async () => {
    const exchange = exchangeWith({ token: makeKeySecret() });
    exchange.services.keyHolders = makeKeyHolders();
    exchange.services.findCaller = async () => undefined;
    exchange.services.findEndedKey = async () => unauthorized('It was revoked.', 'key_ended');
    const readInput = async () => {
      await identifyAgain(exchange);
      return { number: 2 };
    };

    const reply = await answer(exchange, { procedure: double, index: 0, readInput });

    expect(reasonOf(reply)).toBe('key_ended');
  });

  it('count a call once, also if its caller can not be found again', async () => {
    const count = vi.fn();
    const exchange = exchangeWith({ token: 'token' });
    exchange.services.tokens = { read: () => ({ userId: 7, sessionId: 'x' }) } as unknown as Services['tokens'];
    exchange.services.rateLimit = { count } as unknown as Services['rateLimit'];
    exchange.services.findCaller = () => Promise.reject(new Error('The database is gone.'));

    await expect(identifyAgain(exchange)).rejects.toThrow('The database is gone.');

    expect(count).not.toHaveBeenCalled();
  });

  it('wait in no queue for what needs no sign-in', async () => {
    const exchange = exchangeWith({ services: { queue: queueFor(0) } });

    expect(await answer(exchange, { procedure: open, index: 0, readInput: () => undefined })).toMatchObject({
      data: 'done',
    });
  });
});

describe('the response of a call', () => {
  const countingIn = (spent: unknown[]) =>
    exchangeWith({ budget: { mustNotBeSpent: () => undefined, spend: (response) => spent.push(response) } });

  it('is parsed, then counted against the budget', async () => {
    const spent: unknown[] = [];

    expect(await answer(countingIn(spent), callWith({ number: 2 }))).toEqual({
      data: { result: 4 },
      isReplayed: false,
    });
    expect(spent).toEqual([{ result: 4 }]);
  });

  it('500 if it is not as documented, with the reason for the log', async () => {
    const spent: unknown[] = [];
    const exchange = countingIn(spent);

    const reply = await answer(exchange, callWith({ number: 13 }));

    expect(reply).toMatchObject({
      failure: { status: 500 },
      error: { message: 'Output validation failed', cause: { issues: [{ path: ['result'] }] } },
    });
    expect(exchange.log.error).toHaveBeenCalledOnce();
    expect(spent).toEqual([]);
  });
});

describe('the caller of a call', () => {
  it('has the needed role, and the calls of a batch share the caller unchanged', async () => {
    const exchange = exchangeWith();

    const reply = await answer(exchange, { procedure: caller, index: 0, readInput: () => undefined });

    expect(reply).toMatchObject({ data: { ...MEMBER, neededRole: 'member', actedIn: undefined } });
    expect(exchange.caller).toEqual({ id: 7, isProjectChosen: false, highestRole: 'member' });
  });
});

describe('the first steps of a request', () => {
  const counts: string[] = [];
  const servicesWith = (more: Partial<Services>): Partial<Services> => ({
    tokens: { read: () => ({ userId: 7, sessionId: 'x' }) } as unknown as Services['tokens'],
    findCaller: async () => MEMBER,
    rateLimit: {
      exhausted: () => undefined,
      count: async (key: string) => {
        counts.push(key);
        return { ...LIMIT, key };
      },
    } as unknown as Services['rateLimit'],
    unsentResponses: {
      mustBeFew: () => undefined,
      open: () => undefined,
    } as unknown as Services['unsentResponses'],
    ...more,
  });
  const admitWith = async (more: Partial<Services>, token = 'token', leaving?: Leaving) => {
    counts.length = 0;
    const exchange = exchangeWith({ token, leaving, services: servicesWith(more), caller: undefined });
    const error = await admit(exchange).then(
      () => undefined,
      (error) => toFailure(error).reason,
    );
    return { exchange, error };
  };

  it('429 for too many unread answers, also of a caller who is remembered', async () => {
    const found = { id: 7, project_id: 1, default_project_id: 1, role: 'member' } as AccountCaller['found'];
    const unread = { isTooMany: false };
    const services = servicesWith({
      findCaller: async () => ({ ...MEMBER, found: found! }),
      database: { isEmbedded: true } as Services['database'],
      rememberedCallers: makeRememberedCallers(),
      unsentResponses: {
        mustBeFew: () => {
          if (unread.isTooMany) throw tooManyRequests('Read your answers.', 1, 'answers_unread');
        },
        open: () => undefined,
      } as unknown as Services['unsentResponses'],
    });
    const admitted = async () => {
      const exchange = exchangeWith({ token: 'token', called: [confirmed], services, caller: undefined });
      await admit(exchange);
      return exchange.caller?.unconfirmed !== undefined;
    };

    expect([await admitted(), await admitted()]).toEqual([false, true]);
    unread.isTooMany = true;
    await expect(admitted()).rejects.toThrow('Read your answers.');
  });

  it('429 for who has spent the limit, without a look at the database', async () => {
    const findCaller = vi.fn();
    const rateLimit = { exhausted: () => ({ ...LIMIT, callsAllowed: 0 }) } as unknown as Services['rateLimit'];

    const { error } = await admitWith({ findCaller, rateLimit });

    expect(error).toBe('over_rate_limit');
    expect(findCaller).not.toHaveBeenCalled();
  });

  it.each([
    ['the user of a valid token', {}, 'token', 'user:7'],
    ['the address without a token', {}, '', 'address:127.0.0.1'],
    ['the address for a token without a session', { findCaller: async () => undefined }, 'token', 'address:127.0.0.1'],
  ])('count for %s', async (_, more, token, key) => {
    await admitWith(more, token);

    expect(counts).toEqual([key]);
  });

  it('look for the limit of the user of a key while it is valid, and of the address once it has ended', async () => {
    const looked: string[] = [];
    const rateLimit = {
      ...(servicesWith({}).rateLimit as Services['rateLimit']),
      exhausted: (key: string) => void looked.push(key),
    };
    const services = { keyHolders: makeKeyHolders(), findEndedKey: async () => undefined, rateLimit };
    const secret = makeKeySecret();
    const callers = [MEMBER, undefined, undefined];

    for (const caller of callers) await admitWith({ ...services, findCaller: async () => caller }, secret);

    expect(looked).toEqual(['address:127.0.0.1', 'user:7', 'address:127.0.0.1']);
  });

  const left = new Leaving();
  left.leave();
  it.each([
    ['open a response', new Leaving(), 1],
    ['open none for a caller who has left, since nothing would release it', left, 0],
  ])('%s', async (_, leaving, opened) => {
    const open = vi.fn();
    const unsentResponses = { mustBeFew: () => undefined, open };

    await admitWith({ unsentResponses }, 'token', leaving);

    expect(counts).toEqual(['user:7']);
    expect(open).toHaveBeenCalledTimes(opened);
  });

  it('count for the address while callers cannot be found', async () => {
    const findCaller = async () => {
      throw new Error('The database is gone.');
    };

    const { error } = await admitWith({ findCaller });

    expect(error).toBe('fault');
    expect(counts).toEqual(['address:127.0.0.1']);
  });
});
