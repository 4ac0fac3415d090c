import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { TRPCError } from '@trpc/server';
import superjson, { type SuperJSONResult } from 'superjson';
import { badRequest, invalid, tooManyRequests } from '../../shared/errors.ts';
import { transact } from '../database/query.ts';
import { accountOf } from '../domain/access/access.ts';
import type { ActedIn, Caller, Context, ProjectCaller } from '../domain/access/context.ts';
import {
  claimKey,
  type EarlierCall,
  finishKey,
  type KeyedCall,
  RENEW_MILLISECONDS,
  releaseKey,
  renewHold,
} from '../domain/access/idempotencyKey.ts';
import { mustStillBePermitted } from '../domain/access/permission.ts';
import { withValues } from '../runtime/jsonText.ts';

/**
 * How a mutation with an idempotency key is executed only once. By default its key, its work and its response are one transaction.
 * - `inSteps`: it has several transactions or outside effects. The key is claimed before the first and finished after the last.
 * - `secret`: the same, and its response is not stored, since it may be shown only once.
 * - `never`: the key is ignored.
 */
export type Idempotency = 'inSteps' | 'secret' | 'never';

/** What a procedure returned or threw. */
export type Result = { ok: true; data: unknown } | { ok: false; error: TRPCError };

type Call = {
  path: string;
  batchIndex: number;
  key: string;
  /** As parsed by the procedure's schema; undefined without one. */
  input: unknown;
  mode: Idempotency | undefined;
  prepare: ((context: Context, input: unknown) => Promise<unknown>) | undefined;
  /** A right that is enough for the procedure without a role. */
  right: 'superadmin' | 'superadmin_billing' | undefined;
  /** Whether the procedure documents a 422. */
  documents422: boolean;
};

/** The procedure itself, with these parts of its context. */
type Work<Worked extends Result> = (changes: Pick<Context, 'db' | 'prepared'>) => Promise<Worked>;

/** The key of a call; undefined without one, or if the procedure ignores keys. Throws the 400 of an invalid one. */
export function keyOf(
  { idempotency, caller }: Context,
  { type, batchIndex, mode }: Pick<Call, 'batchIndex' | 'mode'> & { type: string },
): string | undefined {
  const key = idempotency?.keys[batchIndex];
  if (type !== 'mutation' || mode === 'never' || caller?.id == null) return undefined;
  if (key instanceof Error) throw key;
  return key;
}

/** Runs the work of a call with a key, or returns the response of the earlier call with it. A failure frees the key. */
export async function runOnce<Worked extends Result>(
  context: Context & { caller: Caller },
  call: Call,
  work: Work<Worked>,
): Promise<Worked> {
  const { isProjectChosen, project } = context.caller;
  // The same input does something else in another project.
  const hashes = context.secretBox.hashes(JSON.stringify([isProjectChosen ? project?.id : null, call.input]));
  const holder = call.mode ? randomUUID() : null;
  const keyed = { user_id: accountOf(context.caller), procedure: call.path, key: call.key, hashes, holder };
  if (call.mode) return runInSteps(context, call, keyed, work);

  const prepared = call.prepare && { result: await call.prepare(context, call.input) };
  return runInTransaction(context, call, keyed, ({ db }) => work({ db, prepared }));
}

async function runInTransaction<Worked extends Result>(
  context: Context,
  call: Call,
  keyed: KeyedCall,
  work: Work<Worked>,
): Promise<Worked> {
  let failed: Worked | undefined;
  try {
    return await transact(context.db, async (db) => {
      failed = undefined;
      const earlier = await claimKey(db, keyed).catch((error) => {
        throw error.code === LOCK_TIMEOUT ? stillRunning() : error;
      });
      if (earlier) return replay({ ...context, db }, call, keyed, earlier);

      const result = await work({ db });
      if (!result.ok) {
        failed = result;
        // Rolls back; the cause tells whether the transaction is worth a retry.
        throw result.error.cause ?? result.error;
      }
      await finishKey(db, keyed, textOf(result.data, context));
      return result;
    });
  } catch (error) {
    if (failed) return failed;
    throw error;
  }
}
const LOCK_TIMEOUT = '55P03';

async function runInSteps<Worked extends Result>(
  context: Context,
  call: Call,
  keyed: KeyedCall,
  work: Work<Worked>,
): Promise<Worked> {
  const { db, log } = context;
  const earlier = await claimOrWait(context, keyed);
  if (earlier) return replay(context, call, keyed, earlier);

  const timer = setInterval(() => renewHold(db, keyed).catch(() => undefined), RENEW_MILLISECONDS).unref();
  try {
    const result = await work({ db });
    const response = result.ok && call.mode !== 'secret' ? textOf(result.data, context) : null;
    const ended = result.ok ? finishKey(db, keyed, response) : releaseKey(db, keyed);
    // The work is done, so its outcome is sent; a repeat takes over once the hold has expired.
    await ended.catch((error) => log.warn(error, 'The end of a call with an idempotency key could not be stored.'));
    return result;
  } finally {
    clearInterval(timer);
  }
}

const LONGEST_WAIT_MILLISECONDS = 5_000;
const POLL_MILLISECONDS = 200;

/** Waits while another call works on the key. It polls, so that no connection is occupied meanwhile. */
async function claimOrWait({ db, isStopping }: Context, keyed: KeyedCall): Promise<EarlierCall | undefined> {
  const latest = performance.now() + LONGEST_WAIT_MILLISECONDS;
  for (;;) {
    const earlier = await claimKey(db, keyed);
    if (!earlier || earlier.isFinished || !isSameInput(keyed, earlier)) return earlier;
    if (isStopping() || performance.now() > latest) throw stillRunning();
    await pause(POLL_MILLISECONDS);
  }
}

const isSameInput = ({ hashes }: KeyedCall, { input_hash }: EarlierCall) => hashes.includes(input_hash);

/** The response of the earlier call, for a caller who may still act where it acted. */
async function replay<Worked extends Result>(
  { db, idempotency, caller }: Context,
  { batchIndex, right, documents422 }: Call,
  keyed: KeyedCall,
  earlier: EarlierCall,
): Promise<Worked> {
  if (!isSameInput(keyed, earlier)) throw reused(documents422);
  if (earlier.answer === null) {
    throw badRequest('This call was already executed, and its answer is not kept.', 'idempotency_answer_not_kept');
  }
  const { actedIn, ...response }: Stored = JSON.parse(earlier.answer);
  const hasRight = right && caller?.[right] && !caller.isProjectChosen;
  if (actedIn && !hasRight) await mustStillBePermitted(db, caller as ProjectCaller, actedIn);
  idempotency?.replayed.push(batchIndex);
  return { ok: true, data: superjson.deserialize(response) } as Worked;
}

/** Larger responses are not stored. */
const MOST_BYTES = 1024 * 1024;

/** A response with where its call acted; nodes of the previous version ignore that. */
type Stored = SuperJSONResult & { actedIn?: ActedIn[] };

function textOf(response: unknown, { caller }: Context): string | null {
  const { actedIn = [] } = caller as Partial<ProjectCaller>;
  // Each row that was found has added its project.
  const places = [...new Map(actedIn.map((place) => [JSON.stringify(place), place])).values()];
  const stored: Stored = {
    ...superjson.serialize(withValues(response)),
    ...(places.length > 0 && { actedIn: places }),
  };
  const text = JSON.stringify(stored);
  return Buffer.byteLength(text) > MOST_BYTES ? null : text;
}

const stillRunning = () =>
  tooManyRequests('An earlier call with this Idempotency-Key is still running.', 5, 'idempotency_key_running');

function reused(documents422: boolean): Error {
  const predicate = 'was used for another input or project: send a new one';
  return documents422
    ? invalid({ 'Idempotency-Key': predicate }, 'idempotency_key_reused')
    : badRequest(`Idempotency-Key ${predicate}.`, 'idempotency_key_reused');
}
