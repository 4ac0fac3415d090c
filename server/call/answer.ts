import { z } from 'zod';
import { type Failure, toFailure, tooManyRequests } from '../../shared/errors.ts';
import type { Reason } from '../../shared/reasons.ts';
import type { Role } from '../../shared/user.ts';
import { inputParser } from '../api/parser.ts';
import type { Procedure } from '../api/procedures.ts';
import type { Services } from '../api/services.ts';
import { mustBeAtLevel } from '../database/level.ts';
import { ACCESS, accessError, type Rule, wrongCredential } from '../domain/access/access.ts';
import type { Credential } from '../domain/access/caller.ts';
import { NotConfirmed } from '../domain/access/confirmation.ts';
import type { Caller, Context, Origin, ProjectCaller } from '../domain/access/context.ts';
import { mustBeProven } from '../domain/account/proof.ts';
import { BUSY, type Counted, networkKey, overLimit, userKey } from '../limits/rateLimit.ts';
import type { UnsentResponse } from '../limits/unsentResponses.ts';
import { makeResponseBudget, type ResponseBudget } from '../limits/unsentResponses.ts';
import type { Leaving } from '../runtime/leaving.ts';
import type { Log } from '../runtime/log.ts';
import { isKeySecret, readKeySecret } from '../security/apiKeys.ts';
import type { Tokens } from '../security/tokens.ts';
import { logFailure } from './logFailure.ts';
import { runOnce } from './once.ts';
import { neededRoleOf, recallCaller, rememberCaller } from './remembered.ts';
import { noteWriteAfter, readOnReplica } from './replica.ts';

/** A request as its wire read it, and below, what the steps have found out: wires write headers, logs and metrics from it. */
export type Exchange = {
  readonly services: Services;
  /** Empty without one. */
  readonly token: string;
  /** The selected project; undefined for none. */
  readonly projectId: number | undefined;
  readonly origin: Origin;
  readonly log: Log;
  /** Undefined at the command line. */
  readonly leaving: Leaving | undefined;
  /** How many calls it has; each counts, also those of unknown procedures. */
  readonly calls: number;
  /** Whether it has neither an idempotency key nor a stream as its answer. */
  readonly isPlain: boolean;
  called: Procedure[];
  /** The highest role that a procedure may need, where the body names it. */
  readonly neededRole: Role | undefined;

  caller?: Caller | undefined;
  /** The 401 of a wrong token or key. */
  unidentified?: Error | undefined;
  /** The rate limit; undefined at the command line. */
  limit?: Counted;
  unsent?: UnsentResponse;
  budget?: ResponseBudget;
  /** The reasons of the calls that were refused or failed. */
  readonly reasons: Reason[];
  isGivenBack?: boolean;
};

/** One call of a request. */
export type Call = {
  procedure: Procedure;
  /** Its place in the batch. */
  index: number;
  /** Reads the body of the request, if nobody did yet. */
  readInput: () => unknown;
  /** The idempotency key, or the 400 of an invalid one. */
  key?: string | Error | undefined;
};

/** The wire turns `failure` into an answer; `error` is what was thrown. */
export type Reply = { data: unknown; isReplayed: boolean } | Refused;
export type Refused = { failure: Failure; error: unknown };

/**
 * The first steps of a request, once for all of its calls: refuse who has spent the limit, identify, count. Throws what concerns
 * the whole request. A token with a valid signature but without a valid session counts for the address, so that a stolen token
 * can't use up the user's rate limit. A caller who is remembered is identified by the statement of the call.
 */
export async function admit(exchange: Exchange): Promise<void> {
  if (exchange.services.erasures.isDue) {
    await count(exchange);
    throw restored();
  }
  const credential = readCredential(exchange.token, exchange.services.tokens);
  refuseSpent(exchange, credential);
  exchange.caller = recallCaller(exchange, credential);
  try {
    if (!exchange.caller) await identify(exchange, credential);
  } catch (error) {
    // Guesses count, also while the database is gone.
    await count(exchange);
    throw error;
  }
  try {
    await count(exchange);
  } catch (error) {
    // The limit may be another one now.
    if (!isInDoubt(exchange)) throw error;
    const { limit } = exchange;
    await identifyRemembered(exchange);
    if (exchange.limit === limit) throw error;
  }
  if (credential && !exchange.caller) await explainEndedKey(exchange, credential);
  openResponse(exchange);
}

const restored = () =>
  tooManyRequests(
    'This service was restored, and waits until its operator has told it who was erased.',
    30,
    'service_busy',
  );

/** The steps of each call of an admitted request, in their order. */
export async function answer(exchange: Exchange, call: Call): Promise<Reply> {
  const run: Run = { exchange, call, isReplayed: false };
  try {
    return await takeSteps(run);
  } catch (error) {
    if (!isDoubtful(exchange, error)) return noteRefused(exchange, error);
  }
  try {
    await identifyRemembered(exchange);
    return await takeSteps(run);
  } catch (error) {
    return noteRefused(exchange, error);
  }
}

async function takeSteps(run: Run): Promise<Reply> {
  const { exchange, call } = run;
  const { services, caller } = exchange;
  mustBeWithinLimit(exchange, call);
  mustHaveAccess(exchange, call);
  run.reading ??= readOnce(call);
  run.sent = await run.reading;
  // Identified again, since the body came late.
  if (exchange.caller !== caller) mustHaveAccess(exchange, call);
  run.key = keyOf(exchange, call);
  const data = await (waitsInQueue(exchange, call)
    ? services.queue.run(`user:${caller?.id}`, () => runInTurn(run), {
        longestWaitForOwnMilliseconds: 30_000,
        leaving: exchange.leaving,
      })
    : runInTurn(run));
  return { data, isReplayed: run.isReplayed };
}

/** What was wrong with the input stays wrong. */
const readOnce = async (call: Call) => call.readInput();

/**
 * Whether a remembered caller is to be looked up before the call is refused: nobody learns more than they may by then, and their
 * rights may have grown. Faults and a busy service are the same for everybody.
 */
function isDoubtful(exchange: Exchange, error: unknown): boolean {
  if (!isInDoubt(exchange)) return false;
  if (error instanceof NotConfirmed) return true;
  const { status, reason } = toFailure(error);
  return status < 500 && !BUSY.has(reason);
}

/** Whether the caller is remembered, and no statement has confirmed that yet. */
const isInDoubt = ({ caller }: Exchange) => caller?.unconfirmed?.isConfirmed === false;

/** Before an answer that no statement was needed for: looks up a remembered caller, so that it counts for the right one. */
export const settleCaller = (exchange: Exchange): Promise<void> | undefined =>
  isInDoubt(exchange) ? identifyRemembered(exchange) : undefined;

/** Before a wait for the body: who lost their access while they were remembered is refused at once, as others are. */
export async function settleBeforeBody(exchange: Exchange): Promise<void> {
  if (!isInDoubt(exchange)) return;
  await identifyRemembered(exchange);
  for (const procedure of exchange.called) mustHaveAccess(exchange, { procedure });
}

/** The call counts for the address instead if the caller is not identified any more, or by another limit. */
async function identifyRemembered(exchange: Exchange): Promise<void> {
  const { services, caller, limit, calls } = exchange;
  await identifyAgain(exchange);
  const isSameLimit = exchange.caller?.id === caller?.id && exchange.caller?.ownRateLimit === caller?.ownRateLimit;
  if (!limit || isSameLimit) return;
  await services.rateLimit.giveBack(limit, calls);
  await count(exchange);
}

/** The steps of a call that has its turn: read the input, prove, count further rows, do it once, check the output. */
async function runInTurn(run: Run): Promise<unknown> {
  const { exchange, call, sent } = run;
  const { meta } = call.procedure;
  exchange.budget?.mustNotBeSpent();
  const input = parseInput(exchange, call, sent);
  if (meta.level !== undefined) await mustBeAtLevel(exchange.services.database.db, meta.level);
  const context = contextOf(run);
  if (meta.proof && context.caller) await mustBeProven({ ...context, caller: context.caller }, meta.proof, input);

  const more = (meta.countsAs?.(input) ?? 1) - 1;
  const work = () => runOnDatabase(run, context, input);
  const data = await (more > 0 && context.countMore ? context.countMore(more, work) : work());
  exchange.budget?.spend(data);
  return data;
}

/** A call on its way. */
type Run = {
  exchange: Exchange;
  call: Call;
  reading?: Promise<unknown>;
  sent?: unknown;
  key?: string | undefined;
  isReplayed: boolean;
};

/**
 * Gives back the calls that were refused because others keep the service busy. Wires call this before they send headers.
 * Undefined if there is nothing to give back.
 */
export function giveBackBusy(exchange: Exchange): Promise<void> | undefined {
  const { services, limit, reasons, leaving } = exchange;
  // Nothing to a caller who leaves the queue: it would be a way around the limit.
  if (!limit || leaving?.isGone || !reasons.some((reason) => BUSY.has(reason))) return;
  if (exchange.isGivenBack) return;
  exchange.isGivenBack = true;
  const isAdmitted = exchange.budget !== undefined;
  const unserved = reasons.filter((reason) => BUSY.has(reason) || reason === 'over_rate_limit').length;
  return services.rateLimit.giveBack(limit, isAdmitted ? unserved : exchange.calls).then((left) => {
    exchange.limit = left;
  });
}

function readCredential(token: string, tokens: Tokens): Credential | undefined {
  if (token === '') return undefined;
  if (!isKeySecret(token)) return tokens.read(token);
  const keyHash = readKeySecret(token);
  return keyHash === undefined ? undefined : { keyHash };
}

/** Anybody can make up a key with a valid checksum: until it is found, its calls count for the address. */
function refuseSpent(exchange: Exchange, credential: Credential | undefined): void {
  if (!credential) return;
  const { rateLimit, keyHolders } = exchange.services;
  const userId = 'keyHash' in credential ? keyHolders.find(credential.keyHash) : credential.userId;
  const spent = rateLimit.exhausted(userId === undefined ? addressKey(exchange) : userKey(userId));
  if (!spent) return;
  exchange.limit = spent;
  throw overLimit(spent);
}

async function identify(exchange: Exchange, credential: Credential | undefined): Promise<void> {
  const { services, token, projectId } = exchange;
  if (!credential) {
    if (token !== '') exchange.unidentified = wrongCredential(isKeySecret(token));
    return;
  }
  const caller = await services.findCaller(credential, projectId, neededRoleOf(exchange));
  rememberCaller(exchange, credential, caller);
  exchange.caller = caller;
  if ('keyHash' in credential) services.keyHolders.remember(credential.keyHash, exchange.caller?.id ?? undefined);
  if (!exchange.caller) exchange.unidentified = wrongCredential('keyHash' in credential);
}

async function count(exchange: Exchange): Promise<void> {
  const { services, calls, caller } = exchange;
  exchange.limit = await services.rateLimit.count(callerKey(exchange), calls, caller?.ownRateLimit);
  if (exchange.limit.callsAllowed === 0) throw overLimit(exchange.limit);
  services.unsentResponses.mustBeFew(callerKey(exchange));
}

/** After the call is counted: guesses of ended keys are limited like others. */
async function explainEndedKey(exchange: Exchange, credential: Credential): Promise<void> {
  if (!('keyHash' in credential)) return;
  exchange.unidentified = (await exchange.services.findEndedKey(credential.keyHash)) ?? exchange.unidentified;
}

function openResponse(exchange: Exchange): void {
  // A closed connection would never release it.
  if (exchange.leaving?.isGone) return;
  exchange.unsent = exchange.services.unsentResponses.open(callerKey(exchange));
  exchange.budget = makeResponseBudget(exchange.unsent, exchange.calls);
}

/** A body may take 30 seconds: callers who were signed out or lost their role meanwhile are refused. */
export async function identifyAgain(exchange: Exchange): Promise<void> {
  const credential = readCredential(exchange.token, exchange.services.tokens);
  await identify(exchange, credential);
  if (credential && !exchange.caller) await explainEndedKey(exchange, credential);
}

/** In a batch, only the calls beyond the rate limit are refused. */
function mustBeWithinLimit({ limit }: Exchange, { index }: Call): void {
  if (limit && index >= limit.callsAllowed) throw overLimit(limit);
}

function mustHaveAccess({ caller, unidentified }: Exchange, { procedure }: Pick<Call, 'procedure'>): void {
  const error = accessError(caller, procedure, unidentified);
  if (error) throw error;
}

/** The key of a call; undefined without one, or if the procedure ignores keys. */
function keyOf({ caller }: Exchange, { key, procedure }: Call): string | undefined {
  if (!procedure.isKeyed || caller?.id == null) return undefined;
  if (key instanceof Error) throw key;
  return key;
}

/** Sign-in waits in the queue for passwords instead. */
const waitsInQueue = ({ caller }: Exchange, { procedure }: Call) =>
  caller !== undefined && ACCESS[procedure.access].needsSignIn;

/** The specified operations ignore unknown fields, as specified, except for assistants, who would take that for success. */
function parseInput({ origin }: Exchange, { procedure }: Call, sent: unknown): unknown {
  const isStrict = !procedure.rest?.isSpecified || origin.surface === 'mcp';
  if (procedure.parseInput) return procedure.parseInput(sent, isStrict);
  if (sent !== undefined) parseNothing(sent, isStrict);
  return undefined;
}
/** For procedures without an input. */
const parseNothing = inputParser(z.object({}).or(z.unknown()));

function contextOf({ exchange, call, key }: Run): Context {
  const { services, caller, origin, log, limit } = exchange;
  const { role: neededRole }: Rule = ACCESS[call.procedure.access];
  const actedIn = key === undefined ? undefined : [];
  return {
    db: services.database.db,
    caller: neededRole === undefined ? caller : ({ ...caller, neededRole, actedIn } as ProjectCaller),
    origin,
    log,
    services,
    countMore:
      limit &&
      ((calls, work) =>
        services.rateLimit.countWhile(limit, calls, work, (last) => {
          exchange.limit = { ...limit, ...last, callsAllowed: limit.callsAllowed };
        })),
  };
}

/** Runs a mutation with a key only once and, if there are replicas, a query on one of them. */
async function runOnDatabase(run: Run, context: Context, input: unknown): Promise<unknown> {
  const { procedure } = run.call;
  const { replicas } = run.exchange.services;
  const { caller } = context;
  if (procedure.type === 'mutation') {
    const data = await (replicas ? noteWriteAfter(replicas, caller, () => once()) : once());
    // Followers get the events of the change at once.
    if (procedure.meta.events) context.services.eventHub.announce();
    return data;
  }
  if (!replicas || procedure.meta.onPrimary) return resolve(run, context, input);
  return readOnReplica(replicas, context, (on) => resolve(run, on, input));

  function once(): Promise<unknown> {
    if (run.key === undefined || !caller) return resolve(run, context, input);
    // Its transaction has no place for that.
    if (caller.unconfirmed) throw new NotConfirmed();
    const onReplay = () => {
      run.isReplayed = true;
    };
    const keyed = { procedure, key: run.key, input, onReplay };
    return runOnce({ ...context, caller }, keyed, (on) => resolve(run, on, input));
  }
}

/** The procedure itself. Its output is what the document says, or it is a fault of ours. */
async function resolve({ exchange, call }: Run, ctx: Context, input: unknown): Promise<unknown> {
  const { procedure } = call;
  const signal = procedure.type === 'subscription' ? exchange.leaving?.signal : undefined;
  return procedure.parseOutput(await procedure.resolve({ ctx, input, signal }));
}

/** Notes why a call is refused or has failed. */
export function noteRefused(exchange: Exchange, error: unknown): Refused {
  const failure = toFailure(error);
  logFailure(exchange.log, error, failure);
  exchange.reasons.push(failure.reason);
  return { failure, error };
}

/** Who the calls count for: their user, else their address. */
const callerKey = (exchange: Exchange) =>
  exchange.caller?.id != null ? userKey(exchange.caller.id) : addressKey(exchange);
const addressKey = ({ origin }: Exchange) => networkKey(origin.address);
